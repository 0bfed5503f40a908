"""Robust least squares under a normal prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_N_STEP: Final = 25
_N_TRIAL: Final = 8
_LONGEST_STEP: Final = 1.5
_FARTHEST: Final = 4.0
_TOLERANCE: Final = 3e-4


def solve(
    residuals: Callable[[FloatArray], FloatArray],
    slopes: Callable[[FloatArray, FloatArray], FloatArray],
    n: int,
    count: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the x of least ``sum 2 c (sqrt(1 + r ** 2) - 1) + x . x``, no more than 4 from 0 in any direction.

    Levenberg-Marquardt over the normal equations, which are far smaller here than the table of residuals that
    scipy's solvers decompose in each step.

    Parameters
    ----------
    residuals
        From x, shape (n,), to residuals, shape (n_residual,).
    slopes
        From x and its residuals to their derivatives, shape (n_residual, n).
    n
        Directions.
    count : shape (n_residual,)
        c, how often each residual counts.

    References
    ----------
    J. Nocedal and S. Wright, "Numerical Optimization", 2nd edition, 2006, section 10.3; P. Charbonnier et al.,
    "Two deterministic half-quadratic regularization algorithms for computed imaging", ICIP 1994 (the loss).

    Examples
    --------
    One observation of 1 pulls half of the way from the prior, a little less for its robust loss:

    >>> solve(lambda x: x - 1.0, lambda x, r: np.ones((1, 1)), 1).round(2)
    array([0.47])
    """
    x, damping = np.zeros(n), 1e-2
    r = residuals(x)
    cost = _cost(r, x, count)
    for _ in range(_N_STEP):
        slope = slopes(x, r)
        weight = count / np.sqrt(1 + r * r)
        gradient = slope.T @ (weight * r) + x
        curvature = (slope * weight[:, None]).T @ slope + np.eye(n)
        before = cost
        for _ in range(_N_TRIAL):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
            tried = np.clip(x - np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), -_FARTHEST, _FARTHEST)
            r_tried = residuals(tried)
            cost_tried = _cost(r_tried, tried, count)
            if cost_tried < cost:
                x, r, cost, damping = tried, r_tried, cost_tried, max(damping / 5, 1e-6)
                break
            damping *= 5
        if before - cost <= _TOLERANCE * before:
            return x
    return x


def _cost(r: FloatArray, x: FloatArray, count: FloatArray | float) -> float:
    return float(2 * (count * (np.sqrt(1 + r * r) - 1)).sum() + x @ x)
