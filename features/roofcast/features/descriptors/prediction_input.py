"""Cells of a table of queries, blanks filled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray = npt.NDArray[np.float64]
ColumnArray = npt.NDArray[Any]

PredictionInput = pd.DataFrame | Mapping[str, ColumnArray]
"""A table of queries, or its columns as arrays, which single queries are sooner read from."""


def text_column(queries: PredictionInput, name: str, default: object) -> npt.NDArray[np.object_]:
    """Return a column of names, `default` (one or one a question) where it is blank or missing."""
    filled: npt.NDArray[np.object_] = np.empty(n_row(queries), dtype=object)
    filled[:] = default
    if name in queries:
        given = np.asarray(queries[name], dtype=object)
        is_given = ~pd.isna(given)
        is_given[is_given] = given[is_given] != ""
        filled[is_given] = given[is_given]
    return filled


def number_column(queries: PredictionInput, name: str, default: float | FloatArray) -> FloatArray:
    """Return a column of numbers, `default` (one or one a question) where it is blank or missing."""
    if name not in queries:
        return np.broadcast_to(np.asarray(default, dtype=float), n_row(queries)).copy()
    column = queries[name]
    given = column.to_numpy(dtype=float, na_value=np.nan) if isinstance(column, pd.Series) else column.astype(float)
    return np.where(np.isnan(given), default, given)


def n_row(queries: PredictionInput) -> int:
    """Return how many queries there are."""
    return len(queries) if isinstance(queries, pd.DataFrame) else len(next(iter(queries.values()), ()))


def factorize(cells: ColumnArray | pd.Series) -> tuple[npt.NDArray[np.intp], list[Hashable]]:
    """Return which of the values that there are each cell has, and these values as they come.

    Examples
    --------
    >>> factorize(np.array(["b", "a", "b"], dtype=object))
    (array([0, 1, 0]), ['b', 'a'])
    """
    values = cells.tolist()
    distinct = dict.fromkeys(values)
    codes = {value: code for code, value in enumerate(distinct)}
    return np.fromiter(map(codes.__getitem__, values), dtype=np.intp, count=len(values)), list(distinct)
