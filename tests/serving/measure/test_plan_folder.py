from pathlib import Path

import pytest

from roofcast.data.errors import InputError
from roofcast.serving.measure.plan import PlannedRun
from roofcast.serving.measure.plan_folder import Choice, check_setup, save_setup

SETUP = {"model": "tiny", "target": "http://127.0.0.1:8000", "max_s": "300"}
PLAN = [PlannedRun(64, 16, concurrency) for concurrency in (1, 2, 4)]


def test_a_folder_holds_one_setup(tmp_path: Path) -> None:
    check_setup(tmp_path / "out", SETUP)
    assert not (tmp_path / "out").exists()
    save_setup(tmp_path / "out", SETUP)
    save_setup(tmp_path / "out", SETUP)
    with pytest.raises(InputError, match=r"target='http://127.0.0.1:8000', now 'http://127.0.0.1:9000'"):
        save_setup(tmp_path / "out", SETUP | {"target": "http://127.0.0.1:9000"})
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be used"):
        save_setup(tmp_path / "file", SETUP)
    (tmp_path / "out" / "setup.json").write_text("{")
    with pytest.raises(InputError, match="damaged; choose another folder"):
        check_setup(tmp_path / "out", SETUP)


def test_a_choice_counts_for_the_same_plan_budget_and_stack(tmp_path: Path) -> None:
    choice = Choice(PLAN, 2, "rack-7")
    assert choice.load(tmp_path) is None
    choice.save(tmp_path, [PLAN[2], PLAN[0]])
    assert Choice(PLAN, 2, "rack-7").load(tmp_path) == [PLAN[2], PLAN[0]]
    for other in (Choice(PLAN[:2], 2, "rack-7"), Choice(PLAN, 1, "rack-7"), Choice(PLAN, 2, "")):
        assert other.load(tmp_path) is None
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(InputError, match="damaged; delete it"):
        choice.load(tmp_path)
