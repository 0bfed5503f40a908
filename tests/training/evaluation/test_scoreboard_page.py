from __future__ import annotations

from pathlib import Path

import pytest

from roofcast.training.evaluation.scoreboard import run_scoreboard
from roofcast.training.evaluation.scoreboard_page import write_page
from tests.training.evaluation.protocols.silicon_builders import N_OWN, a_silicon_campaign, exact, half_off


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    methods = {"roofcast": half_off, "exact": exact}
    board = run_scoreboard(["P1", "P3"], methods_silicon=methods, silicon=a_silicon_campaign())
    folder = tmp_path_factory.mktemp("docs")
    assert {path.name for path in write_page(board, folder)} == {
        "SCOREBOARD.md", "P3_tpot.png", "P3_ttft.png", "P3_by_accelerator.png",
    }  # fmt: skip
    return folder / "SCOREBOARD.md"


def test_the_page_has_every_protocol_and_method(page: Path) -> None:
    text = page.read_text()
    assert "| LLM-Pilot | 0.800 | 0.199 | 0.801 |" in text
    assert "| **roofcast** | 0.500 | 0.500 | 0.000 | 1.000 | 0.500 | 0.500 | 0.000 |" in text
    assert "## P2" not in text


def test_the_page_says_how_many_rows_were_answered_and_set_aside(page: Path) -> None:
    text = page.read_text()
    assert f"*All rows* are the {N_OWN + 3} published rows. *Clean* are the {N_OWN}" in text
    # of the 15 published rows, nine are on the first accelerator, on which TTFT has no answer
    assert "| vllm | leave one lineage out | TTFT | 15 | 0.500 / 0.500 (40%) | 0.000 / 0.000 |" in text
    assert "| nvidia-h100-sxm-80gb | leave one lineage out | TTFT | 9 | none answered | 0.000 / 0.000 |" in text
    assert "| `disaggregated_total` | called aggregated, but" in text


def test_every_plot_that_the_page_names_is_there(page: Path) -> None:
    named = [line.split("](")[1].rstrip(")") for line in page.read_text().splitlines() if line.startswith("![")]
    assert len(named) == 3
    assert all((page.parent / name).stat().st_size < 200_000 for name in named)
