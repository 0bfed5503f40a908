"""Validation of a measurement table against its schema and rules, and content hashes of its rows."""

import datetime as dt
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.errors import SchemaError, join_errors, shorten
from roofcast.data.measurements.column_names import column_cure
from roofcast.data.measurements.column_types import Column

RowRules = Mapping[str, tuple[pd.Series, str]]
"""By field: whether each row satisfies the rule, and the problem of a row that does not."""

Columns = Mapping[str, pd.Series]
"""Columns by name, on one index."""

Lines = int | Sequence[int]
"""Line of the first row of a table, or of each; 0 if it is of no file."""

BOOLEANS: Final = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def _nothing(columns: Columns) -> dict[str, pd.Series]:  # noqa: ARG001  (as other fills)
    return {}


@dataclass(frozen=True)
class TableRules:
    """Schema and rules of a measurement table.

    - `title`: Name of the table for messages.
    - `row_rules`: Returns the rules between columns for a table with valid columns.
    - `fill`: Returns columns whose blanks follow from other cells, before validation.
    """

    title: str
    schema: Mapping[str, Column]
    row_rules: Callable[[pd.DataFrame], RowRules]
    fill: Callable[[Columns], dict[str, pd.Series]] = _nothing

    @functools.cached_property
    def columns(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(self.schema)

    @functools.cached_property
    def _defaults(self) -> Mapping[str, object]:
        return {name: column.default for name, column in self.schema.items() if not column.is_nullable}

    def validate(self, table: pd.DataFrame, source: str = "", lines: Lines = 0) -> pd.DataFrame:
        """Return the validated table with every column of the schema, in its order and types.

        `table`: rows with some of the columns; absent optional columns become blank. `source` and `lines`: file name,
        and line of the first row or of each, for messages; 0 for messages without lines. Raises `SchemaError` if a
        column is unknown or repeated, or a value has the wrong type or breaks a bound or a rule; names line and field
        of the first such value of each column.
        """
        raise_all(self._column_errors(table, source))
        columns = self._with_defaults(table.reset_index(drop=True))
        filled = self.fill(columns)
        columns |= filled
        unchecked = {*self._sound_defaults} - {*table.columns, *filled}
        of_type, of_value = list[SchemaError](), list[SchemaError]()
        for name, column in self.schema.items():
            if name in unchecked:
                continue
            try:
                columns[name] = self._typed(columns[name], source, lines)
            except SchemaError as error:
                of_type.append(error)
            else:
                of_value += _value_errors(column, columns[name], source, lines)
        raise_all([*of_type, *of_value])
        complete = pd.DataFrame(columns)
        raise_all(self._row_errors(complete, source, lines))
        return complete

    def row_ids(self, table: pd.DataFrame) -> list[str]:
        """Return the content hash of each row of a validated table, 32 hexadecimal digits."""
        columns = [cells for cells in (self._cells(table[name], name) for name in self.columns) if any(cells)]
        rows = zip(*columns, strict=True) if columns else [()] * len(table)
        return [hashlib.blake2b("\x1f".join(filter(None, row)).encode(), digest_size=16).hexdigest() for row in rows]

    def _column_errors(self, table: pd.DataFrame, source: str) -> Iterator[SchemaError]:
        for name in table.columns[table.columns.duplicated()].unique():
            yield SchemaError(_field(name), "is given twice as a column", source)
        for column in dict.fromkeys(map(str, table.columns)):
            if column not in self.schema:
                problem = f"is not a column of the {self.title}; {column_cure(column, self.columns)}"
                yield SchemaError(_field(column), problem, source)

    def _typed(self, column: pd.Series, source: str, lines: Lines) -> pd.Series:
        name = str(column.name)
        kind = self.schema[name].kind
        if kind == "float":
            return _numbers(column, source, lines)
        if kind == "bool":
            return _booleans(column, self._defaults.get(name), source, lines)
        _check_encodable(column, source, lines)
        return column.astype(str)

    @functools.cached_property
    def _sound_defaults(self) -> pd.DataFrame:
        cells = {}
        for name, column in self.schema.items():
            default = pd.Series([self._defaults.get(name, float("nan"))], name=name)
            with suppress(SchemaError):
                typed = self._typed(default, "", 0)
                if not _value_errors(column, typed, "", 0):
                    cells[name] = typed
        return pd.DataFrame(cells)

    def _with_defaults(self, table: pd.DataFrame) -> dict[str, pd.Series]:
        columns: dict[str, pd.Series] = {}
        absent = self._sound_defaults[[name for name in self._sound_defaults if name not in table.columns]]
        sound = dict(absent.take(np.zeros(len(table), dtype=int)).set_axis(table.index).items())
        for name, column in self.schema.items():
            default = self._defaults.get(name, float("nan"))
            if name in sound:
                columns[name] = sound[name]
            elif name not in table.columns:
                columns[name] = pd.Series(default, index=table.index, name=name)
            elif column.is_nullable:
                columns[name] = table[name]
            else:
                columns[name] = table[name].astype(object).where(table[name].notna(), default)
        return columns

    def _row_errors(self, table: pd.DataFrame, source: str, lines: Lines) -> Iterator[SchemaError]:
        known = [name for name, column in self.schema.items() if column.is_whole and table[name].notna().any()]
        whole = {n: (table[n].isna() | (table[n] % 1 == 0), "must be a whole number") for n in known}
        for field, (holds, problem) in [*whole.items(), *self.row_rules(table).items()]:
            if not holds.all():
                position = int((~holds).to_numpy().argmax())
                yield SchemaError(field, problem, source, line_of(lines, position))

    def _cells(self, column: pd.Series, name: str) -> list[str]:
        # Numbers are written as their shortest exact decimal text, which is the same on every platform.
        if column.dtype == float:
            return ["" if value != value else f"{name}={value + 0.0!r}" for value in column.tolist()]  # noqa: PLR0124
        default = self._defaults.get(name)
        return ["" if value == default else f"{name}={value}" for value in column.tolist()]


def raise_all(errors: Iterable[SchemaError]) -> None:
    """Raise the first error with the messages of the others; nothing if there is none."""
    if listed := [*errors]:
        raise join_errors(listed)


def _field(column: object, limit: int = 60) -> str:
    text = str(column)
    return text if text.isprintable() and 0 < len(text) <= limit else _short(text)


def _numbers(column: pd.Series, source: str, lines: Lines) -> pd.Series:
    try:
        numbers = pd.to_numeric(column, errors="coerce").astype(float)
    except (TypeError, OverflowError) as error:
        raise SchemaError(str(column.name), "must hold numbers alone", source) from error
    if not numbers.hasnans:
        return numbers
    suspects = column[numbers.isna() & column.notna()]
    wrong = suspects[suspects.astype(str).str.strip() != ""]
    if len(wrong):
        got = f"must be a number, got {_short(wrong.iloc[0])}"
        raise SchemaError(str(column.name), got, source, line_of(lines, int(wrong.index[0])))
    return numbers


def _booleans(column: pd.Series, default: object, source: str, lines: Lines) -> pd.Series:
    if column.dtype == bool:
        return column
    texts = column.astype(str).str.strip().str.lower()
    booleans = texts.map({**BOOLEANS, "": default})
    wrong = column[booleans.isna()]
    if len(wrong):
        got = f"must be true or false, got {_short(wrong.iloc[0])}"
        raise SchemaError(str(column.name), got, source, line_of(lines, int(wrong.index[0])))
    return booleans.astype(bool)


def line_of(lines: Lines, position: int) -> int:
    """Return the line of a row; 0 if unknown."""
    if isinstance(lines, int):
        return lines + position if lines else 0
    return lines[position]


def _short(value: object) -> str:
    return shorten(getattr(value, "item", lambda: value)())


def _value_errors(column: Column, values: pd.Series, source: str, lines: Lines) -> list[SchemaError]:
    try:
        _check_column(column, values, source, lines)
        if column.kind == "str":
            _check_texts(values, source, lines)
    except SchemaError as error:
        return [error]
    return []


def _check_column(column: Column, values: pd.Series, source: str, lines: Lines) -> None:
    for holds, problem in column.checks(values):
        if not holds.all():
            position = int((~holds).to_numpy().argmax())
            value = values.iloc[position]
            got = "a blank" if pd.isna(value) or value == "" else _short(value)
            raise SchemaError(str(values.name), f"{problem}, got {got}", source, line_of(lines, position))


def _check_encodable(column: pd.Series, source: str, lines: Lines) -> None:
    for value in column.unique():
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            position = int((column == value).to_numpy().argmax())
            got = f"must hold no control or invisible character, got {_short(value)}"
            raise SchemaError(str(column.name), got, source, line_of(lines, position))


def _check_texts(column: pd.Series, source: str, lines: Lines) -> None:
    problem_of: Callable[[str], str] = date_problem if column.name == "date" else _text_problem
    for value in column.unique():
        problem = problem_of(value)
        if problem:
            position = int((column == value).to_numpy().argmax())
            got = f"{problem}, got {_short(value)}"
            raise SchemaError(str(column.name), got, source, line_of(lines, position))


def _text_problem(value: str) -> str:
    if not value.isprintable():
        return "must hold no control or invisible character"
    if value != value.strip():
        return "must not begin or end with a space"
    if value.startswith(("=", "+", "-", "@")):
        return "must not begin with =, +, - or @, which a spreadsheet would run as a formula"
    return ""


def date_problem(value: str) -> str:
    """Return what is wrong with a date; empty for a valid or blank one."""
    layout = {0: "", 4: "%Y", 7: "%Y-%m", 10: "%Y-%m-%d"}.get(len(value), "none")
    try:
        dt.datetime.strptime(value, layout)
    except ValueError:
        return "must be a date such as 2025-03-31"
    return ""
