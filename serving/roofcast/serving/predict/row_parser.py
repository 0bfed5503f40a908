"""Parser of prediction input: typed columns, and the problems of each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.errors import MAX_GIVEN, MAX_PROBLEM, SchemaError, choice_error, join_errors
from roofcast.data.measurements.column_names import LONG_NAMES, column_cure, similar_columns
from roofcast.data.measurements.schema import INPUT_COLUMNS, OUTCOME_COLUMNS, QUESTION_COLUMNS, RESULT_COLUMNS
from roofcast.data.measurements.table_rules import BOOLEANS, date_problem
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.predict.run_checks import check_features, check_load, check_split
from roofcast.serving.row_problems import Problem, add_problems

Table = dict[str, ColumnArray]
"""Columns by name, each an array of one cell a row."""

REQUIRED_COLUMNS: Final = ("model", "accelerator")

ASSUMED_LOAD: Final = "load_is_assumed"
"""Extra column of parsed rows: True where neither concurrency nor request rate is given."""

_BOUNDS: Final = {
    **{name: (column.low, column.high) for name, column in INPUT_COLUMNS.items() if column.kind == "float"},
    "n_input_token": (1.0, 1e7),
    "n_request": (1.0, 1e9),
}
_DEFAULTS: Final[dict[str, Any]] = {"n_accelerator": 1.0, "statistic": "mean"}
_FLAG_VALUES: Final = {**{text: float(value) for text, value in BOOLEANS.items()}, "": math.nan}
_REQUIRED_NUMBERS: Final = ("n_input_token", "n_output_token")
_NUMBER_TYPES: Final = frozenset({int, float, type(None)})
_TEXT_TYPES: Final = frozenset({str, type(None)})
_NESTED_TYPES: Final = frozenset({list, tuple, dict, set, np.ndarray})
_CHOICES: Final = {name: tuple(filter(None, column.choices)) for name, column in INPUT_COLUMNS.items()}

MAX_GUESS: Final = 20
"""Wrong words of a column for which similar choices are looked up, which takes time for each."""

ROW_NAMES: Final = dict.fromkeys((*INPUT_COLUMNS, *LONG_NAMES))
"""Names of the columns of questions, in both spellings."""


def unknown_column_error(name: str) -> SchemaError:
    """Return the error for a column that questions do not have."""
    if name in OUTCOME_COLUMNS or name in RESULT_COLUMNS:
        problem = "is a result, not an input column; leave it out, or send the row as a reference measurement"
        return SchemaError(name, problem)
    error = SchemaError(name, f"is not an input column; {column_cure(name, INPUT_COLUMNS)}")
    error.near = similar_columns(name, INPUT_COLUMNS)
    return error


def parse_rows(columns: Mapping[str, ColumnArray]) -> tuple[Table, list[Problem | None]]:
    """Return typed columns with `ASSUMED_LOAD`, and the problems of each row.

    The columns are those of `QUESTION_COLUMNS` and the others that are given, in the short spelling of `LONG_NAMES`.
    Blanks become NaN or an empty text, except `n_accelerator` (1), `statistic` (mean) and the load (one request in
    flight).

    Raises
    ------
    SchemaError
        If a column is unknown, or `model` or `accelerator` is missing.
    """
    unknown = (name for name in columns if name not in ROW_NAMES)
    errors = [unknown_column_error(name) for name in islice(unknown, MAX_PROBLEM + 1)]
    missing = [name for name in REQUIRED_COLUMNS if name not in columns]
    errors += [SchemaError(name, "is missing; it must be a column of the input") for name in missing]
    if errors:
        raise join_errors(errors)
    n_row = len(columns["model"])
    problems: list[Problem | None] = [None] * n_row
    columns = with_short_names(columns, problems)
    table: Table = {}
    for name in QUESTION_COLUMNS:
        if name in columns or name in _REQUIRED_NUMBERS:
            parse = _parse_numbers if name in _BOUNDS else _parse_texts
            table[name] = parse(name, columns.get(name, np.full(n_row, np.nan)), problems)
        else:
            default = _DEFAULTS.get(name, math.nan if name in _BOUNDS else "")
            table[name] = np.full(n_row, default, dtype=float if name in _BOUNDS else object)
    for name in columns:
        if name not in table:
            table[name] = _PARSERS[INPUT_COLUMNS[name].kind](name, columns[name], problems)
    table[ASSUMED_LOAD] = check_load(table, problems)
    table["concurrency"] = np.where(table[ASSUMED_LOAD], 1.0, table["concurrency"])
    check_split(table, problems)
    check_features(table, problems)
    return table, problems


def with_short_names(columns: Mapping[str, ColumnArray], problems: list[Problem | None]) -> Table:
    """Return the columns by their short names; a row may have either spelling, not both."""
    short = {name: cells for name, cells in columns.items() if name not in LONG_NAMES}
    for long, name in LONG_NAMES.items():
        if long not in columns:
            continue
        if name not in columns:
            short[name] = columns[long]
            continue
        has_long, has_short = (_stripped(columns[one]) != "" for one in (long, name))
        add_problems(problems, has_long & has_short, "invalid", long, f"is given as {name} too; keep one")
        short[name] = np.where(has_short, columns[name].astype(object), columns[long].astype(object))
    return short


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
    message = f"must be a number from {low:,.12g} to {high:,.12g}"
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
    if choices := _CHOICES[name]:
        unknown = dict.fromkeys(word for word in text.tolist() if word and word not in choices)
        messages = {word: choice_error(name, word, choices).problem for word in islice(unknown, MAX_GUESS)}
        plain = f"must be one of {', '.join(choices)}"
        _check_texts(name, text, unknown, lambda word: messages.get(word) or _with_given(plain, word), problems)
    elif name == "date":
        wrong = {date for date in {*text.tolist()} if date_problem(date)}
        message = "must be a date such as 2025-03-31, 2025-03 or 2025"
        _check_texts(name, text, wrong, lambda word: _with_given(message, word), problems)
    return text


def _check_texts(
    name: str,
    text: ColumnArray,
    wrong: Collection[str],
    message: Callable[[str], str],
    problems: list[Problem | None],
) -> None:
    """Add the problem of cells with a wrong text, which `message` returns, and make them blank."""
    if wrong:
        is_wrong = np.array([word in wrong for word in text.tolist()], dtype=bool)
        cells = text.copy()
        text[is_wrong] = ""
        add_problems(problems, is_wrong, "invalid", name, lambda i: message(cells[i]))


def _with_given(message: str, word: str) -> str:
    return f"{message}, got {word[:MAX_GIVEN]!r}"


def _parse_flags(name: str, cells: ColumnArray, problems: list[Problem | None]) -> ColumnArray:
    """Return 1 for true, 0 for false, NaN for blank."""
    texts = [text.lower() for text in _stripped(cells).tolist()]
    is_wrong = np.array([text not in _FLAG_VALUES for text in texts], dtype=bool)
    add_problems(problems, is_wrong, "invalid", name, lambda i: f"must be true or false, got {texts[i][:40]!r}")
    return np.array([_FLAG_VALUES.get(text, math.nan) for text in texts])


_PARSERS: Final = {"float": _parse_numbers, "str": _parse_texts, "bool": _parse_flags}


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
