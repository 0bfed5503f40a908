from pathlib import Path

import pandas as pd
import pytest

from judge.page import FOLDER, PAGE, render_page, write_page, write_tables
from judge.scoreboard import Scoreboard, run_scoreboard
from roofcast.serving.app_state.published_figures import OWN_DOCS, shipped_figures
from tests.training.judge.protocols.silicon_builders import N_OWN, a_silicon_campaign, exact, half_off

DAY = "2026-11-27"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of P1 and P3, with its tables."""
    methods = {"roofcast": half_off, "exact": exact}
    board = run_scoreboard(["P1", "P3"], methods_silicon=methods, silicon=a_silicon_campaign())
    folder = tmp_path_factory.mktemp("docs")
    write_page(board, folder, DAY)
    return folder


def test_the_page_has_the_figures_of_each_protocol_and_method(docs: Path) -> None:
    text = (docs / PAGE).read_text()
    assert "| LLM-Pilot | 0.800 | 0.199 | 0.801 |" in text
    assert "| **roofcast** | 0.500 / 0.500 | 0.500 / 0.500 |" in text
    assert f"; {DAY})" in text
    assert "**Ninety demands**" not in text


def test_tables_by_part_say_how_many_rows_were_answered_and_which_are_faulty(docs: Path) -> None:
    parts = pd.read_csv(docs / FOLDER / "P3_parts.csv")

    def scores(protocol: str, part: str, method: str, metric: str) -> pd.Series:
        keys = {"protocol": protocol, "part": part, "method": method, "metric": metric}
        is_it = parts["split"] == "leave_one_lineage_out"
        for column, value in keys.items():
            is_it &= parts[column] == value
        return parts[is_it].iloc[0]

    ours = scores("P3", "vllm", "roofcast", "ttft")
    assert (ours["n_row"], ours["answered"], ours["mape"]) == (15, 0.4, 0.5)
    assert scores("P3", "nvidia-h100-sxm-80gb", "roofcast", "ttft")["answered"] == 0
    assert scores("P3_clean", "vllm", "exact", "tpot")["n_row"] == N_OWN
    assert pd.read_csv(docs / FOLDER / "P3_faults.csv")["n_row"].sum() == 1


def test_campaigns_have_tables_of_their_parts(board: Scoreboard, tmp_path: Path) -> None:
    write_page(board, tmp_path, DAY)
    decisions = pd.read_csv(tmp_path / FOLDER / "decisions_parts.csv").set_index("campaign")["n_decision"]
    assert decisions["all"] == board.results["decisions"].figures["n_decision"]
    parts = pd.read_csv(tmp_path / FOLDER / "P4_parts.csv")
    assert ((parts["by"] == "campaign") & (parts["part"] == "silicon") & (parts["metric"] == "ttft")).sum() == 1
    tpot = board.results["P4"].figures["tpot"]
    assert isinstance(tpot, dict)
    assert f"| tpot | {tpot['mape']:.3f} | {tpot['median_ape']:.3f} |" in (tmp_path / PAGE).read_text()


def test_the_page_of_the_repository_is_that_of_the_shipped_figures(tmp_path: Path) -> None:
    shipped = shipped_figures()
    figures = {name: protocol.figures for name, protocol in shipped.items()}
    computed = {name: protocol.computed for name, protocol in shipped.items()}
    assert (OWN_DOCS / PAGE).read_text(encoding="utf-8") == render_page(figures, computed)
    for file in write_tables(figures, tmp_path):
        assert file.read_text() == (OWN_DOCS / FOLDER / file.name).read_text(), "run `python -m judge.page docs`"
