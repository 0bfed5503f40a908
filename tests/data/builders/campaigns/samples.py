"""Samples of published files, and checks shared by the tests of campaign builders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build_result import BuildResult
from roofcast.data.campaigns import load_campaign_info, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.validation import row_ids

INFERENCE = Path(__file__).parents[2] / "samples" / "inference"
BESIDE = Path(__file__).parents[4].parent / "shared" / "data"
needs_raw = pytest.mark.skipif(
    not (BESIDE / "raw").is_dir(), reason="the published files are missing next to the checkout (shared/data/raw)"
)


def rules(result: BuildResult) -> dict[str, int]:
    """Return the number of rejected rows by rule."""
    return dict(Counter(result.rejected["reason"]))


def one(rows: pd.DataFrame, **cells: object) -> pd.Series:
    """Return the only row with these cells."""
    for name, value in cells.items():
        rows = rows[rows[name] == value]
    assert len(rows) == 1, rows
    return rows.iloc[0]


def check_shipped(name: str, build: Callable[[Path], BuildResult]) -> None:
    """Check shipped rows and counts against a rebuild from the published files, and names against the catalogue."""
    result = build(BESIDE)
    shipped = load_campaigns([name])
    info = load_campaign_info(name)
    assert sorted(row_ids(result.rows)) == sorted(row_ids(shipped))
    assert (info.n_read, info.n_rejected, info.n_row) == (result.n_read, len(result.rejected), len(result.rows))
    catalog = load_catalog()
    assert set(shipped["model"]) <= set(catalog.models)
    assert set(shipped["accelerator"]) <= set(catalog.accelerators)
