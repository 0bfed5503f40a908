"""Layout of a benchmark file: a table of its fields, and their walker."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from roofcast.data.errors import InputError, SchemaError
from roofcast.data.importers.json_input import Node
from roofcast.data.specs import STATISTICS
from roofcast.data.units import S_PER_MS, S_PER_NS, S_PER_US

Unit = float | Callable[[Node], float]
"""Factor to our unit, or a function of the object that has the value; NaN makes a blank."""

S_PER_UNIT: Final = {"ns": S_PER_NS, "us": S_PER_US, "ms": S_PER_MS, "s": 1.0, "sec": 1.0, "seconds": 1.0}
"""Seconds by unit, as benchmark clients write units."""

OWN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {name: (name,) for name in STATISTICS}
"""Names of the statistics in a file with our names."""


class Field(NamedTuple):
    """Where a document holds an outcome, a length or a throughput.

    Parameters
    ----------
    column
        Column of the measurement table.
    name
        Dotted path of the value in its holder; ``{}`` is a statistic's name in the file.
    holder
        Dotted path of the object that holds the value.
    unit
        See `Unit`.
    """

    column: str
    name: str
    holder: str = ""
    unit: Unit = 1.0

    def read(self, document: Node, *statistic: str) -> float:
        """Return the value in our unit, by the first name of the statistic that has one; NaN if it is absent.

        Raises
        ------
        SchemaError
            If it is no finite number of at least 0, or its unit is unknown; names the path.
        """
        holder = document.at(*filter(None, self.holder.split(".")))
        for name in statistic or ("",):
            number = holder.at(*self.name.format(name).split(".")).number()
            if not math.isnan(number):
                return number * self.factor(holder)
        return math.nan

    def factor(self, holder: Node) -> float:
        """Return the factor to our unit of the values of an object."""
        return self.unit(holder) if callable(self.unit) else self.unit


def read_fields(document: Node, fields: Iterable[Field], *statistic: str) -> dict[str, float]:
    """Return the values of fields by column; NaN where absent."""
    return {field.column: field.read(document, *statistic) for field in fields}


def read_statistics(
    document: Node, fields: Sequence[Field], names: Mapping[str, tuple[str, ...]] = OWN_NAMES
) -> dict[str, dict[str, float]]:
    """Return the values of fields by statistic and column; NaN where absent.

    Parameters
    ----------
    names
        Names of each statistic in the file, the preferred one first.
    """
    return {statistic: read_fields(document, fields, *theirs) for statistic, theirs in names.items()}


def time_unit(default: str) -> Callable[[Node], float]:
    """Return the unit of times by the field ``unit`` of their holder, or else the default."""

    def unit(holder: Node) -> float:
        node = holder["unit"]
        return checked_unit(node, lambda: s_per_unit(node.text() or default))

    return unit


def s_per_unit(unit: str) -> float:
    """Return the seconds of a unit of time.

    Raises
    ------
    InputError
        If the unit is not in `S_PER_UNIT`.
    """
    if unit not in S_PER_UNIT:
        raise InputError("unit", f"must be one of {', '.join(S_PER_UNIT)}, got {unit[:60]!r}")
    return S_PER_UNIT[unit]


def checked_unit(node: Node, factor: Callable[[], float]) -> float:
    """Return a factor; where the unit is unknown, the error has its place.

    Raises
    ------
    SchemaError
        If the unit is unknown.
    """
    try:
        return factor()
    except SchemaError:
        raise
    except InputError as error:
        raise node.error(error.problem) from error
