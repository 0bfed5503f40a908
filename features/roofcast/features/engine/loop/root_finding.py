"""Where many growing functions are zero, all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from roofcast.features.arrays import FloatArray, RowIndex

Function = Callable[[FloatArray], FloatArray]

_N_STEP: Final = 24
_N_BOLD: Final = 7
"""Steps after which the cautious rule takes over."""

_NOTHING: Final = 1e-13
_FEWER: Final = 0.5
"""Share of the rows still sought, below which the others are left out of the work."""


def find_roots(
    of_rows: Callable[[RowIndex], Function], low: FloatArray, high: FloatArray, f_low: FloatArray, f_high: FloatArray
) -> FloatArray:
    """Return where each row's function, of slope 1 at most, is zero, or `high` where it is not above zero there.

    Parameters
    ----------
    of_rows
        From places of rows to their function, of their arguments; it is asked again for fewer as rows are found.
    low, high, f_low, f_high : shape (n_row,)
        Ends and the functions there, below zero at the first.

    Notes
    -----
    Regula falsi after a step of slope 1. What an end that stays is worth is made smaller, by Anderson and Bjorck's
    rule at first, and by halves when that has not led there soon.

    References
    ----------
    N. Anderson and A. Bjorck, "A New High Order Method of Regula Falsi Type for Computing a Root of an Equation", BIT
    13, 1973; M. Dowell and P. Jarratt, "A modified regula falsi method for computing the root of an equation", BIT
    11, 1971 (halves: the Illinois rule).

    Examples
    --------
    >>> half = lambda rows: lambda x: x / 2 - np.array([1.0, 3.0, 9.0])[rows]
    >>> f_low, f_high = np.array([-1.0, -3.0, -9.0]), np.array([4.0, 2.0, -4.0])
    >>> find_roots(half, np.zeros(3), np.full(3, 10.0), f_low, f_high).round(9)
    array([ 2.,  6., 10.])
    """
    rows: RowIndex = np.arange(len(low))
    is_sought = f_high > 0
    found, least, function = high.copy(), np.where(is_sought, np.inf, 0.0), of_rows(rows)
    x, side = np.minimum(low - f_low, high), np.zeros_like(low)
    for step in range(_N_STEP):
        f = function(x)
        is_nearer = np.abs(f) < least[rows]
        found[rows[is_nearer]], least[rows[is_nearer]] = x[is_nearer], np.abs(f[is_nearer])
        is_low = f < 0
        kept_high, kept_low = _shrunk(f, f_low, bold=step < _N_BOLD), _shrunk(f, f_high, bold=step < _N_BOLD)
        f_high = np.where(is_low, np.where(side < 0, f_high * kept_high, f_high), f)
        f_low = np.where(is_low, f, np.where(side > 0, f_low * kept_low, f_low))
        low, high = np.where(is_low, x, low), np.where(is_low, high, x)
        side = np.where(is_low, -1.0, 1.0)
        is_sought = least[rows] > _NOTHING
        if not is_sought.any():
            break
        if is_sought.mean() < _FEWER:
            low, high, f_low, f_high, side = (ends[is_sought] for ends in (low, high, f_low, f_high, side))
            rows = rows[is_sought]
            function = of_rows(rows)
        width = f_high - f_low
        x = np.clip(low - f_low * (high - low) / np.where(width > 0, width, 1.0), low, high)
    return found


def _shrunk(f: FloatArray, replaced: FloatArray, *, bold: bool) -> FloatArray:
    """Return the factor on the end that stays when `f` replaces the other again."""
    half = np.full_like(f, 0.5)
    if not bold:
        return half
    ratio = 1 - f / np.where(replaced == 0, 1.0, replaced)
    return np.where(ratio > 0, ratio, half)
