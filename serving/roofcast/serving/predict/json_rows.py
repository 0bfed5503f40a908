"""Between JSON rows and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from roofcast.features.descriptors.prediction_input import Cells


def table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows as a table of objects; a field that a row leaves out is None there.

    Examples
    --------
    >>> table([{"model": "a"}, {"model": "b", "tp": 2}])["tp"].isna().tolist()
    [True, False]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: [row.get(name) for row in rows] for name in names}, dtype=object)


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Cells]:
    """Return the columns of `table` as arrays, which a single row is sooner read from.

    Examples
    --------
    >>> columns([{"model": "a"}, {"model": "b", "tp": 2}])["tp"].tolist()
    [None, 2]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    found = {name: np.empty(len(rows), dtype=object) for name in names}
    for name, cells in found.items():
        cells[:] = [row.get(name) for row in rows]
    return found


def records_of(columns: Mapping[str, Cells]) -> list[dict[str, Any]]:
    """Return rows of columns as JSON values; NaN becomes null."""
    plain = [
        [None if void else cell for cell, void in zip(cells.tolist(), pd.isna(cells).tolist(), strict=True)]
        for cells in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as JSON values; NaN becomes null."""
    return records_of({str(name): frame[name].to_numpy() for name in frame})
