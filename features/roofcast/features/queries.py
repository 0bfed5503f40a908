"""Queries as read-only arrays by descriptor, tables of them, and subsets of rows of nested structures."""

import functools
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import DESCRIPTOR_NAMES

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
SingleArray = npt.NDArray[np.float32]

Queries = Mapping[str, FloatArray]
"""Descriptors of queries by name: arrays of shape (n_row,), which `freeze` and `descriptor_arrays` make read-only."""

QueryTable = pd.DataFrame | Queries
"""Queries, or a table of them: shape (n_row, n_descriptor)."""

RowIndex = IndexArray


def freeze(block: FloatArray) -> Queries:
    """Return the rows of an array of shape (n_descriptor, n_row), in the order of `DESCRIPTOR_NAMES`, as queries."""
    block.flags.writeable = False
    return MappingProxyType(dict(zip(DESCRIPTOR_NAMES, block, strict=True)))


def descriptor_arrays(descriptors: QueryTable) -> Queries:
    """Return a table of shape (n_row, n_descriptor) as queries; queries are returned as they are."""
    if not isinstance(descriptors, pd.DataFrame):
        return descriptors
    has_order = descriptors.columns.equals(_column_index(DESCRIPTOR_NAMES))
    table = descriptors if has_order else descriptors[list(DESCRIPTOR_NAMES)]
    return freeze(np.array(table.to_numpy(dtype=float).T, order="C"))


def build_frame(columns: Mapping[str, FloatArray], names: tuple[str, ...], index: pd.Index) -> pd.DataFrame:
    """Return a table of the named columns, stored as one block, which is faster than column by column."""
    block = np.array([columns[name] for name in names], dtype=float).reshape(len(names), len(index))
    return pd.DataFrame(block.T, index=index, columns=_column_index(names), copy=False)


def query_index(queries: QueryTable) -> pd.Index:
    """Return the index of a table, and of arrays the row numbers."""
    return queries.index if isinstance(queries, pd.DataFrame) else pd.RangeIndex(len(next(iter(queries.values()))))


def take_rows(nested: Any, rows: RowIndex) -> Any:
    """Return a subset of the rows of all arrays in nested mappings and dataclasses.

    Arrays of one row and values that are not arrays are broadcast, so they are returned unchanged, unless all rows
    are the first.

    Examples
    --------
    >>> take_rows({"a": np.array([1, 2, 3])}, np.array([2, 0]))
    {'a': array([3, 1])}
    """
    if isinstance(nested, np.ndarray):
        return nested[rows] if len(nested) > 1 or not rows.any() else nested
    if isinstance(nested, Mapping):
        return {name: take_rows(value, rows) for name, value in nested.items()}
    if is_dataclass(nested) and not isinstance(nested, type):
        return type(nested)(**{field.name: take_rows(getattr(nested, field.name), rows) for field in fields(nested)})
    return nested


def put_rows(nested: Any, rows: RowIndex, part: Any) -> Any:
    """Return nested arrays with some rows replaced; arrays of one row and values that are not arrays are left.

    Examples
    --------
    >>> put_rows({"a": np.array([1, 2, 3])}, np.array([2, 0]), {"a": np.array([9, 8])})
    {'a': array([8, 2, 9])}
    """
    if isinstance(nested, np.ndarray):
        if len(nested) <= rows.max():
            return nested
        changed = nested.copy()
        changed[rows] = part
        return changed
    if isinstance(nested, Mapping):
        return {name: put_rows(value, rows, part[name]) for name, value in nested.items()}
    if is_dataclass(nested) and not isinstance(nested, type):
        names = [field.name for field in fields(nested)]
        return type(nested)(**{n: put_rows(getattr(nested, n), rows, getattr(part, n)) for n in names})
    return nested


@functools.cache
def _column_index(names: tuple[str, ...]) -> pd.Index:
    return pd.Index(names)
