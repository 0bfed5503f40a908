import json
from pathlib import Path

import pandas as pd
import pytest

from judge import scoreboard
from judge.protocols import fold_lines
from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.p3_methods import METHODS
from judge.protocols.p4_p5_campaigns import predict_campaigns
from roofcast.serving.app_state.published_figures import read_figures
from tests.serving.http_client import Run
from tests.training.judge.protocols.campaign_builders import N_FOLD, GuessingPredictor, a_few_campaign_rows
from tests.training.judge.protocols.silicon_builders import a_silicon_campaign


def in_two_folds(rows: CampaignRows, *_: object) -> pd.DataFrame:
    return predict_campaigns(rows, n_fold=N_FOLD)


def test_a_protocol_is_printed_and_written_as_json_rows_and_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoreboard, "load_silicon_campaign", lambda _: a_silicon_campaign())
    monkeypatch.setattr(fold_lines, "RoofcastPredictor", GuessingPredictor)
    monkeypatch.setattr(fold_lines, "N_PROCESS", 1)
    paths = {"--json": tmp_path / "new" / "board.json", "--dump": tmp_path / "dump", "--docs": tmp_path / "docs"}
    out = run.ok("scoreboard", "--protocol", "P3", *(part for pair in paths.items() for part in pair))
    figures = json.loads(paths["--json"].read_text())
    assert set(figures["P3_clean"]["leave_one_lineage_out"]) == set(METHODS)
    assert "split leave_one_accelerator_out, method aiconfigurator" in " ".join(out.split())
    assert (tmp_path / "dump" / "P3.csv").exists()
    assert "| **roofcast** |" in (tmp_path / "docs" / "SCOREBOARD.md").read_text()
    stored = read_figures(tmp_path / "home")
    assert {name: stored[name].figures for name in figures} == figures


def test_an_unwritable_state_folder_is_an_error_before_anything_is_computed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoreboard, "run_scoreboard", lambda *_, **__: pytest.fail("it computes"))
    (tmp_path / "home").touch()
    assert "set ROOFCAST_HOME to a folder that can be written" in run.error(
        "scoreboard", "--protocol", "P3", status=1
    )


@pytest.mark.slow
def test_all_campaigns_are_predicted_once_for_both_protocols(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoreboard, "load_campaign_rows", a_few_campaign_rows)
    monkeypatch.setattr(scoreboard, "predict_campaigns", in_two_folds)
    monkeypatch.setattr(fold_lines, "RoofcastPredictor", GuessingPredictor)
    monkeypatch.setattr(fold_lines, "N_PROCESS", 1)
    GuessingPredictor.fitted.clear()
    out = run.ok("scoreboard", "--protocol", "P4,P5", "--json", tmp_path / "board.json", "--dump", tmp_path)
    assert len(GuessingPredictor.fitted) == N_FOLD
    assert list(json.loads((tmp_path / "board.json").read_text())) == ["P4", "P4_methods", "decisions", "P5"]
    assert {path.stem for path in tmp_path.glob("*.csv")} == {"P4", "P4_parts", "P4_class_parts", "decisions", "P5"}
    assert "median_regret" in out
