from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofcast.training import scoreboard
from roofcast.training.protocols.silicon_methods import METHODS
from tests.serving.client import Run
from tests.training.protocols.silicon_builders import a_silicon_campaign


def test_a_protocol_is_shown_and_written_as_figures_rows_and_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoreboard, "load_silicon_campaign", a_silicon_campaign)
    paths = {"--json": tmp_path / "new" / "board.json", "--dump": tmp_path / "dump", "--docs": tmp_path / "docs"}
    status, out, _ = run("scoreboard", "--protocol", "P3", *(part for pair in paths.items() for part in pair))
    assert status == 0
    figures = json.loads(paths["--json"].read_text())
    assert set(figures["P3_clean"]["leave_one_lineage_out"]) == set(METHODS)
    assert "leave_one_accelerator_out  aiconfigurator" in out
    assert (tmp_path / "dump" / "P3.csv").exists()
    assert "| **roofcast** |" in (tmp_path / "docs" / "SCOREBOARD.md").read_text()
