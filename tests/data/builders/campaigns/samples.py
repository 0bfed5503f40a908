"""Cut samples of published files, and what holds for every campaign that is built from such files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.built import Built
from roofcast.data.campaigns import load_campaign_info, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.validation import row_ids

INFERENCE = Path(__file__).parents[2] / "samples" / "inference"
BESIDE = Path(__file__).parents[4].parent / "shared" / "data"
needs_raw = pytest.mark.skipif(
    not (BESIDE / "raw").is_dir(), reason="the published files are not beside the checkout (shared/data/raw)"
)


def rules(built: Built) -> dict[str, int]:
    """Return how many published rows each rule set aside."""
    return dict(Counter(built.quarantined["reason"]))


def one(rows: pd.DataFrame, **cells: object) -> pd.Series:
    """Return the only row with these cells."""
    found = rows
    for name, value in cells.items():
        found = found[found[name] == value]
    assert len(found) == 1, found
    return found.iloc[0]


def check_shipped(name: str, build: Callable[[Path], Built]) -> None:
    """Check that the shipped rows and counts are those of the published files, under names of the catalogue."""
    built = build(BESIDE)
    shipped = load_campaigns([name])
    info = load_campaign_info(name)
    assert sorted(row_ids(built.rows)) == sorted(row_ids(shipped))
    assert (info.n_read, info.n_quarantined, info.n_row) == (built.n_read, len(built.quarantined), len(built.rows))
    catalog = load_catalog()
    assert set(shipped["model"]) <= set(catalog.models)
    assert set(shipped["accelerator"]) <= set(catalog.accelerators)
