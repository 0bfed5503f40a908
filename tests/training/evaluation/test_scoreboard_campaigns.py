from __future__ import annotations

from pathlib import Path

import pytest

from roofcast.training.evaluation.scoreboard import Scoreboard
from roofcast.training.evaluation.scoreboard_page import write_page


@pytest.fixture(scope="module")
def page(campaign_board: Scoreboard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    write_page(campaign_board, folder)
    return folder / "SCOREBOARD.md"


def test_the_page_has_every_section(page: Path) -> None:
    text = page.read_text()
    for title in (
        "## P4: all campaigns",
        "### Baselines on the same folds",
        "### Decisions",
        "## P5: some measurements",
    ):
        assert text.count(title) == 1


def test_the_figures_are_the_scoreboard_s(page: Path, campaign_board: Scoreboard) -> None:
    figures = campaign_board.results["P4"].figures["tpot"]
    assert isinstance(figures, dict)
    assert f"| tpot | {figures['mape']:.3f} | {figures['median_ape']:.3f} |" in page.read_text()
    assert "| **roofcast** | ttft |" in page.read_text()


def test_every_campaign_and_decision_is_counted(page: Path, campaign_board: Scoreboard) -> None:
    board, text = campaign_board, page.read_text()
    assert f"| all | {board.results['decisions'].figures['n_decision']} |" in text
    assert f"{board.results['decisions'].figures['n_without_price']} measurements are\nexcluded" in text
    assert "| silicon | ttft |" in text


def test_every_plot_that_the_page_names_is_there(page: Path) -> None:
    named = {line.split("](")[1].rstrip(")") for line in page.read_text().splitlines() if line.startswith("![")}
    drawn = {f"scoreboard/{path.name}" for path in (page.parent / "scoreboard").iterdir()}
    assert named == drawn
    assert {
        f"scoreboard/{name}.png" for name in ("P4_tpot", "P4_by_engine", "P4_coverage", "P4_methods", "P5")
    } <= drawn
    assert all((page.parent / name).stat().st_size < 200_000 for name in named)
