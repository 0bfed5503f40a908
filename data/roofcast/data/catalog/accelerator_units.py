"""Numbers of an accelerator that are off by more than hardware ever was: a slip of the unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from roofcast.data import units
from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec

BEYOND: Final = 10.0
"""A number may be this many times below the least, or above the most, of the accelerators that are known."""

SHEET_NUMBERS: Final[Mapping[str, Callable[[AcceleratorSpec], list[float]]]] = {
    "memory_gib": lambda s: [s.memory_byte / units.BYTE_PER_GIB],
    "bandwidth_gb_per_s": lambda s: [s.bandwidth_byte_per_s / units.BYTE_PER_GB],
    "link_bandwidth_gb_per_s": lambda s: [s.link_bandwidth_byte_per_s / units.BYTE_PER_GB],
    "l2_mib": lambda s: [s.l2_byte / units.BYTE_PER_MIB] if s.l2_byte else [],
    "tdp_w": lambda s: [s.tdp_w] if s.tdp_w else [],
    "peak_..._tflop_per_s": lambda s: [peak / units.FLOP_PER_TFLOP for peak in s.peak_flop_per_s.values()],
    "bandwidth_gb_per_s over memory_gib": lambda s: [
        s.bandwidth_byte_per_s / units.BYTE_PER_GB / (s.memory_byte / units.BYTE_PER_GIB)
    ],
    "peak_..._tflop_per_s over bandwidth_gb_per_s": lambda s: [
        peak / units.FLOP_PER_TFLOP / (s.bandwidth_byte_per_s / units.BYTE_PER_GB)
        for peak in s.peak_flop_per_s.values()
    ],
}
"""What is looked at, by the names and in the units of an accelerator's file."""


def check_sheet_units(spec: AcceleratorSpec, known: Iterable[AcceleratorSpec]) -> None:
    """Refuse an accelerator if a number, or the ratio of two, is `BEYOND` times out of all that is known.

    What is unusual but may be true is left to `roofcast.data.catalog.accelerator_lint`.

    Parameters
    ----------
    spec
        The accelerator.
    known
        Others, whose numbers are right.

    Raises
    ------
    InputError
        At the first such number; names it as the file does.

    Examples
    --------
    TB/s where GB/s are wanted:

    >>> from roofcast.data.catalog import load_catalog
    >>> known = load_catalog().accelerators
    >>> h100 = known["nvidia-h100-sxm-80gb"]
    >>> check_sheet_units(h100, known.values())
    >>> check_sheet_units(h100.model_copy(update={"bandwidth_byte_per_s": 3.35e9}), known.values())
    Traceback (most recent call last):
    ...
    roofcast.data.errors.InputError: bandwidth_gb_per_s: is 3.35, but 54 to 8000 in all that are known; mend the unit
    """
    known = tuple(known)
    for name, numbers in SHEET_NUMBERS.items():
        usual = [number for other in known for number in numbers(other)]
        for number in numbers(spec):
            if not min(usual) / BEYOND <= number <= max(usual) * BEYOND:
                band = f"{min(usual):.3g} to {max(usual):.4g}"
                raise InputError(name, f"is {number:.3g}, but {band} in all that are known; mend the unit")
