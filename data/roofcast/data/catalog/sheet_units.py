"""Units of data sheets (GiB, GB/s, TFLOP/s) in tables and files, converted to the SI units of specs."""

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from roofcast.data import units
from roofcast.data.errors import InputError, shorten
from roofcast.data.specs import PRECISIONS

_SI: Final[Mapping[str, tuple[str, float]]] = {
    "memory_gib": ("memory_byte", units.BYTE_PER_GIB),
    "host_memory_gib": ("memory_byte", units.BYTE_PER_GIB),
    "bandwidth_gb_per_s": ("bandwidth_byte_per_s", units.BYTE_PER_GB),
    "link_bandwidth_gb_per_s": ("link_bandwidth_byte_per_s", units.BYTE_PER_GB),
    "l2_mib": ("l2_byte", units.BYTE_PER_MIB),
}
"""Spec field and factor to its SI unit, by column."""

PEAK_COLUMNS: Final[Mapping[str, str]] = {f"peak_{p}_tflop_per_s": p for p in PRECISIONS}
"""Precision by column."""


def fields_in_si(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a spec from cells in data-sheet units; other cells are unchanged.

    Raises `InputError` if a cell with a unit is not a number.

    Examples
    --------
    >>> fields_in_si({"memory_gib": "80", "name": "H100"})
    {'memory_byte': 85899345920.0, 'name': 'H100'}
    """
    fields: dict[str, Any] = {}
    for name, value in row.items():
        field, factor = _SI.get(name, (name, None))
        fields[field] = value if factor is None else _scale(name, value, factor)
    return fields


def with_peaks(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with every ``peak_..._tflop_per_s`` collected in `peak_flop_per_s`.

    Raises `InputError` if a peak is not a number.
    """
    peaks = {
        precision: _scale(column, fields[column], units.FLOP_PER_TFLOP)
        for column, precision in PEAK_COLUMNS.items()
        if column in fields
    }
    return {**{n: v for n, v in fields.items() if n not in PEAK_COLUMNS}, "peak_flop_per_s": peaks}


def _scale(name: str, value: object, factor: float) -> float:
    try:
        scaled = float(Decimal(str(value)) * Decimal(factor))
    except (InvalidOperation, OverflowError) as error:
        raise InputError(name, f"must be a number, got {shorten(value)}") from error
    if not math.isfinite(scaled):
        raise InputError(name, f"must be a finite number, got {shorten(value)}")
    return scaled
