"""What roofcast is judged beside: the estimate alone, the nearest measurement, and trees that know no physics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from roofcast.features.arrays import descriptor_arrays
from roofcast.features.engine.coefficients import Coefficients
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import estimate_statistics
from roofcast.training.learner.boosted_residual import ResidualRegressor

FloatArray = npt.NDArray[np.float64]


def estimated(asked: pd.DataFrame, coefficients: Coefficients, columns: Sequence[str]) -> pd.DataFrame:
    """Return the estimate of some metrics, of the statistic asked: shape (n_question, n_column), NaN if infinite.

    Parameters
    ----------
    asked : shape (n_question, n_descriptor)
    """
    d = descriptor_arrays(asked)
    whole = estimate(d, coefficients)
    values = estimate_statistics(d, coefficients, whole)
    table = pd.DataFrame({name: values[name] for name in columns}, index=asked.index)
    return table.where(np.isfinite(table)).mask(pd.Series(whole.is_saturated, index=asked.index), axis=0)


def nearest_measured(
    seen: pd.DataFrame, measured: pd.DataFrame, asked: pd.DataFrame, columns: Sequence[str]
) -> pd.DataFrame:
    """Return what was measured in the nearest row that states it: least distance of standardised logarithms.

    Parameters
    ----------
    seen : shape (n_row, n_descriptor)
    measured : shape (n_row, n_metric)
    asked : shape (n_question, n_descriptor)

    Returns
    -------
    shape (n_question, n_column)
    """
    found = pd.DataFrame(np.nan, index=asked.index, columns=list(columns))
    for name, rows in _stated(measured, columns):
        neighbour = make_pipeline(StandardScaler(), KNeighborsRegressor(n_neighbors=1))
        neighbour.fit(_logarithms(seen.iloc[rows]), measured[name].iloc[rows])
        found[name] = neighbour.predict(_logarithms(asked))
    return found


def boosted_raw(
    seen: pd.DataFrame, measured: pd.DataFrame, asked: pd.DataFrame, columns: Sequence[str]
) -> pd.DataFrame:
    """Return predictions of boosted trees on raw descriptors, without an estimate; the target is logarithmic.

    Parameters and result are those of `nearest_measured`.
    """
    found = pd.DataFrame(np.nan, index=asked.index, columns=list(columns))
    for name, rows in _stated(measured, columns):
        trees = ResidualRegressor().fit(_known(seen.iloc[rows]), np.log(measured[name].iloc[rows]))
        found[name] = np.exp(trees.predict(_known(asked)))
    return found


def _stated(measured: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, npt.NDArray[np.intp]]]:
    rows = {name: np.flatnonzero(measured[name] > 0) for name in columns}
    return [(name, some) for name, some in rows.items() if len(some)]


def _known(descriptors: pd.DataFrame) -> FloatArray:
    """Return the descriptors, zero where one is unknown or without limit."""
    return np.asarray(np.nan_to_num(descriptors.to_numpy(dtype=np.float64), posinf=0.0), dtype=np.float64)


def _logarithms(descriptors: pd.DataFrame) -> FloatArray:
    """Return the descriptors on a scale that is logarithmic far from zero, and takes zero and less."""
    return np.asarray(np.arcsinh(_known(descriptors)), dtype=np.float64)
