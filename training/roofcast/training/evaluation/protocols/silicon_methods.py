"""Who is judged under P3: roofcast, the estimate alone, baselines, and a peer that was really run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from roofcast.data.campaigns.silicon_aiconfigurator import load_aiconfigurator_answers
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.training.evaluation.protocols.baselines import boosted_raw, estimated
from roofcast.training.evaluation.protocols.baselines import nearest_measured as nearest
from roofcast.training.evaluation.protocols.silicon import COLUMNS, Fold, Method
from roofcast.training.learner.calibration import fit_coefficients

LEVEL: Final = 0.5
"""Level of the intervals, which P3 does not judge; few lineages can promise it."""


def roofcast(fold: Fold) -> pd.DataFrame:
    """Return what a user gets: the predictor, trained on all campaigns without what is held out."""
    return fold.predictor.predict_distribution(fold.test.X).median


def analytic_calibrated_all(fold: Fold) -> pd.DataFrame:
    """Return the estimate with the predictor's coefficients, fitted to all campaigns, without a learner."""
    return estimated(fold.test.X, fold.predictor.coefficients_, COLUMNS)


def analytic_calibrated(fold: Fold) -> pd.DataFrame:
    """Return the estimate with coefficients fitted to the campaign's own training rows, without a learner."""
    train = fold.train
    return estimated(fold.test.X, fit_coefficients(train.X, train.y, train.groups), COLUMNS)


def analytic_priors(fold: Fold) -> pd.DataFrame:
    """Return the estimate with every coefficient at its prior."""
    return estimated(fold.test.X, DEFAULT_COEFFICIENTS, COLUMNS)


def nearest_measured(fold: Fold) -> pd.DataFrame:
    """Return what was measured at the nearest of the campaign's own training rows."""
    return nearest(fold.train.X, fold.train.y, fold.test.X, COLUMNS)


def xgboost_raw(fold: Fold) -> pd.DataFrame:
    """Return what trees on raw descriptors say, trained on the campaign's own training rows."""
    return boosted_raw(fold.train.X, fold.train.y, fold.test.X, COLUMNS)


def aiconfigurator(fold: Fold) -> pd.DataFrame:
    """Return the answers of aiconfigurator, recorded once; they hang on no fold."""
    return load_aiconfigurator_answers().reindex(fold.test.X.index)[list(COLUMNS)]


METHODS: Final[Mapping[str, Method]] = {
    method.__name__: method
    for method in (
        roofcast,
        analytic_calibrated_all,
        analytic_calibrated,
        analytic_priors,
        aiconfigurator,
        nearest_measured,
        xgboost_raw,
    )
}
"""Methods by the names under which they stand on the scoreboard."""
