"""Reading of the catalogue's tables; the only place where their data-sheet units turn into SI."""

from __future__ import annotations

import csv
import importlib.resources
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

from roofcast.data import units
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.specs import PRECISIONS, AcceleratorSpec, ModelSpec, Offer, Spec

SpecT = TypeVar("SpecT", bound=Spec)

_PACKAGE: Final = "roofcast.data.catalog"

_SI: Final[Mapping[str, tuple[str, float]]] = {
    "memory_gib": ("memory_byte", units.BYTE_PER_GIB),
    "host_memory_gib": ("memory_byte", units.BYTE_PER_GIB),
    "bandwidth_gb_per_s": ("bandwidth_byte_per_s", units.BYTE_PER_GB),
    "link_bandwidth_gb_per_s": ("link_bandwidth_byte_per_s", units.BYTE_PER_GB),
    "l2_mib": ("l2_byte", units.BYTE_PER_MIB),
}
"""Column of a table to field of a spec and factor."""

PEAK_COLUMNS: Final[Mapping[str, str]] = {f"peak_{p}_tflop_per_s": p for p in PRECISIONS}


def load_models() -> tuple[ModelSpec, ...]:
    """Return the models of ``models.csv``.

    Raises
    ------
    SchemaError
        If a row is no valid spec; names file, line and field.
    """
    return tuple(_specs("models.csv", ModelSpec, lambda fields: fields))


def load_accelerators() -> tuple[AcceleratorSpec, ...]:
    """Return the accelerators of ``accelerators.csv``.

    Raises
    ------
    SchemaError
        If a row is no valid spec; names file, line and field.
    """
    return tuple(_specs("accelerators.csv", AcceleratorSpec, _with_peaks))


def load_offers() -> tuple[Offer, ...]:
    """Return the offers of ``offers.csv``.

    Raises
    ------
    SchemaError
        If a row is no valid offer; names file, line and field.
    """
    return tuple(_specs("offers.csv", Offer, lambda fields: fields))


def load_aliases(file: str) -> dict[str, str]:
    """Return alias to id.

    Raises
    ------
    SchemaError
        If an alias is given twice.
    """
    aliases: dict[str, str] = {}
    for line, row in _rows(file):
        if row["alias"] in aliases:
            raise SchemaError("alias", f"{row['alias']!r} is given twice", file, line)
        aliases[row["alias"]] = row["id"]
    return aliases


def load_alias_precisions() -> dict[str, str]:
    """Return alias to precision, for the model aliases that name a quantised copy."""
    rows = (row for _, row in _rows("model_aliases.csv"))
    return {row["alias"]: row["weight_precision"] for row in rows if "weight_precision" in row}


def _rows(file: str) -> Iterator[tuple[int, dict[str, str]]]:
    text = importlib.resources.files(_PACKAGE).joinpath(file).read_text(encoding="utf-8")
    for line, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        yield line, {name: value for name, value in row.items() if value}


def _specs(file: str, kind: type[SpecT], prepare: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[SpecT]:
    for line, row in _rows(file):
        try:
            yield kind.parse(prepare(_in_si(row)))
        except InputError as error:
            raise SchemaError(error.field, error.problem, file, line) from error


def _in_si(row: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in row.items():
        if name in _SI:
            field, factor = _SI[name]
            fields[field] = _scaled(name, value, factor)
        else:
            fields[name] = value
    return fields


def _with_peaks(fields: dict[str, Any]) -> dict[str, Any]:
    peaks = {
        precision: _scaled(column, fields.pop(column), units.FLOP_PER_TFLOP)
        for column, precision in PEAK_COLUMNS.items()
        if column in fields
    }
    return {**fields, "peak_flop_per_s": peaks}


def _scaled(name: str, value: str, factor: float) -> float:
    try:
        return float(Decimal(value) * Decimal(factor))
    except InvalidOperation as error:
        raise InputError(name, f"must be a number, got {value!r}") from error
