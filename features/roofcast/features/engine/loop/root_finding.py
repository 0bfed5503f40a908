"""Vectorised root finding for increasing functions."""

from collections.abc import Callable
from typing import Final

import numpy as np

from roofcast.features.queries import FloatArray, RowIndex

Function = Callable[[FloatArray], FloatArray]

_N_STEP: Final = 24
_N_ANDERSON_STEP: Final = 7
"""Steps of Anderson and Bjorck's rule, after which the Illinois rule is used."""

_TOLERANCE: Final = 1e-13
_COMPACTION_RATIO: Final = 0.5
"""Share of unconverged rows below which converged rows are dropped from the evaluation."""


def find_roots(
    function_of: Callable[[RowIndex], Function],
    low: FloatArray,
    high: FloatArray,
    f_low: FloatArray,
    f_high: FloatArray,
) -> FloatArray:
    """Return the root of each row's function, or `high` where the function is not positive there.

    `function_of`: returns the function of the rows at some indices, of slope 1 at most; called again for the
    remaining rows as rows converge. `low`, `high`, `f_low` and `f_high`: shape (n_row,): bracket and function values
    at its ends, negative at `low`.

    Notes
    -----
    A first step of slope 1, then regula falsi. Where one end of the bracket is retained twice, its function value is
    reduced, at first by Anderson and Bjorck's rule, later by half. A row that has converged keeps its root, so it
    does not depend on the other rows.

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
    is_open = f_high > 0
    root, residual, function = high.copy(), np.where(is_open, np.inf, 0.0), function_of(rows)
    x, side = np.minimum(low - f_low, high), np.zeros_like(low)
    for step in range(_N_STEP):
        f = function(x)
        is_nearer = (np.abs(f) < residual[rows]) & (residual[rows] > _TOLERANCE)
        root[rows[is_nearer]], residual[rows[is_nearer]] = x[is_nearer], np.abs(f[is_nearer])
        is_low = f < 0
        high_factor, low_factor = (
            _reduction(f, f_low, anderson=step < _N_ANDERSON_STEP),
            _reduction(f, f_high, anderson=step < _N_ANDERSON_STEP),
        )
        f_high = np.where(is_low, np.where(side < 0, f_high * high_factor, f_high), f)
        f_low = np.where(is_low, f, np.where(side > 0, f_low * low_factor, f_low))
        low, high = np.where(is_low, x, low), np.where(is_low, high, x)
        side = np.where(is_low, -1.0, 1.0)
        is_open = residual[rows] > _TOLERANCE
        if not is_open.any():
            break
        if is_open.mean() < _COMPACTION_RATIO:
            low, high, f_low, f_high, side = (ends[is_open] for ends in (low, high, f_low, f_high, side))
            rows = rows[is_open]
            function = function_of(rows)
        width = f_high - f_low
        x = np.clip(low - f_low * (high - low) / np.where(width > 0, width, 1.0), low, high)
    return root


def _reduction(f: FloatArray, replaced: FloatArray, *, anderson: bool) -> FloatArray:
    half = np.full_like(f, 0.5)
    if not anderson:
        return half
    ratio = 1 - f / np.where(replaced == 0, 1.0, replaced)
    return np.where(ratio > 0, ratio, half)
