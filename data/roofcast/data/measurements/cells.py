"""Parser of cells: typed columns of the rows that people write, and what is wrong with which row."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import MAX_GIVEN, choice_error
from roofcast.data.measurements.column_names import LONG_NAMES
from roofcast.data.measurements.column_types import MAX_TEXT, Column
from roofcast.data.measurements.table_rules import BOOLEANS, date_problem

ColumnArray = npt.NDArray[Any]
Table = dict[str, ColumnArray]
"""Columns by name, each an array of one cell a row."""

MAX_GUESS: Final = 20
"""Wrong words of a column for which similar choices are looked up, which takes time for each."""

_FLAG_VALUES: Final = {**{text: float(value) for text, value in BOOLEANS.items()}, "": math.nan}
_NUMBER_TYPES: Final = frozenset({int, float, type(None)})
_TEXT_TYPES: Final = frozenset({str, type(None)})
_NESTED_TYPES: Final = frozenset({list, tuple, dict, set, np.ndarray})


class Finding(NamedTuple):
    """Rows that break a rule.

    - `mask`: shape (n_row,)
    - `problem`: The same for all rows, or a function of the row's index.
    - `uses`: Other columns that the rule reads: if one of them has a problem, this one follows from it.
    """

    mask: ColumnArray
    field: str
    problem: str | Callable[[int], str]
    uses: tuple[str, ...] = ()
    status: str = "invalid"


@dataclass(frozen=True)
class CellParser:
    """Parser of rows of a schema.

    `defaults`: values of blank cells. Other blanks are NaN or an empty text, and a problem where the column is not
    nullable. `always`: columns of every parsed table.
    """

    schema: Mapping[str, Column]
    defaults: Mapping[str, Any]
    always: Collection[str]

    def parse(self, columns: Mapping[str, ColumnArray]) -> tuple[Table, list[Finding]]:
        """Return the typed columns, those of `always` first, and what is wrong with their cells.

        Columns may have the spelling of `LONG_NAMES`. A wrong cell is blank in the result. Flags are 1 for true, 0
        for false and NaN for blank.
        """
        n_row = len(next(iter(columns.values())))
        given, findings = with_short_names(columns)
        table: Table = {}
        for name in dict.fromkeys((*self.always, *given)):
            column = self.schema[name]
            parse = {"float": self._parse_numbers, "str": self._parse_texts, "bool": _parse_flags}[column.kind]
            blank = "" if column.kind == "str" else math.nan
            if name in given:
                table[name] = parse(name, given[name], findings)
            else:
                default = self.defaults.get(name, blank)
                table[name] = np.full(n_row, default, dtype=object if column.kind == "str" else float)
                if self._is_required(name):
                    findings.append(Finding(np.ones(n_row, dtype=bool), name, "must be given"))
        return table, findings

    def _is_required(self, name: str) -> bool:
        column = self.schema[name]
        is_needed = not column.is_nullable if column.kind == "float" else column.min_length > 0
        return is_needed and name not in self.defaults

    def _parse_numbers(self, name: str, cells: ColumnArray, findings: list[Finding]) -> ColumnArray:
        low, high = self.schema[name].low, self.schema[name].high
        values = _as_numbers(cells)
        if values is not None:
            is_blank = np.isnan(values)
        else:
            cells = strip_cells(cells)
            is_blank = cells == ""
            values = np.array(pd.to_numeric(np.where(is_blank, np.nan, cells), errors="coerce"), dtype=float)
        values[is_blank] = self.defaults.get(name, math.nan)
        is_wrong = ~is_blank & ~((values >= low) & (values <= high))
        kind = "a number"
        if self.schema[name].is_whole:
            kind, is_wrong = "a whole number", is_wrong | (np.nan_to_num(values % 1) != 0)
        if is_wrong.any():
            values[is_wrong] = np.nan
            message = f"must be {kind} from {low:,.12g} to {high:,.12g}"
            findings.append(Finding(is_wrong, name, lambda i: f"{message}, got {str(cells[i])[:40]!r}"))
        if is_blank.any() and self._is_required(name):
            findings.append(Finding(is_blank, name, "must be given"))
        return values

    def _parse_texts(self, name: str, cells: ColumnArray, findings: list[Finding]) -> ColumnArray:
        text = strip_cells(cells)
        if cells.dtype == object and not _NESTED_TYPES.isdisjoint(map(type, cells.tolist())):
            is_nested = np.array([type(cell) in _NESTED_TYPES for cell in cells.tolist()])
            findings.append(Finding(is_nested, name, "must be one text, not a list or an object"))
            text[is_nested] = ""
        if name in self.defaults:
            text[text == ""] = self.defaults[name]
        elif self._is_required(name):
            findings.append(Finding(text == "", name, "must be given"))
        if synonym := self.schema[name].synonym:
            choices = self.schema[name].choices
            meant = {
                word: word if word in choices else synonym(word) or word for word in dict.fromkeys(text.tolist())
            }
            text = object_column(len(text), [*map(meant.__getitem__, text.tolist())])
        if wrong := self._wrong_texts(name, dict.fromkeys(text.tolist())):
            is_wrong = np.array([word in wrong for word in text.tolist()], dtype=bool)
            before = text.copy()
            text[is_wrong] = ""
            findings.append(Finding(is_wrong, name, lambda i: wrong[before[i]]))
        return text

    def _wrong_texts(self, name: str, texts: Collection[str]) -> dict[str, str]:
        choices = tuple(filter(None, self.schema[name].choices))
        if choices:
            unknown = [word for word in texts if word and word not in choices]
            plain = f"must be one of {', '.join(choices)}"
            guesses = {word: choice_error(name, word, choices).problem for word in islice(unknown, MAX_GUESS)}
            return {word: guesses.get(word) or _with_given(plain, word) for word in unknown}
        if name == "date":
            message = "must be a date such as 2025-03-31, 2025-03 or 2025"
            return {word: _with_given(message, word) for word in texts if date_problem(word)}
        return {word: f"must be at most {MAX_TEXT} characters long" for word in texts if len(word) > MAX_TEXT}


def with_short_names(columns: Mapping[str, ColumnArray]) -> tuple[Mapping[str, ColumnArray], list[Finding]]:
    """Return the columns by their short names, and the rows that have both spellings of one."""
    if LONG_NAMES.keys().isdisjoint(columns):
        return columns, []
    short = {name: cells for name, cells in columns.items() if name not in LONG_NAMES}
    findings = []
    for long, name in LONG_NAMES.items():
        if long not in columns:
            continue
        if name not in columns:
            short[name] = columns[long]
            continue
        has_long, has_short = (strip_cells(columns[one]) != "" for one in (long, name))
        findings.append(Finding(has_long & has_short, long, f"is given as {name} too; keep one"))
        short[name] = np.where(has_short, columns[name].astype(object), columns[long].astype(object))
    return short, findings


def strip_cells(cells: ColumnArray) -> ColumnArray:
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


def _as_numbers(cells: ColumnArray) -> ColumnArray | None:
    if cells.dtype.kind not in "iuf" and not {*map(type, cells.tolist())} <= _NUMBER_TYPES:
        return None
    try:
        return cells.astype(float)
    except OverflowError:  # an integer beyond the range of floats
        return None


def _parse_flags(name: str, cells: ColumnArray, findings: list[Finding]) -> ColumnArray:
    texts = [text.lower() for text in strip_cells(cells).tolist()]
    is_wrong = np.array([text not in _FLAG_VALUES for text in texts], dtype=bool)
    findings.append(Finding(is_wrong, name, lambda i: f"must be true or false, got {texts[i][:40]!r}"))
    return np.array([_FLAG_VALUES.get(text, math.nan) for text in texts])


def _with_given(message: str, word: str) -> str:
    return f"{message}, got {word[:MAX_GIVEN]!r}"
