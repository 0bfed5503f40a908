"""The measurement table: checking rows against the schema, and telling them apart."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from typing import Final

import pandas as pd
import pandera.pandas as pa

from roofcast.data.errors import SchemaError, near_misses
from roofcast.data.schema import (
    DEFAULTS,
    MEASUREMENT_COLUMNS,
    NUMBER_COLUMNS,
    OUTCOME_COLUMNS,
    SCHEMA,
    TEXT_COLUMNS,
    WHOLE_COLUMNS,
)

_BOOLEANS: Final = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def validate_measurements(table: pd.DataFrame, source: str = "", first_line: int = 0) -> pd.DataFrame:
    """Return the table with every column of the schema, in its order and types.

    Absent optional columns are filled with their blanks; `load` follows from concurrency and rate where blank.

    Parameters
    ----------
    table
        Rows with the columns `MEASUREMENT_COLUMNS`, or those of them that are known.
    source, first_line
        File name and the line of the first row, for messages; 0 to leave lines out.

    Raises
    ------
    SchemaError
        If a column is unknown or given twice, a value is of the wrong kind or out of bounds, or no outcome is
        given; names line and field.
    """
    _check_columns(table, source)
    complete = _with_defaults(table.reset_index(drop=True))
    for name in NUMBER_COLUMNS:
        complete[name] = _numbers(complete[name], source, first_line)
    complete["flash_attention"] = _booleans(complete["flash_attention"], source, first_line)
    try:
        checked = SCHEMA.validate(complete, lazy=False)
    except pa.errors.SchemaError as error:
        raise _schema_error(error, source, first_line) from error
    for name in TEXT_COLUMNS:
        _check_texts(checked[name], source, first_line)
    _check_row_rules(checked, source, first_line)
    return checked[list(MEASUREMENT_COLUMNS)]


def _check_columns(table: pd.DataFrame, source: str) -> None:
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise SchemaError(_field(twice[0]), "is given twice as a column", source)
    for column in map(str, table.columns):
        if column not in SCHEMA.columns:
            problem = f"is not a column of the measurement table; {_column_cure(column)}"
            raise SchemaError(_field(column), problem, source)


def _field(column: object, limit: int = 60) -> str:
    text = str(column)
    return text if text.isprintable() and 0 < len(text) <= limit else _short(text)


def _column_cure(column: str) -> str:
    in_seconds = column.removesuffix("_ms") + "_s"
    if column.endswith("_ms") and in_seconds in SCHEMA.columns:
        return f"give {in_seconds}, in seconds"
    near = near_misses(column, MEASUREMENT_COLUMNS)
    return f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(MEASUREMENT_COLUMNS)}"


def _with_defaults(table: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, pd.Series] = {}
    for name, column in SCHEMA.columns.items():
        default = DEFAULTS.get(name, float("nan"))
        values = table[name] if name in table.columns else pd.Series(default, index=table.index)
        if not column.nullable and name in table.columns:
            values = values.astype(object).where(values.notna(), default)
        columns[name] = values
    complete = pd.DataFrame(columns, index=table.index)
    is_blank = complete["load"].astype(str) == ""
    if is_blank.any():
        is_closed = complete["concurrency"].notna() & (complete["concurrency"].astype(str).str.strip() != "")
        implied = is_closed.map({True: "closed_loop", False: "open_loop"})
        complete["load"] = complete["load"].astype(object).where(~is_blank, implied)
    return complete


def _numbers(column: pd.Series, source: str, first_line: int) -> pd.Series:
    try:
        numbers = pd.to_numeric(column, errors="coerce").astype(float)
    except (TypeError, OverflowError) as error:
        raise SchemaError(str(column.name), "must hold numbers alone", source) from error
    suspects = column[numbers.isna() & column.notna()]
    wrong = suspects[suspects.astype(str).str.strip() != ""]
    if len(wrong):
        got = f"must be a number, got {_short(wrong.iloc[0])}"
        raise SchemaError(str(column.name), got, source, _line(first_line, int(wrong.index[0])))
    return numbers


def _booleans(column: pd.Series, source: str, first_line: int) -> pd.Series:
    if column.dtype == bool:
        return column
    texts = column.astype(str).str.strip().str.lower()
    booleans = texts.map({**_BOOLEANS, "": DEFAULTS["flash_attention"]})
    wrong = column[booleans.isna()]
    if len(wrong):
        got = f"must be true or false, got {_short(wrong.iloc[0])}"
        raise SchemaError(str(column.name), got, source, _line(first_line, int(wrong.index[0])))
    return booleans.astype(bool)


def _line(first_line: int, position: int) -> int:
    return first_line + position if first_line else 0


def _short(value: object, limit: int = 60) -> str:
    text = repr(getattr(value, "item", lambda: value)())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _schema_error(error: pa.errors.SchemaError, source: str, first_line: int) -> SchemaError:
    field = str(getattr(error.schema, "name", None) or error.column_name)
    cases = error.failure_cases
    position, got = 0, "a blank"
    if isinstance(cases, pd.DataFrame) and len(cases):
        case = cases.iloc[0]
        position = 0 if pd.isna(case["index"]) else int(case["index"])
        value = case["failure_case"]
        got = "a blank" if pd.isna(value) or value == "" else _short(value)
    return SchemaError(field, f"{_wanted(error)}, got {got}", source, _line(first_line, position))


def _wanted(error: pa.errors.SchemaError) -> str:
    statistics = getattr(error.check, "statistics", None) or {}
    if getattr(error.check, "name", "") == "str_length":
        return f"must be a text of {statistics['min_value']} to {statistics['max_value']} characters"
    if "allowed_values" in statistics:
        return "must be one of " + ", ".join(str(v) or "(blank)" for v in statistics["allowed_values"])
    if "min_value" in statistics and "max_value" in statistics:
        return f"must be between {statistics['min_value']:g} and {statistics['max_value']:g}"
    return "must be given"


def _check_texts(column: pd.Series, source: str, first_line: int) -> None:
    problem_of: Callable[[str], str] = _date_problem if column.name == "date" else _text_problem
    for value in column.unique():
        problem = problem_of(value)
        if problem:
            position = int((column == value).to_numpy().argmax())
            got = f"{problem}, got {_short(value)}"
            raise SchemaError(str(column.name), got, source, _line(first_line, position))


def _text_problem(value: str) -> str:
    if not value.isprintable():
        return "must hold no control or invisible character"
    if value != value.strip():
        return "must not begin or end with a space"
    if value.startswith(("=", "+", "-", "@")):
        return "must not begin with =, +, - or @, which a spreadsheet would run as a formula"
    return ""


def _date_problem(value: str) -> str:
    layout = {0: "", 4: "%Y", 7: "%Y-%m", 10: "%Y-%m-%d"}.get(len(value), "none")
    try:
        dt.datetime.strptime(value, layout)
    except ValueError:
        return "must be a date such as 2025-03-31"
    return ""


def _check_row_rules(table: pd.DataFrame, source: str, first_line: int) -> None:
    has_outcome = table[list(OUTCOME_COLUMNS)].notna().any(axis=1) | (table["status"] != "ok")
    has_load = table[["concurrency", "request_rate"]].notna().any(axis=1) | (table["load"] == "offline")
    whole = {name: (table[name].isna() | (table[name] % 1 == 0), "must be a whole number") for name in WHOLE_COLUMNS}
    rules = {
        "ttft_s": (has_outcome, "give at least one outcome, or a status other than ok"),
        "concurrency": (has_load, "give concurrency or request_rate"),
        **whole,
    }
    for field, (holds, problem) in rules.items():
        if not holds.all():
            position = int((~holds).to_numpy().argmax())
            raise SchemaError(field, problem, source, _line(first_line, position))


def row_ids(table: pd.DataFrame) -> list[str]:
    """Return a content hash for each row: the same row has the same id wherever it was imported.

    Numbers enter by their shortest exact decimal text, so that the id does not depend on the platform.

    Parameters
    ----------
    table
        What `validate_measurements` returned.

    Returns
    -------
    shape (n_row,), 32 hexadecimal digits each
    """
    texts = [_cells(table[name], name) for name in MEASUREMENT_COLUMNS]
    return [
        hashlib.blake2b("\x1f".join(filter(None, row)).encode(), digest_size=16).hexdigest()
        for row in zip(*texts, strict=True)
    ]


def _cells(column: pd.Series, name: str) -> list[str]:
    """Return ``name=value`` of each cell, empty for a blank or default one: a column added later changes no id."""
    if column.dtype == float:
        return ["" if value != value else f"{name}={value + 0.0!r}" for value in column.tolist()]  # noqa: PLR0124
    default = DEFAULTS.get(name)
    return ["" if value == default else f"{name}={value}" for value in column.tolist()]
