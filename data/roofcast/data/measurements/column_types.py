"""Column types of the measurement tables: kind, bounds and choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from roofcast.data.precision_names import parse_precision
from roofcast.data.specs import PRECISIONS

if TYPE_CHECKING:
    import pandas as pd

MAX_TEXT: int = 400
"""Longest text of a cell, in characters."""


@dataclass(frozen=True, slots=True)
class Column:
    """Kind, bounds and choices of a column.

    Parameters
    ----------
    is_nullable
        Whether a number may be unknown (NaN); an unknown text is blank.
    low, high
        Inclusive bounds of numbers.
    choices
        Allowed texts; empty for any text of `min_length` to `MAX_TEXT` characters.
    meaning
        What a person has to know to write it; blank for a column of results.
    synonym
        Returns the choice that another word means; blank if it means none.
    """

    kind: Literal["float", "str", "bool"]
    is_nullable: bool = False
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    min_length: int = 0
    meaning: str = ""
    synonym: Callable[[str], str] | None = None

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


def text(*choices: str, meaning: str = "") -> Column:
    """Return a column of texts that may be blank."""
    return Column("str", choices=("", *choices) if choices else (), meaning=meaning)


def precision(meaning: str) -> Column:
    """Return a column of precisions that may be blank."""
    return Column("str", choices=("", *PRECISIONS), meaning=meaning, synonym=parse_precision)


def required_text(*choices: str, meaning: str = "") -> Column:
    """Return a column of texts that are not blank."""
    return Column("str", choices=choices, min_length=1, meaning=meaning)


def number(low: float, high: float, meaning: str = "") -> Column:
    """Return a column of numbers that may be unknown."""
    return Column("float", is_nullable=True, low=low, high=high, meaning=meaning)


def required_number(low: float, high: float, meaning: str = "") -> Column:
    """Return a column of numbers that must be known."""
    return Column("float", low=low, high=high, meaning=meaning)
