"""Robust least squares under a standard normal prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

N_ITERATION: Final = 25
N_TRIAL: Final = 8
MAX_STEP: Final = 1.5
MAX_DISTANCE: Final = 4.0
TOLERANCE: Final = 3e-4


def levenberg_marquardt(
    residuals: Callable[[FloatArray], FloatArray],
    jacobian: Callable[[FloatArray, FloatArray], FloatArray],
    n: int,
    weight: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the x of least ``sum 2 w (sqrt(1 + r ** 2) - 1) + x . x``, at most 4 from 0 in any direction.

    The normal equations are far smaller here than the Jacobian that scipy's solvers decompose in each iteration.

    `residuals` maps x, shape (n,), to shape (n_residual,), `jacobian` x and its residuals to shape (n_residual, n);
    `weight` multiplies each residual's loss.

    References
    ----------
    J. Nocedal and S. Wright, "Numerical Optimization", 2nd edition, 2006, section 10.3; P. Charbonnier et al.,
    "Two deterministic half-quadratic regularization algorithms for computed imaging", ICIP 1994 (the loss).

    Examples
    --------
    One observation of 1 moves x half of the way from the prior, a little less for its robust loss:

    >>> levenberg_marquardt(lambda x: x - 1.0, lambda x, r: np.ones((1, 1)), 1).round(2)
    array([0.47])
    """
    x, damping = np.zeros(n), 1e-2
    r = residuals(x)
    cost = _cost(r, x, weight)
    for _ in range(N_ITERATION):
        slope = jacobian(x, r)
        effective = weight / np.sqrt(1 + r * r)
        gradient = slope.T @ (effective * r) + x
        curvature = (slope * effective[:, None]).T @ slope + np.eye(n)
        before = cost
        for _ in range(N_TRIAL):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
            trial = np.clip(x - np.clip(step, -MAX_STEP, MAX_STEP), -MAX_DISTANCE, MAX_DISTANCE)
            trial_r = residuals(trial)
            trial_cost = _cost(trial_r, trial, weight)
            if trial_cost < cost:
                x, r, cost, damping = trial, trial_r, trial_cost, max(damping / 5, 1e-6)
                break
            damping *= 5
        if before - cost <= TOLERANCE * before:
            return x
    return x


def _cost(r: FloatArray, x: FloatArray, weight: FloatArray | float) -> float:
    return float(2 * (weight * (np.sqrt(1 + r * r) - 1)).sum() + x @ x)
