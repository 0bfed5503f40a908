"""Conversion factors of units; the rest of the code is in SI base units."""

from typing import Final

S_PER_MS: Final = 1e-3
S_PER_US: Final = 1e-6
S_PER_NS: Final = 1e-9
S_PER_H: Final = 3600.0
BYTE_PER_GB: Final = 1e9
BYTE_PER_GIB: Final = 2.0**30
BYTE_PER_MB: Final = 1e6
BYTE_PER_MIB: Final = 2.0**20
BYTE_PER_GBIT: Final = 1e9 / 8.0
FLOP_PER_TFLOP: Final = 1e12
TOKEN_PER_MTOKEN: Final = 1e6
PARAMETER_PER_BILLION: Final = 1e9
H_PER_MONTH: Final = 730.0
H_PER_YEAR: Final = 8760.0
W_PER_KW: Final = 1e3
W_PER_MW: Final = 1e-3
S_PER_UNIT: Final = {"ns": S_PER_NS, "us": S_PER_US, "ms": S_PER_MS, "s": 1.0, "sec": 1.0, "seconds": 1.0}
"""Seconds by unit, as benchmark tools write units."""


def s_from_ms(value_ms: float) -> float:
    """Return seconds.

    Examples
    --------
    >>> s_from_ms(250)
    0.25
    """
    return value_ms * S_PER_MS


def ms_from_s(value_s: float) -> float:
    """Return milliseconds.

    Examples
    --------
    >>> ms_from_s(0.25)
    250.0
    """
    return value_s / S_PER_MS
