"""Conversion between JSON rows, tables and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

import pandas as pd

from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.predict.row_parser import object_column


def table_from_rows(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows as a table of objects; a field that a row lacks is None.

    Examples
    --------
    >>> table_from_rows([{"model": "a"}, {"model": "b", "tp": 2}])["tp"].isna().tolist()
    [True, False]
    """
    return pd.DataFrame(columns_from_rows(rows), dtype=object)


MAX_COLUMN: Final = 300
"""Columns that are built: more than any table has, so those of more names include unknown ones, which are refused."""


def columns_from_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, ColumnArray]:
    """Return the rows as columns of objects, which are faster to build than a table.

    Examples
    --------
    >>> columns_from_rows([{"model": "a"}, {"model": "b", "tp": 2}])["tp"].tolist()
    [None, 2]
    """
    names = islice(dict.fromkeys(name for row in rows for name in row), MAX_COLUMN)
    return {name: object_column(len(rows), [row.get(name) for row in rows]) for name in names}


def rows_from_columns(columns: Mapping[str, ColumnArray]) -> list[dict[str, Any]]:
    """Return columns as rows of JSON values; NaN becomes None."""
    plain = [
        [None if void else cell for cell, void in zip(cells.tolist(), pd.isna(cells).tolist(), strict=True)]
        for cells in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]


def rows_from_table(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as rows of JSON values; NaN becomes None."""
    return rows_from_columns({str(name): table[name].to_numpy() for name in table})
