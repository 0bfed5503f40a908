"""What the user says of benchmark files: it fills blanks, and never silently overrides what a file says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.data.importers.format import Given
from roofcast.data.measurements.schema import CONTEXT_COLUMNS, NUMBER_COLUMNS, QUESTION_COLUMNS

_NEVER: Final = {
    "statistic", "campaign", "status", "derived", "n_input_token_at_statistic", "n_output_token_at_statistic",
}  # fmt: skip
GIVABLE_COLUMNS: Final = tuple(name for name in (*QUESTION_COLUMNS, *CONTEXT_COLUMNS) if name not in _NEVER)
"""Columns that may be given: those of the question and of how it was observed, never an outcome."""

EXAMPLES: Final = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "accelerator": "nvidia-h100-sxm-80gb",
    "n_accelerator": "8",
    "n_input_token": "1024",
    "n_output_token": "128",
    "concurrency": "16",
}
"""A value of each column without which no row stands, for messages."""


class MissingColumnsError(SchemaError):
    """A benchmark file leaves blank what every row must have; says all that is missing, and how to give it.

    Parameters
    ----------
    columns
        What is missing, of `EXAMPLES`.
    source, line
        File and line of the first row that lacks it.

    Examples
    --------
    >>> print(MissingColumnsError(["n_accelerator", "concurrency"]))
    n_accelerator: is not in the file; give what is missing, such as --set n_accelerator=8 --set concurrency=16
    """

    def __init__(self, columns: Sequence[str], source: str = "", line: int = 0) -> None:
        self.columns = tuple(columns)
        problem = f"is not in the file; give what is missing, such as {' '.join(self.examples)}"
        super().__init__(columns[0], problem, source, line)
        self.args = (self.columns, source, line)

    @property
    def examples(self) -> list[str]:
        """Options of the command line that would give what is missing."""
        return [part for column in self.columns for part in ("--set", f"{column}={EXAMPLES[column]}")]


def check_given(given: Given) -> dict[str, object]:
    """Return what is given, with numbers as numbers and the space around texts removed.

    Parameters
    ----------
    given
        Column to value, or ``column:name in the file`` to the name that is wanted instead.

    Raises
    ------
    UnknownNameError
        If there is no such column, or none that may be given.
    InputError
        If a value is blank or of the wrong kind.

    Examples
    --------
    >>> check_given({"tp": "8", "model:llama": "meta-llama/Llama-2-7b-hf"})
    {'tp': 8.0, 'model:llama': 'meta-llama/Llama-2-7b-hf'}
    """
    checked: dict[str, object] = {}
    for key, value in given.items():
        column = key.partition(":")[0]
        if column not in GIVABLE_COLUMNS:
            raise UnknownNameError("column", column, GIVABLE_COLUMNS)
        if is_blank(value):
            raise InputError(key, "must not be blank where it is given")
        checked[key] = parse_cell(column, value)
    return checked


def parse_cell(column: str, value: object) -> object:
    """Return a value as the column holds it.

    Raises
    ------
    InputError
        If it must be a number and is none.
    """
    if column not in NUMBER_COLUMNS:
        return value if column == "flash_attention" and isinstance(value, bool) else str(value).strip()
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(column, f"must be a number, got {str(value)[:60]!r}")
    return number


def fill(cells: Mapping[str, Any], given: Given, place: str, line: int = 0) -> dict[str, Any]:
    """Return the cells of a row with its blanks filled.

    Raises
    ------
    SchemaError
        If a cell holds another value than is given for it.

    Examples
    --------
    >>> fill({"model": "llama", "tp": ""}, {"tp": 8.0, "model:llama": "meta-llama/Llama-2-7b-hf"}, "run.json")
    {'model': 'meta-llama/Llama-2-7b-hf', 'tp': 8.0}
    """
    filled = dict(cells)
    for key, value in given.items():
        column, _, renamed = key.partition(":")
        current = filled.get(column)
        if renamed:
            if str(current) == renamed:
                filled[column] = value
        elif is_blank(current):
            filled[column] = value
        elif not _same(current, value):
            said, wanted = (str(cell) if str(cell).isprintable() else ascii(cell) for cell in (current, value))
            problem = (
                f"the file says {said[:60]!r} and {wanted[:60]!r} was given; leave it out, or give "
                f"{column}:{said[:60]}={wanted[:60]} to rename it"
            )
            raise SchemaError(column, problem, place, line)
    return filled


def fill_table(table: pd.DataFrame, given: Given, place: str, first_line: int = 0) -> pd.DataFrame:
    """Return a table of rows with its blanks filled; see `fill`.

    Raises
    ------
    SchemaError
        If a cell holds another value than is given for it.
    """
    if not given:
        return table
    rows: list[dict[Any, Any]] = table.to_dict("records")
    lines = [first_line + i if first_line else 0 for i in range(len(rows))]
    return pd.DataFrame([fill(row, given, place, line) for row, line in zip(rows, lines, strict=True)])


def check_known(cells: Mapping[str, Any], place: str, line: int = 0) -> None:
    """Refuse a row that lacks what every row must have, and say how to give it.

    Raises
    ------
    MissingColumnsError
        If model, accelerator, their count, a request length or the load is blank.
    """
    is_loaded = not is_blank(cells.get("request_rate")) or cells.get("load") == "offline"
    missing = [name for name in EXAMPLES if is_blank(cells.get(name)) and not (name == "concurrency" and is_loaded)]
    if missing:
        raise MissingColumnsError(missing, place, line)


def is_blank(value: object) -> bool:
    """Return whether nothing stands in a cell."""
    return value is None or value != value or str(value).strip() == ""  # noqa: PLR0124


def _same(current: object, value: object) -> bool:
    try:
        return math.isclose(float(str(current)), float(str(value)), rel_tol=1e-9)
    except ValueError:
        return str(current).strip().lower() == str(value).strip().lower()
