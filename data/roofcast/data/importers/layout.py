"""Layouts of benchmark documents: one table of their fields, ``layouts.toml``, and one walker."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from roofcast.data.importers.client_runs import Run
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.json_input import Node, check_keys
from roofcast.data.importers.run_plausibility import Statistics
from roofcast.data.specs import STATISTICS
from roofcast.data.units import S_PER_MS, S_PER_UNIT

UNKNOWN_UNIT: Final = "no unit"


def _stated(units: Mapping[str, float], default: str = UNKNOWN_UNIT) -> Callable[[Node], float]:
    def factor(holder: Node) -> float:
        unit = holder["unit"].text() or default
        if unit not in units:
            known = ", ".join(one for one in units if one not in ("", UNKNOWN_UNIT))
            raise holder["unit"].error(f"must be one of {known}, got {unit[:60]!r}")
        return units[unit]

    return factor


def _counted(unit: float) -> Callable[[Node], float]:
    return lambda holder: unit if holder["count"].number() > 0 else math.nan


UNITS: Final[Mapping[str, Callable[[Node], float]]] = {
    "": lambda _: 1.0,
    "ms": lambda _: S_PER_MS,
    "time": _stated(S_PER_UNIT),
    "time_or_s": _stated(S_PER_UNIT, "s"),
    "rate": _stated(
        dict.fromkeys(("tokens/sec", "tokens/s", "requests/sec", "requests/s", "per sec", "", UNKNOWN_UNIT), 1.0)
    ),
    "count": _stated(dict.fromkeys(("tokens", "requests", "count", "", UNKNOWN_UNIT), 1.0)),
    "positive_mean": lambda holder: 1.0 if holder["mean"].number() > 0 else math.nan,
    "counted": _counted(1.0),
    "counted_ms": _counted(S_PER_MS),
}
"""By unit in a layout, the factor to ours of the object that holds the value, which may state its unit, or how many
values it summarises: NaN makes a blank."""


class Field(NamedTuple):
    """Where a document holds a value: the object, the value in it with ``{}`` for a statistic, and the unit."""

    holder: tuple[str, ...]
    name: str
    unit: Callable[[Node], float]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the field of a path and its unit, such as ``metrics.{}_ms ms``."""
        path, _, unit = text.partition(" ")
        *holder, name = path.split(".")
        return cls(tuple(holder), name, UNITS[unit])

    def read(self, document: Node, *names: str) -> float:
        """Return the value in our unit, by the first name of the statistic that has one; NaN if it is absent.

        Raises `SchemaError` if it is no finite number of at least 0, or its unit is unknown; names the path.
        """
        holder = document.at(*self.holder)
        for name in names or ("",):
            number = holder.at(*self.name.format(name).split(".")).number()
            if not math.isnan(number):
                return number * self.unit(holder)
        return math.nan


@dataclass(frozen=True)
class Layout:
    """Layout of a tool's documents; see ``layouts.toml``."""

    tables: Mapping[str, Mapping[str, Sequence[Field]]]
    names: Mapping[str, Sequence[str]]
    constants: Mapping[str, Any]
    required: Sequence[str]
    tool: str

    def read(self, document: Node, table: str, *names: str) -> dict[str, float]:
        """Return the values of a table by column; NaN where absent. `names` are those of a statistic."""
        return {
            column: first_known(field.read(document, *names) for field in fields)
            for column, fields in self.tables.get(table, {}).items()
        }

    def statistics(self, document: Node) -> dict[str, dict[str, float]]:
        """Return the latencies by statistic and column; NaN where absent. Values of `mean` stand before its own."""
        statistics = {one: self.read(document, "latencies", *names) for one, names in self.names.items() if names}
        means = self.read(document, "mean")
        statistics["mean"] |= {column: value for column, value in means.items() if not math.isnan(value)}
        return statistics

    def lengths(self, document: Node) -> dict[str, float]:
        """Return the mean lengths of requests, and of their deviation the coefficient of variation."""
        lengths = self.read(document, "lengths")
        deviation, n_output = lengths.pop("length_deviation"), lengths["n_output_token"]
        return lengths | {"length_variation": deviation / n_output if n_output > 0 else math.nan}

    def cells(self, document: Node) -> dict[str, Any]:
        """Return the columns of the run that the tool implies and the document has.

        Raises `SchemaError` if the document lacks a field that every one of the tool has.
        """
        check_keys(document, self.required, self.tool)
        return {**self.constants, **self.read(document, "cells")}

    def run(self, document: Node, cells: Mapping[str, Any], statistics: Statistics | None = None) -> Run:
        """Return the run of a document with its columns; the statistics are those of the latencies by default."""
        outcomes = self.statistics(document) if statistics is None else statistics
        return Run(document.place, document.line, cells, outcomes, self.read(document, "totals"))


@functools.cache
def layout(name: str) -> Layout:
    """Return the layout of a name in ``layouts.toml``."""
    facts = fact_table("layouts")[name]
    tables = {
        table: {
            column: [Field.parse(one) for one in ([paths] if isinstance(paths, str) else paths)]
            for column, paths in fields.items()
        }
        for table, fields in facts.items()
        if table not in ("names", "constants", "required", "tool")
    }
    names = {statistic: (statistic,) for statistic in STATISTICS} | facts.get("names", {})
    return Layout(tables, names, facts.get("constants", {}), facts.get("required", ()), facts.get("tool", ""))


def first_known(numbers: Iterable[float]) -> float:
    """Return the first number that is known; NaN if none is."""
    return next((number for number in numbers if not math.isnan(number)), math.nan)
