"""Baselines: the estimate alone, the nearest measurement, and gradient boosting without physics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from roofcast.features.engine.coefficients import Coefficients
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import estimate_statistics
from roofcast.features.queries import descriptor_arrays
from roofcast.training.learner.boosted_trees import ResidualRegressor

FloatArray = npt.NDArray[np.float64]


def analytic_estimate(queries: pd.DataFrame, coefficients: Coefficients, columns: Sequence[str]) -> pd.DataFrame:
    """Return the estimate of the requested statistic by column; NaN if infinite or saturated."""
    d = descriptor_arrays(queries)
    estimates = estimate(d, coefficients)
    values = estimate_statistics(d, coefficients, estimates)
    table = pd.DataFrame({name: values[name] for name in columns}, index=queries.index)
    return table.where(np.isfinite(table)).mask(pd.Series(estimates.is_saturated, index=queries.index), axis=0)


def nearest_measured(
    train: pd.DataFrame, measured: pd.DataFrame, queries: pd.DataFrame, columns: Sequence[str]
) -> pd.DataFrame:
    """Return the measurement of the nearest row that has one, by distance of standardised logarithms.

    Parameters
    ----------
    train : shape (n_row, n_descriptor)
    measured : shape (n_row, n_metric)
    queries : shape (n_row, n_descriptor)

    Returns
    -------
    shape (n_row, n_column)
    """
    predicted = pd.DataFrame(np.nan, index=queries.index, columns=list(columns))
    for name, rows in _measured_rows(measured, columns):
        neighbour = make_pipeline(StandardScaler(), KNeighborsRegressor(n_neighbors=1))
        neighbour.fit(_logarithms(train.iloc[rows]), measured[name].iloc[rows])
        predicted[name] = neighbour.predict(_logarithms(queries))
    return predicted


def boosted_raw(
    train: pd.DataFrame, measured: pd.DataFrame, queries: pd.DataFrame, columns: Sequence[str]
) -> pd.DataFrame:
    """Return predictions of gradient boosting on raw descriptors with a logarithmic target.

    Parameters and result are those of `nearest_measured`.
    """
    predicted = pd.DataFrame(np.nan, index=queries.index, columns=list(columns))
    for name, rows in _measured_rows(measured, columns):
        trees = ResidualRegressor().fit(_finite(train.iloc[rows]), np.log(measured[name].iloc[rows]))
        predicted[name] = np.exp(trees.predict(_finite(queries)))
    return predicted


def _measured_rows(measured: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, npt.NDArray[np.intp]]]:
    rows = {name: np.flatnonzero(measured[name] > 0) for name in columns}
    return [(name, subset) for name, subset in rows.items() if len(subset)]


def _finite(descriptors: pd.DataFrame) -> FloatArray:
    """Return the descriptors with zero for unknown and unlimited values."""
    return np.asarray(np.nan_to_num(descriptors.to_numpy(dtype=np.float64), posinf=0.0), dtype=np.float64)


def _logarithms(descriptors: pd.DataFrame) -> FloatArray:
    """Return the inverse hyperbolic sine of the descriptors: logarithmic for large values, defined at zero."""
    return np.asarray(np.arcsinh(_finite(descriptors)), dtype=np.float64)
