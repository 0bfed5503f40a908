"""Reading of the catalogue's tables; the only place where their data-sheet units turn into SI."""

from __future__ import annotations

import csv
import importlib.resources
import math
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
    return tuple(_specs("accelerators.csv", AcceleratorSpec, with_peaks))


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
            yield kind.parse(prepare(fields_in_si(row)))
        except InputError as error:
            raise SchemaError(error.field, error.problem, file, line) from error


def fields_in_si(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a spec from cells in the units of data sheets; other cells stay as they are.

    Raises
    ------
    InputError
        If such a cell is no number; names the cell.

    Examples
    --------
    >>> fields_in_si({"memory_gib": "80", "name": "H100"})
    {'memory_byte': 85899345920.0, 'name': 'H100'}
    """
    fields: dict[str, Any] = {}
    for name, value in row.items():
        field, factor = _SI.get(name, (name, None))
        fields[field] = value if factor is None else _scaled(name, value, factor)
    return fields


def with_peaks(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with ``peak_..._tflop_per_s`` gathered into `peak_flop_per_s`.

    Raises
    ------
    InputError
        If a peak is no number; names the cell.
    """
    peaks = {
        precision: _scaled(column, fields[column], units.FLOP_PER_TFLOP)
        for column, precision in PEAK_COLUMNS.items()
        if column in fields
    }
    return {**{n: v for n, v in fields.items() if n not in PEAK_COLUMNS}, "peak_flop_per_s": peaks}


def _scaled(name: str, value: object, factor: float) -> float:
    try:
        scaled = float(Decimal(str(value)) * Decimal(factor))
    except (InvalidOperation, OverflowError) as error:
        raise InputError(name, f"must be a number, got {_short(value)}") from error
    if not math.isfinite(scaled):
        raise InputError(name, f"must be a finite number, got {_short(value)}")
    return scaled


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
