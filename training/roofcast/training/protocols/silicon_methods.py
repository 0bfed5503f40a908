"""Who is judged under P3: the estimate alone, baselines, roofcast's predictor, and a peer that was really run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from roofcast.data.campaigns.silicon_peer import load_aiconfigurator_answers
from roofcast.features.batching import estimate
from roofcast.features.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.features.pipeline import arrays, estimate_metrics
from roofcast.training.calibration import fit_coefficients
from roofcast.training.estimators import ResidualRegressor
from roofcast.training.predictor import PointPredictor
from roofcast.training.protocols.silicon import JUDGED, Method, SiliconRows

FloatArray = npt.NDArray[np.float64]

COLUMNS: Final = tuple(JUDGED.values())


def roofcast(train: SiliconRows, test: SiliconRows) -> pd.DataFrame:
    """Return what roofcast's predictor says, trained as for service."""
    return PointPredictor(metrics=COLUMNS).fit(train.X, train.y, train.groups).predict(test.X)


def analytic_priors(train: SiliconRows, test: SiliconRows) -> pd.DataFrame:  # noqa: ARG001 nothing is fitted
    """Return the estimate with every coefficient at its prior."""
    return _estimated(test, DEFAULT_COEFFICIENTS)


def analytic_calibrated(train: SiliconRows, test: SiliconRows) -> pd.DataFrame:
    """Return the estimate with coefficients fitted to the training rows, without a learner."""
    return _estimated(test, fit_coefficients(train.X, train.y, train.groups))


def nearest_measured(train: SiliconRows, test: SiliconRows) -> pd.DataFrame:
    """Return what was measured at the nearest training row: least distance of standardised logarithms."""
    neighbour = make_pipeline(StandardScaler(), KNeighborsRegressor(n_neighbors=1))
    neighbour.fit(_logarithms(train), train.y[list(COLUMNS)])
    return pd.DataFrame(neighbour.predict(_logarithms(test)), columns=list(COLUMNS), index=test.X.index)


def xgboost_raw(train: SiliconRows, test: SiliconRows) -> pd.DataFrame:
    """Return the predictions of boosted trees that see raw descriptors and no estimate; the target is logarithmic."""
    seen, asked = _known(train), _known(test)
    predicted = {
        name: np.exp(ResidualRegressor().fit(seen, np.log(train.y[name])).predict(asked)) for name in COLUMNS
    }
    return pd.DataFrame(predicted, index=test.X.index)


def aiconfigurator(train: SiliconRows, test: SiliconRows) -> pd.DataFrame:  # noqa: ARG001 it is no learner
    """Return the answers of aiconfigurator, recorded once; they hang on no fold."""
    return load_aiconfigurator_answers().reindex(test.X.index)[list(COLUMNS)]


METHODS: Final[Mapping[str, Method]] = {
    method.__name__: method
    for method in (roofcast, analytic_calibrated, analytic_priors, aiconfigurator, nearest_measured, xgboost_raw)
}
"""Methods by the names under which they stand on the scoreboard."""


def _estimated(rows: SiliconRows, coefficients: Coefficients) -> pd.DataFrame:
    d = arrays(rows.X)
    values = estimate_metrics(d, estimate(d, coefficients))
    return pd.DataFrame({name: values[name] for name in COLUMNS}, index=rows.X.index)


def _known(rows: SiliconRows) -> FloatArray:
    return rows.X.fillna(0.0).to_numpy(dtype=np.float64)


def _logarithms(rows: SiliconRows) -> FloatArray:
    """Return the descriptors on a scale that is logarithmic far from zero, and takes zero and less."""
    return np.asarray(np.arcsinh(_known(rows)), dtype=np.float64)
