"""Scoreboard figures that are shipped with the package, and those computed later."""

import datetime as dt
import shutil
from pathlib import Path

import pytest

from roofcast.serving.app_state import published_figures
from roofcast.serving.app_state.published_figures import OWN_DOCS, SHIPPED, read_figures, ship_figures, store_figures

FIGURES = {"P1": {"roofcast": {"success": 1.0}}}
TODAY = dt.date(2026, 11, 21)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the shipped file, which replaces it in this test."""
    copy = Path(shutil.copy(SHIPPED, tmp_path / "shipped.json"))
    monkeypatch.setattr(published_figures, "SHIPPED", copy)
    return copy


def test_own_figures_replace_shipped_ones_that_are_not_newer(tmp_path: Path, shipped: Path) -> None:
    before = read_figures(tmp_path)["P1"]
    store_figures(tmp_path, FIGURES, before.computed_on - dt.timedelta(days=1))
    assert read_figures(tmp_path)["P1"] == before
    store_figures(tmp_path, FIGURES, before.computed_on)
    assert read_figures(tmp_path)["P1"].figures == FIGURES["P1"]
    assert "P4" in read_figures(tmp_path)
    assert "P4" not in (tmp_path / published_figures.FILE_NAME).read_text()


def test_only_figures_of_the_package_page_are_shipped(tmp_path: Path, shipped: Path) -> None:
    before = shipped.read_bytes()
    ship_figures(tmp_path, FIGURES, TODAY)
    assert shipped.read_bytes() == before
    others = read_figures(tmp_path)
    ship_figures(OWN_DOCS, FIGURES, TODAY)
    after = read_figures(tmp_path)
    assert {name: after[name].figures for name in FIGURES} == FIGURES
    assert after["P1"].computed == TODAY.isoformat()
    assert {name: after[name] for name in others.keys() - FIGURES} == {
        name: others[name] for name in others.keys() - FIGURES
    }
