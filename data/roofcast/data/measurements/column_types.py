"""Column types of the measurement tables: kind, bounds and choices."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from roofcast.data.precision_names import parse_precision, parse_weights
from roofcast.data.specs import PRECISIONS, STATISTICS

if TYPE_CHECKING:
    import pandas as pd

MAX_TEXT: int = 400
"""Longest text of a cell, in characters."""


@dataclass(frozen=True, slots=True)
class Column:
    """Kind, bounds and choices of a column.

    - `is_nullable`: Whether a number may be unknown (NaN); an unknown text is blank.
    - `low`, `high`: Inclusive bounds of numbers.
    - `choices`: Allowed texts; empty for any text of `min_length` to `MAX_TEXT` characters.
    - `meaning`: What a person has to know to write it; blank for a column of results.
    - `synonym`: Returns the choice that another word means; blank if it means none.
    - `role`: What a row needs it for: a question, a setting, an outcome, or a result that is neither.
    - `is_whole`: Whether its numbers are whole.
    - `default`: Value of an absent or blank cell that cannot be unknown.
    """

    kind: Literal["float", "str", "bool"]
    is_nullable: bool = False
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    min_length: int = 0
    meaning: str = ""
    synonym: Callable[[str], str] | None = None
    role: str = ""
    is_whole: bool = False
    default: str | bool = ""

    def checks(self, values: pd.Series) -> Iterator[tuple[pd.Series, str]]:
        """Yield, for each rule, whether each value satisfies it, and the problem of those that do not."""
        if self.kind == "float":
            if not self.is_nullable:
                yield values.notna(), "must be given"
            yield (
                values.isna() | values.between(self.low, self.high),
                f"must be between {self.low:g} and {self.high:g}",
            )
        elif self.kind == "str":
            if self.choices:
                yield values.isin(self.choices), f"must be one of {', '.join(c or '(blank)' for c in self.choices)}"
            lengths = values.str.len()
            problem = f"must be a text of {self.min_length} to {MAX_TEXT} characters"
            yield lengths.between(self.min_length, MAX_TEXT), problem


_CHOICES: Final = {"precision": ("", *PRECISIONS), "weights": ("", *PRECISIONS), "statistic": STATISTICS}
_SYNONYMS: Final[Mapping[str, Callable[[str], str]]] = {
    "precision": parse_precision,
    "weights": lambda name: parse_weights(name).precision,
}


def read_columns(file: str, known: Mapping[str, Column] = MappingProxyType({})) -> dict[str, Column]:
    """Return the columns of a table of this folder.

    `known`: columns of another table, which those without a kind are taken from.
    """
    with Path(__file__).with_name(file).open(encoding="utf-8", newline="") as stream:
        return {row["name"]: _parse(row, known) for row in csv.DictReader(stream)}


def _parse(row: Mapping[str, str], known: Mapping[str, Column]) -> Column:
    *required, kind = row["kind"].split() or [""]
    role, meaning, is_whole = row["role"], row["meaning"], bool(row["is_whole"])
    if not kind:
        return replace(known[row["name"]], role=role)
    if kind == "flag":
        return Column("bool", role=role, meaning=meaning, default=row["default"] == "true")
    if kind == "number":
        low, high = float(row["low"]), float(row["high"])
        return Column("float", not required, low, high, role=role, meaning=meaning, is_whole=is_whole)
    is_required = bool(required) or kind == "statistic"
    words = row["choices"].split()
    choices = _CHOICES.get(kind) or (() if not words else tuple(words) if required else ("", *words))
    length, default = int(is_required), row["default"]
    return Column("str", False, 0.0, 0.0, choices, length, meaning, _SYNONYMS.get(kind), role=role, default=default)


def of_role(schema: Mapping[str, Column], *roles: str) -> dict[str, Column]:
    """Return the columns of some roles."""
    return {name: column for name, column in schema.items() if column.role in roles}
