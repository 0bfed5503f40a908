"""Methods of P3: roofcast, the estimate alone, baselines, and aiconfigurator."""

from collections.abc import Mapping
from typing import Final

import pandas as pd

from judge.peers.silicon_peers import load_aiconfigurator_answers
from judge.protocols.baselines import analytic_estimate, boosted_raw
from judge.protocols.baselines import nearest_measured as nearest
from judge.protocols.fold_lines import by_stack, calibrated_estimate
from judge.protocols.p3_silicon import COLUMNS, Fold, Method
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.training.learner.calibration import fit_coefficients

LEVEL: Final = 0.5
"""Level of the intervals, which P3 does not score; few lineages support a higher level."""


def roofcast(fold: Fold) -> pd.DataFrame:
    """Return the predictions about each row's stack, trained on all campaigns without the held-out rows."""
    X = fold.test.X
    parts = by_stack(fold.predictor, fold.test.stacks)
    return pd.concat([about.predict_distribution(X[rows]).median for about, rows in parts]).loc[X.index]


def analytic_calibrated_all(fold: Fold) -> pd.DataFrame:
    """Return the estimate with the predictor's coefficients of each row's stack, without the learner."""
    return calibrated_estimate(fold.predictor, fold.test.X, fold.test.stacks)


def analytic_calibrated(fold: Fold) -> pd.DataFrame:
    """Return the estimate with coefficients fitted to the campaign's training rows, without the learner."""
    train = fold.train
    return analytic_estimate(fold.test.X, fit_coefficients(train.X, train.y, train.groups)[0], COLUMNS)


def analytic_priors(fold: Fold) -> pd.DataFrame:
    """Return the estimate with all coefficients at their priors."""
    return analytic_estimate(fold.test.X, DEFAULT_COEFFICIENTS, COLUMNS)


def nearest_measured(fold: Fold) -> pd.DataFrame:
    """Return the nearest measurement among the campaign's training rows."""
    return nearest(fold.train.X, fold.train.y, fold.test.X, COLUMNS)


def xgboost_raw(fold: Fold) -> pd.DataFrame:
    """Return predictions of gradient boosting on raw descriptors, fitted to the campaign's training rows."""
    return boosted_raw(fold.train.X, fold.train.y, fold.test.X, COLUMNS)


def aiconfigurator(fold: Fold) -> pd.DataFrame:
    """Return the recorded answers of aiconfigurator, which do not depend on the fold."""
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
"""Methods by their names on the scoreboard."""
