from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.serving.cli.files import read_table
from roofcast.serving.measure import plan
from roofcast.serving.measure.plan import (
    Choice,
    PlannedRun,
    check_setup,
    choose_runs,
    grid,
    parse_plan,
    planned_inputs,
    save_setup,
    without_repeats,
)
from tests.serving.user_files import write_file

LENGTHS = {"n_input_token": "64,256", "n_output_token": "32"}


def test_a_grid_has_all_combinations_in_order_and_each_once() -> None:
    runs = grid(LENGTHS, {"concurrency": "1,8,8", "request_rate": "0.5"})
    assert [run.name for run in runs] == [
        "in64-out32-c1-n20", "in64-out32-c8-n40", "in64-out32-r0.5-n30",
        "in256-out32-c1-n20", "in256-out32-c8-n40", "in256-out32-r0.5-n30",
    ]  # fmt: skip
    assert [run.n_request for run in runs[:3]] == [20, 40, 30]
    assert {run.n_request for run in grid(LENGTHS, {"concurrency": "1,8"}, "7")} == {7}


def test_a_file_states_each_run(tmp_path: Path) -> None:
    header = "n_input_token,n_output_token,concurrency,request_rate,n_request\n"
    text = f"{header}128,32,4,,\n128,32,,0.25,9\n128,32,4,,5\n128,32,4,,20\n"
    table = read_table(Path(write_file(tmp_path, "plan.csv", text)))
    runs = parse_plan(table.records(), "plan.csv", table.lines)
    assert runs == [
        PlannedRun(128, 32, 4),
        PlannedRun(128, 32, request_rate=0.25, n_request=9),
        PlannedRun(128, 32, 4, n_request=5),
    ]
    assert runs[1].cells == {"n_input_token": 128, "n_output_token": 32, "request_rate": 0.25, "n_request": 9}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"n_input_token": "1.5", "n_output_token": "32", "concurrency": "4"}, "n_input_token"),
        ({"n_input_token": "128", "concurrency": "4"}, "n_output_token"),
        ({"n_input_token": "128", "n_output_token": "32"}, "concurrency"),
        ({"n_input_token": "128", "n_output_token": "32", "concurrency": "4", "request_rate": "1"}, "concurrency"),
        ({"n_input_token": "128", "n_output_token": "32", "request_rate": "-1"}, "request_rate"),
        ({"isl": "128"}, "isl"),
    ],
)
def test_a_wrong_row_is_an_error_with_its_line_and_field(row: dict[str, str], field: str) -> None:
    with pytest.raises(SchemaError) as raised:
        parse_plan([row], "plan.csv", [2])
    assert (raised.value.source, raised.value.field) == ("plan.csv", field)


@pytest.mark.parametrize(
    ("lengths", "loads", "field"),
    [
        ({"n_input_token": "", "n_output_token": "32"}, {"concurrency": "1"}, "n_input_token"),
        (LENGTHS, {"concurrency": "", "request_rate": ""}, "concurrency"),
        (LENGTHS, {"concurrency": "1,,2"}, "concurrency"),
        (LENGTHS, {"concurrency": "many"}, "concurrency"),
        (LENGTHS, {"concurrency": ",".join(map(str, range(1, 5002)))}, "concurrency"),
    ],
)
def test_a_wrong_list_is_an_error_with_its_field(lengths: dict[str, str], loads: dict[str, str], field: str) -> None:
    with pytest.raises(InputError) as raised:
        grid(lengths, loads)
    assert raised.value.field == field


def test_the_first_of_equal_runs_counts() -> None:
    runs = [PlannedRun(1, 2, 3, n_request=4), PlannedRun(5, 6, 7), PlannedRun(1, 2, 3, n_request=8)]
    assert without_repeats([*runs, PlannedRun(1, 2, 3, n_request=4)]) == runs


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


CELLS = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "engine": "vllm"}
RUNS = [PlannedRun(64, 16, 1), PlannedRun(64, 16, request_rate=0.5), PlannedRun(900, 100, 8, n_request=40)]


def test_inputs_are_the_runs_with_what_all_share() -> None:
    inputs = planned_inputs(RUNS, CELLS, load_catalog())
    assert inputs["n_input_token"].tolist() == [64, 64, 900]
    assert inputs["request_rate"].fillna(0).tolist() == [0, 0.5, 0]
    assert inputs["n_request"].tolist() == [20, 20, 40]
    with pytest.raises(SchemaError, match=r"in64-out16-c1-n20: accelerator: no 'nvidia-h10' is known"):
        planned_inputs(RUNS, CELLS | {"accelerator": "nvidia-h10"}, load_catalog())
    with pytest.raises(SchemaError, match=r"in2000000-out16-c1-n20: .*context"):
        planned_inputs([PlannedRun(2_000_000, 16, 1)], CELLS, load_catalog())


def test_runs_are_taken_in_the_order_of_the_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    conditioned: list[Any] = []

    def condition_on(points: Any) -> Any:
        conditioned.append(points)
        return predictor

    predictor: Any = SimpleNamespace(metrics_=("tpot_s", "e2e_s"), condition_on=condition_on)

    def rank(_: Any, X: Any, metrics: list[str], n: int) -> list[SimpleNamespace]:
        assert (len(X), metrics, n) == (3, ["tpot_s"], 2)
        return [SimpleNamespace(row=2), SimpleNamespace(row=0)]

    monkeypatch.setattr(plan, "rank_measurements", rank)
    points: Any = object()
    inputs = planned_inputs(RUNS, CELLS, load_catalog())
    assert choose_runs(RUNS, inputs, load_catalog(), predictor, points=points, n=2) == [RUNS[2], RUNS[0]]
    assert conditioned == [points]
