"""Fit the coefficients of the analytic estimate to measurements, held to their priors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import least_squares

from roofcast.features.batching import estimate
from roofcast.features.coefficients import DEFAULT_COEFFICIENTS, PRIORS, Coefficients
from roofcast.features.pipeline import arrays, estimate_metrics
from roofcast.training.targets import log_ratio

FloatArray = npt.NDArray[np.float64]

SCALE = {
    "ttft_s": 0.4,
    "itl_s": 0.15,
    "tpot_s": 0.15,
    "output_throughput_token_per_s": 0.3,
}
"""Error, in natural logarithms, up to which a metric counts quadratically: what is left after a good fit.

Normalised TTFT is left out: over requests of unlike lengths it tells of the lengths as much as of the engine."""

ROWS_PER_GROUP = 30.0
"""How many independent observations a group of rows is worth against the priors."""


FARTHEST = 4.0
"""How many prior standard deviations a coefficient may move; shares also stop at 1."""


def fit_coefficients(descriptors: pd.DataFrame, measured: pd.DataFrame, groups: pd.Series) -> Coefficients:
    """Return the most probable coefficients: robust least squares of log ratios plus log-normal priors.

    The estimate speaks of typical requests, so rows of tail percentiles are left out.

    Parameters
    ----------
    descriptors : shape (n_row, n_descriptor)
    measured : shape (n_row, n_metric)
        Columns `METRICS`, NaN where unknown.
    groups : shape (n_row,)
        Rows of one group are worth `ROWS_PER_GROUP` observations together.
    """
    is_central = (descriptors["workload.quantile"] == 0.5).to_numpy()
    table, outcome = descriptors[is_central], measured[is_central]
    d = arrays(table)
    counts = groups[is_central].map(groups[is_central].value_counts()).to_numpy(dtype=float)
    weight = np.sqrt(ROWS_PER_GROUP / (counts * len(SCALE)))
    y = {metric: outcome[metric].to_numpy(dtype=float) for metric in SCALE}
    prior = DEFAULT_COEFFICIENTS.log()
    sd = np.array([PRIORS[name].log_sd for name in PRIORS])
    highest = np.where([p.is_share for p in PRIORS.values()], np.minimum(-prior / sd, FARTHEST), FARTHEST)

    def residuals(offset: FloatArray) -> FloatArray:
        coefficients = DEFAULT_COEFFICIENTS.with_log(prior + offset * sd)
        values = estimate_metrics(d, estimate(d, coefficients))
        parts = [weight * log_ratio(y[m], values[m]) / SCALE[m] for m in SCALE]
        return np.concatenate([*(np.nan_to_num(part, nan=0.0) for part in parts), offset])

    bounds = (-FARTHEST, highest)
    solution = least_squares(residuals, np.zeros_like(prior), loss="soft_l1", max_nfev=30, bounds=bounds)
    return DEFAULT_COEFFICIENTS.with_log(prior + solution.x * sd)
