"""Parser of prediction input: typed columns, and the first problem of each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.errors import SchemaError
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.data.specs import PRECISIONS, STATISTICS
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.problem import Problem

Table = dict[str, ColumnArray]
"""Columns by name, each an array of one cell a row."""

REQUIRED_COLUMNS: Final = ("model", "accelerator")

UNKNOWN_COLUMN: Final = f"is not an input column; the input columns are {', '.join(INPUT_COLUMNS)}"

ASSUMED_LOAD: Final = "load_is_assumed"
"""Extra column of parsed rows: True where neither concurrency nor request rate is given."""

_BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "n_accelerator": (1, 100_000), "tp": (1, 100_000), "pp": (1, 100_000), "dp": (1, 100_000), "ep": (1, 100_000),
    "n_input_token": (1, 1e7), "n_output_token": (1, 1e7), "concurrency": (1, 1e6), "request_rate": (1e-9, 1e6),
    "n_request": (1, 1e9),
}  # fmt: skip
_DEFAULTS: Final[dict[str, Any]] = {"n_accelerator": 1.0, "statistic": "mean"}
_INTEGERS: Final = ("n_accelerator", "tp", "pp", "dp", "ep")
_REQUIRED_NUMBERS: Final = ("n_input_token", "n_output_token")
_NUMBER_TYPES: Final = frozenset({int, float, type(None)})
_TEXT_TYPES: Final = frozenset({str, type(None)})
_NESTED_TYPES: Final = frozenset({list, tuple, dict, set, np.ndarray})
_CHOICES: Final = {"statistic": STATISTICS, "weight_precision": PRECISIONS, "kv_precision": PRECISIONS}


def parse_rows(columns: Mapping[str, ColumnArray]) -> tuple[Table, list[Problem | None]]:
    """Return typed columns with `ASSUMED_LOAD`, and the first problem of each row.

    Blanks become NaN or an empty text, except `n_accelerator` (1), `statistic` (mean) and the load (one request in
    flight).

    Raises
    ------
    SchemaError
        If a column is unknown, or `model` or `accelerator` is missing.
    """
    for name in columns:
        if name not in INPUT_COLUMNS:
            raise SchemaError(name, UNKNOWN_COLUMN)
    for name in REQUIRED_COLUMNS:
        if name not in columns:
            raise SchemaError(name, "is missing; it must be a column of the input")
    n_row = len(columns["model"])
    problems: list[Problem | None] = [None] * n_row
    table: Table = {}
    for name in INPUT_COLUMNS:
        if name in columns or name in _REQUIRED_NUMBERS:
            parse = _parse_numbers if name in _BOUNDS else _parse_texts
            table[name] = parse(name, columns.get(name, np.full(n_row, np.nan)), problems)
        else:
            default = _DEFAULTS.get(name, math.nan if name in _BOUNDS else "")
            table[name] = np.full(n_row, default, dtype=float if name in _BOUNDS else object)
    has_concurrency, has_rate = (~np.isnan(table[name]) for name in ("concurrency", "request_rate"))
    message = "give either concurrency or request_rate"
    add_problems(problems, has_concurrency & has_rate, "invalid", "concurrency", message)
    table[ASSUMED_LOAD] = ~(has_concurrency | has_rate)
    table["concurrency"] = np.where(table[ASSUMED_LOAD], 1.0, table["concurrency"])
    _check_split(table, problems)
    return table, problems


def _check_split(table: Table, problems: list[Problem | None]) -> None:
    for name in _INTEGERS:
        cells = table[name]
        is_fraction = np.nan_to_num(cells % 1) != 0
        message = lambda i, cells=cells: f"must be a whole number, got {cells[i]:g}"  # noqa: E731
        add_problems(problems, is_fraction, "invalid", name, message)
    n_accelerator, tp, pp, dp = (table[name] for name in ("n_accelerator", "tp", "pp", "dp"))
    ranks = np.where(np.isnan(pp), 1, pp) * np.where(np.isnan(dp), 1, dp)
    split = np.where(np.isnan(tp), n_accelerator / ranks, tp)
    add_problems(problems, split < 1, "invalid", "tp", "pp x dp must not exceed n_accelerator")
    add_problems(
        problems,
        (np.abs(split * ranks - n_accelerator) > 1e-9) | (split % 1 != 0),
        "invalid",
        "tp",
        lambda i: f"tp x pp x dp must equal n_accelerator, got {split[i]:g} x {ranks[i]:g} and {n_accelerator[i]:g}",
    )


def _parse_numbers(name: str, cells: ColumnArray, problems: list[Problem | None]) -> ColumnArray:
    low, high = _BOUNDS[name]
    values = _as_numbers(cells)
    if values is not None:
        is_blank = np.isnan(values)
    else:
        cells = _stripped(cells)
        is_blank = cells == ""
        values = np.array(pd.to_numeric(np.where(is_blank, np.nan, cells), errors="coerce"), dtype=float)
    values[is_blank] = _DEFAULTS.get(name, math.nan)
    is_wrong = ~is_blank & ~((values >= low) & (values <= high))
    values[is_wrong] = np.nan
    message = f"must be a number from {low:g} to {high:g}"
    add_problems(problems, is_wrong, "invalid", name, lambda i: f"{message}, got {str(cells[i])[:40]!r}")
    if name in _REQUIRED_NUMBERS:
        add_problems(problems, is_blank, "invalid", name, "must be given")
    return values


def _as_numbers(cells: ColumnArray) -> ColumnArray | None:
    """Return the cells as floats, NaN where missing; None if some are neither number nor missing."""
    if cells.dtype.kind in "iuf":
        return cells.astype(float)
    if not {*map(type, cells.tolist())} <= _NUMBER_TYPES:
        return None
    try:
        return cells.astype(float)
    except OverflowError:  # an integer beyond the range of floats
        return None


def _parse_texts(name: str, cells: ColumnArray, problems: list[Problem | None]) -> ColumnArray:
    text = _stripped(cells)
    if cells.dtype == object and not _NESTED_TYPES.isdisjoint(map(type, cells.tolist())):
        is_nested = np.array([type(cell) in _NESTED_TYPES for cell in cells.tolist()])
        message = "must be one text, not a list or an object"
        add_problems(problems, is_nested, "invalid", name, message)
        text[is_nested] = ""
    if name in _DEFAULTS:
        text[text == ""] = _DEFAULTS[name]
    if name in REQUIRED_COLUMNS:
        add_problems(problems, text == "", "invalid", name, "must be given")
    if choices := _CHOICES.get(name):
        wrong = {*text.tolist()} - {*choices, ""}
        is_wrong = np.array([word in wrong for word in text.tolist()] if wrong else [False] * len(text), dtype=bool)
        message = f"must be one of {', '.join(choices)}"
        add_problems(problems, is_wrong, "invalid", name, lambda i: f"{message}, got {text[i][:40]!r}")
    return text


def _stripped(cells: ColumnArray) -> ColumnArray:
    """Return the cells as texts without surrounding blanks; missing cells are empty."""
    values = cells.tolist()
    if {*map(type, values)} <= _TEXT_TYPES:
        texts = {value: "" if value is None else value.strip() for value in dict.fromkeys(values)}
        return object_column(len(cells), [*map(texts.__getitem__, values)])
    is_missing = pd.isna(cells)
    if is_missing.all():
        return object_column(len(cells), "")
    return object_column(
        len(cells), ["" if missing else str(cell).strip() for cell, missing in zip(values, is_missing, strict=True)]
    )


def object_column(n_row: int, value: object) -> ColumnArray:
    """Return a column of objects; `value` is one for all rows, or a list of one per row."""
    if isinstance(value, list):
        return np.fromiter(value, dtype=object, count=n_row)
    return np.full(n_row, value, dtype=object)


def add_problems(
    problems: list[Problem | None], mask: ColumnArray, status: str, field: str, message: str | Callable[[int], str]
) -> None:
    """Give the rows of a mask this problem where they have none yet; `message` may depend on the row's index."""
    for i in mask.nonzero()[0].tolist():
        if problems[i] is None:
            problems[i] = Problem(status, field, message if isinstance(message, str) else message(i))
