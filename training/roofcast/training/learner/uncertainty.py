"""What is known of the errors of one metric: their usual size, what they share, and how far to trust that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.targets import row_weights
from roofcast.training.learner.conformal import GroupedConformal
from roofcast.training.learner.error_scale import ErrorScaleModel
from roofcast.training.learner.group_keys import GroupKeys, anchor_rows
from roofcast.training.learner.random_effects import RandomEffects
from roofcast.training.learner.ratio_model import QUANTILE_PLACE, at_quantile

FloatArray = npt.NDArray[np.float64]

N_SPREAD_FOLD: Final = 5

TYPICAL_LEVEL: Final = 0.6827
"""Share of a normal distribution within one standard deviation."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Distribution of the logarithm of measurement over prediction.

    Parameters
    ----------
    spread
        The usual size of an error.
    effects
        Gaussian process over errors in units of that size.
    conformal
        Errors of lineages left out, in standard deviations of the process.
    anchor_row
        Which of the rows that it was fitted to are the process's anchors: shape (n_anchor,).
    """

    spread: ErrorScaleModel
    effects: RandomEffects
    conformal: GroupedConformal
    anchor_row: npt.NDArray[np.intp]

    def warm(self) -> None:
        """Work out now what the first prediction would."""
        self.effects.warm()
        self.spread.warm()

    def shift(self, features: FloatArray, asked: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the logarithm, each of shape (n_question,).

        All quantiles of a question share the mean, that of its median, so that they keep their order.
        """
        mean, sd = self.effects.predict(asked)
        is_tail = features[:, QUANTILE_PLACE] != 0.5
        sizes = self.spread.predict(np.concatenate([features, at_quantile(features[is_tail], 0.5)]))
        own = sizes[: len(features)]
        median = own.copy()
        median[is_tail] = sizes[len(features) :]
        return median * mean, own * sd

    def joint(self, features: FloatArray, asked: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean, shape (n,), and covariance, shape (n, n), of the logarithms together, noise left out.

        The covariance is widened to what errors of lineages left out were.
        """
        size = self.spread.predict(at_quantile(features, 0.5))
        mean, covariance = self.effects.joint(asked)
        level = min(TYPICAL_LEVEL, self.conformal.highest_level)
        wider = self.conformal.quantile(level) / NormalDist().inv_cdf(0.5 + level / 2)
        return size * mean, covariance * np.outer(size, size) * wider**2

    def conditioned(self, features: FloatArray, given: GroupKeys, error: FloatArray) -> Uncertainty:
        """Return the distribution given reference measurements: logarithms over their prediction, shape (n,)."""
        scaled = error / self.spread.predict(at_quantile(features, 0.5))
        return replace(self, effects=self.effects.conditioned(given, scaled))


def fit_uncertainty(
    features: FloatArray,
    asked: GroupKeys,
    error: FloatArray,
    groups: pd.Series,
    *,
    left: FloatArray,
    is_central: npt.NDArray[np.bool_],
) -> tuple[Uncertainty, FloatArray]:
    """Return the distribution of errors like those given, and how large each of these was expected to be.

    The latter are standard deviations of shape (n_row,), without the row's lineage, and NaN for tails.

    Errors of lineages left out tell how large errors are and what they share. What is still wrong of the prediction
    that learnt from all moves it, and nothing else: it is all that its trees have not taken up.

    Parameters
    ----------
    features : shape (n_row, n_feature)
    asked
        GroupKeys of the n rows, on the stacks that were measured. Intervals are made for whoever asks about another.
    error : shape (n_row,)
        Logarithm of measurement over a prediction that never saw the row's lineage.
    groups : shape (n_row,)
        Lineage of each row.
    left : shape (n_row,)
        As `error`, of the prediction that learnt from all rows.
    is_central : shape (n_row,)
        Whether the row is a mean or a median; tails share the effects of those.
    """
    weight = row_weights(asked.keys[:, -1])
    usual = np.empty(len(error))
    for train, test in leave_one_group_out(groups, N_SPREAD_FOLD):
        usual[test] = ErrorScaleModel.fitted(features[train], error[train], weight[train]).predict(features[test])
    central = np.flatnonzero(is_central)
    scaled, lineage = (error / usual)[central], groups.to_numpy()[central]
    effects = RandomEffects().fit(asked.take(central), scaled)
    anchors = anchor_rows(asked.take(central))
    sd = effects.sd_left_out(asked.take(central).asked(), lineage, lineage[anchors])
    conformal = GroupedConformal(np.abs(scaled) / sd, groups.iloc[central])
    spread, rows = ErrorScaleModel.fitted(features, error, weight), central[anchors]
    expected = np.full(len(error), np.nan)
    expected[central] = usual[central] * sd
    about = effects.about(left[rows] / spread.predict(features[rows]))
    return Uncertainty(spread, about, conformal, rows), expected
