"""Hyperparameters of the random effects: the standard deviations of greatest posterior density."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from roofcast.training.learner.errors.group_keys import (
    NOISE_SD,
    STACK_TERM_INDEX,
    STACK_TERMS,
    TERMS,
    WORKLOAD_SD,
    FloatArray,
    GroupKeys,
    IndexArray,
)
from roofcast.training.learner.errors.lazy_scipy import linalg, optimize
from roofcast.training.learner.errors.lookup_tables import workload_kernel

PRIOR_LOG_SD: Final = 0.7
"""Standard deviation of the logarithm of every prior."""

SD_LIMITS: Final = (0.03, 3.0)

N_POINT: Final = 450
"""Training points of the fit, whole configurations drawn at random."""


def fit_standard_deviations(X: GroupKeys, errors: FloatArray, n_iteration: int) -> FloatArray:
    """Return the standard deviation of each of `TERMS`, of each of `STACK_TERMS`, of the workload and of the noise.

    They are those of `most_likely_sd` given the errors of training points, shape (n_training_point,).
    """
    prior = np.array([*TERMS.values(), *STACK_TERMS.values(), WORKLOAD_SD, NOISE_SD])
    rows = _draw_rows(X)
    return most_likely_sd(_correlations(X.take(rows)), prior, errors[rows], n_iteration)


def _correlations(X: GroupKeys) -> list[FloatArray]:
    same = [(key[:, None] == key).astype(float) for key in X.keys.T]
    is_same_stack = X.stack[:, None] == X.stack
    near = same[-1] * workload_kernel(X.workload[:, None] - X.workload)
    return [*same, *(same[i] * is_same_stack for i in STACK_TERM_INDEX), near]


def most_likely_sd(
    correlations: Sequence[FloatArray], prior: FloatArray, errors: FloatArray, n_iteration: int
) -> FloatArray:
    """Return the standard deviations of greatest posterior density of effects and noise, given n errors.

    Errors are normal with covariance ``sum sd ** 2 * correlation + noise ** 2 * I``, standard deviations log-normal
    about the medians `prior`. The search takes `n_iteration` steps at most; 0 returns the medians.

    `correlations`: shapes (n, n), one for each effect. `prior`: shape (n_effect + 1,), of the noise last.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.1.
    """
    center = np.log(prior)

    def loss(log_sd: FloatArray) -> tuple[float, FloatArray]:
        variance = np.exp(2 * log_sd)
        covariance = variance[-1] * np.eye(len(errors))
        for size, part in zip(variance[:-1], correlations, strict=True):
            covariance += size * part
        factor = linalg.cho_factor(covariance, lower=True)
        weights = linalg.cho_solve(factor, errors)
        slope = linalg.cho_solve(factor, np.eye(len(errors))) - np.outer(weights, weights)
        distance = (log_sd - center) / PRIOR_LOG_SD
        value = np.log(np.diag(factor[0])).sum() + 0.5 * errors @ weights + 0.5 * distance @ distance
        gradient = [size * (slope * part).sum() for size, part in zip(variance[:-1], correlations, strict=True)]
        gradient.append(variance[-1] * np.trace(slope))
        return float(value), np.array(gradient) + distance / PRIOR_LOG_SD

    log_sd = center
    if n_iteration:
        log_sd = optimize.minimize(
            loss,
            center,
            jac=True,
            method="L-BFGS-B",
            bounds=[tuple(np.log(SD_LIMITS))] * len(center),
            options={"maxiter": n_iteration},
        ).x
    return np.asarray(np.exp(log_sd), dtype=np.float64)


def _draw_rows(X: GroupKeys) -> IndexArray:
    """Return training points of some configurations, `N_POINT` at most.

    Half of them belong to cells that several stacks measured, as far as there are such: these alone separate the
    effects of stacks.
    """
    configurations, code = np.unique(X.keys[:, -1], return_inverse=True)
    rank = np.argsort(np.random.default_rng(0).permutation(len(configurations)))[code]
    table = pd.DataFrame({"cell": X.keys[:, STACK_TERM_INDEX[-1]], "stack": X.stack, "rank": rank})
    is_shared = table.groupby("cell")["stack"].transform("nunique") > 1
    turn = table.sort_values("rank", kind="stable").groupby(is_shared).cumcount().sort_index()
    return np.sort(np.argsort(turn.to_numpy(), kind="stable")[:N_POINT])
