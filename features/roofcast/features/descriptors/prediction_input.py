"""Prediction input: columns of a table of queries, with blanks filled by defaults."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import FloatArray, IndexArray

ColumnArray = npt.NDArray[Any]

PredictionInput = Mapping[str, ColumnArray]
"""Columns of questions by name, each of shape (n_row,); at least one."""

InputTable = pd.DataFrame | PredictionInput


def column_arrays(table: InputTable) -> PredictionInput:
    """Return the columns of a table as arrays; columns are returned as they are."""
    return {str(name): table[name].to_numpy() for name in table} if isinstance(table, pd.DataFrame) else table


def text_column(queries: PredictionInput, name: str, default: object) -> npt.NDArray[np.object_]:
    """Return a text column, `default` (a scalar or one a row) where it is blank or absent."""
    filled: npt.NDArray[np.object_] = np.empty(len(next(iter(queries.values()))), dtype=object)
    filled[:] = default
    if name in queries:
        values = np.asarray(queries[name], dtype=object)
        is_present = ~pd.isna(values)
        is_present[is_present] = values[is_present] != ""
        filled[is_present] = values[is_present]
    return filled


def number_column(queries: PredictionInput, name: str, default: float | FloatArray) -> FloatArray:
    """Return a numeric column, `default` (a scalar or one a row) where it is blank or absent."""
    if name not in queries:
        return np.full(len(next(iter(queries.values()))), default, dtype=float)
    values = queries[name].astype(float)
    return np.where(np.isnan(values), default, values)


def factorize(cells: ColumnArray) -> tuple[IndexArray, list[Hashable]]:
    """Return a code for each cell and the distinct values in order of first appearance.

    Examples
    --------
    >>> factorize(np.array(["b", "a", "b"], dtype=object))
    (array([0, 1, 0]), ['b', 'a'])
    """
    values = cells.tolist()
    distinct = dict.fromkeys(values)
    codes = {value: code for code, value in enumerate(distinct)}
    return np.fromiter(map(codes.__getitem__, values), dtype=np.intp, count=len(values)), list(distinct)
