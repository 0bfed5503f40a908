"""Errors imputed from other metrics in rows that lack one, and error distributions conditioned on them."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.training.learner.derived_metrics import E2E, SOURCES
from roofcast.training.learner.errors.error_distribution import ErrorDistribution
from roofcast.training.learner.errors.group_keys import GroupKeys, select_training_points
from roofcast.training.learner.errors.prediction_errors import calibration_surprises
from roofcast.training.learner.ratio_model import DATE, RatioPrediction, without_columns

FloatArray = npt.NDArray[np.float64]

IMPUTED_METRICS: Final = (*SOURCES, "itl_s")
"""Metrics whose missing error other metrics determine."""

MAX_IMPUTED_POINT: Final = 1000
"""Training points with an imputed error at most, for each metric."""


def condition_on_imputed_errors(
    distributions: Mapping[str, ErrorDistribution],
    X: pd.DataFrame,
    y: pd.DataFrame,
    predictions: tuple[RatioPrediction, RatioPrediction],
    keys: GroupKeys,
) -> dict[str, ErrorDistribution]:
    """Return distributions conditioned on imputed errors too, one in each cell that lacks the metric.

    Means come before medians.

    - `y`: shape (n_row, n_metric). NaN in rows of API keys.
    - `predictions`: About a stack that nobody measured, and about the row's own.
    - `keys`: of n rows. About the row's own stack.
    """
    result, cells = dict(distributions), keys.cells()
    features = without_columns(predictions[0].features, DATE)
    is_central = (X["workload.quantile"] == 0.5).to_numpy()
    means_first = np.argsort((X["workload.is_mean"] != 1).to_numpy(), kind="stable")
    residual, stack_residual = (impute_errors(X, y, one, one.value) for one in predictions)
    for metric in distributions.keys() & residual.keys():
        is_imputed = ~np.isnan(residual[metric] + stack_residual[metric])
        is_imputed &= ~np.isin(cells, cells[is_central & (y[metric] > 0).to_numpy()])
        rows = means_first[is_imputed[means_first]]
        rows = rows[np.unique(cells[rows], return_index=True)[1]]
        rows = rows[select_training_points(keys.take(rows), MAX_IMPUTED_POINT)]
        result[metric] = distributions[metric].with_imputed_errors(
            features[rows], keys.take(rows), residual[metric][rows], stack_residual[metric][rows]
        )
    return result


def impute_errors(
    X: pd.DataFrame, y: pd.DataFrame, prediction: RatioPrediction, expected: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return errors of `IMPUTED_METRICS` in rows of means and medians that lack them: shapes (n_row,), NaN elsewhere.

    They are those of `calibration_surprises`, but E2E latency determines them in means alone: its median depends on
    the lengths of the requests.
    """
    is_mean = (X["workload.is_mean"] == 1).to_numpy()
    means = y.assign(**{E2E: np.where(is_mean, y[E2E], np.nan)}) if E2E in y else y
    error = calibration_surprises(X, means, prediction, expected)
    is_central = (X["workload.quantile"] == 0.5).to_numpy()
    return {m: np.where(is_central & ~(y[m] > 0).to_numpy(), error[m], np.nan) for m in IMPUTED_METRICS if m in error}
