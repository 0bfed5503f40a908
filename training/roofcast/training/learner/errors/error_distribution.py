"""Distribution of prediction errors: heteroscedastic scale, random effects and grouped conformal quantiles.

The logarithm of measurement over prediction is ``scale(features) * effect``. The effect is a Gaussian process: its
posterior mean shifts the prediction. The half-width of an interval is its posterior standard deviation times the
scale and a conformal quantile of held-out lineages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import OutOfRangeError
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.targets import row_weights
from roofcast.training.learner.errors.group_keys import GroupKeys, select_training_points
from roofcast.training.learner.errors.random_effects import RandomEffects
from roofcast.training.learner.trees.boosted_residual import ResidualRegressor
from roofcast.training.learner.trees.evaluated_rows import QUANTILE_INDEX, at_quantile

FloatArray = npt.NDArray[np.float64]

ERROR_FLOOR: Final = 0.02
"""Error, in natural logarithms, that repeats of one measurement show."""

SCALE_LIMITS: Final = (0.05, 1.0)
"""Least and greatest predicted scale, in natural logarithms; few rows support values beyond them."""

N_SCALE_FOLD: Final = 5

MIN_QUANTILE: Final = 1e-9
"""Floor of conformal quantiles: an interval never collapses to a point."""

MIN_OWNER: Final = 19
"""Owners of stacks whose scores alone support intervals of 95 %."""

N_LEVEL: Final = 50
"""Levels from 0 to 1 at which the distribution of standardised errors is tabulated; it is linear between them."""

ONE_SD_LEVEL: Final = 0.6827
"""Share of a normal distribution within one standard deviation."""


@dataclass(frozen=True, slots=True)
class ErrorScaleModel:
    """Heteroscedastic scale model: median absolute log error given the features.

    Its regressor of the logarithm has few, shallow trees: sizes of errors are far noisier than their signs.
    """

    log_scale: ResidualRegressor

    @classmethod
    def fit(cls, X: FloatArray, error: FloatArray, weight: FloatArray | None = None) -> Self:
        """Return the model fitted to logarithms of measurement over prediction: shape (n_row,)."""
        regressor = ResidualRegressor(
            objective="reg:squarederror", n_estimators=80, learning_rate=0.07, min_child_weight=20.0
        )
        return cls(regressor.fit(X, np.log(np.abs(error) + ERROR_FLOOR), weight))

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the scale of the error: shape (n_row,), natural logarithms."""
        return np.clip(np.exp(self.log_scale.predict_unchecked(X)), *SCALE_LIMITS)


class GroupedConformal:
    """Group-weighted conformal distribution of absolute held-out scores.

    If groups are exchangeable, and rows within a group too, the score of a row of a new group, drawn by such weights,
    is below ``quantile(level)`` with a probability that approaches `level` as groups grow many and none dominates.
    For n groups of equal weight that probability is ``level * n / (n + 1)`` at least; with a `size_exponent` over 0
    it is lower if large groups are the hard ones.

    Parameters
    ----------
    scores : shape (n_row,)
        Absolute errors of rows whose group was held out; NaN rows are left out.
    groups : shape (n_row,)
    size_exponent
        A group of n rows weighs ``n ** size_exponent``: 0 is one vote a group, 1 one vote a row.

    References
    ----------
    R. Dunn, L. Wasserman and A. Ramdas, "Distribution-Free Prediction Sets for Two-Layer Hierarchical Models", JASA
    2023: the quantile of pooled groups.
    Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", 2023: the bound.
    """

    def __init__(self, scores: FloatArray, groups: pd.Series, size_exponent: float = 0.5) -> None:
        known = ~np.isnan(scores)
        codes, names = pd.factorize(np.asarray(groups, dtype=object)[known])
        order = np.argsort(scores[known], kind="stable")
        size = np.bincount(codes, minlength=len(names))
        weight = size**size_exponent
        mass = (weight / size)[codes] / weight.sum()
        self.n_group = len(names)
        self._scores = scores[known][order]
        self._cumulative = np.cumsum(mass[order])

    @property
    def highest_level(self) -> float:
        """Highest level that this many groups support: n / (n + 1)."""
        return self.n_group / (self.n_group + 1.0)

    def quantile(self, level: float) -> float:
        """Return the score that a row of a new group stays below with probability `level`.

        Raises
        ------
        OutOfRangeError
            If there are too few groups for `level`.

        Examples
        --------
        >>> import numpy as np
        >>> c = GroupedConformal(np.array([0.1, 0.2, 0.3, 0.4]), pd.Series(list("abcd")))
        >>> c.quantile(0.8), c.quantile(0.4)
        (0.4, 0.2)
        """
        if not 0 < level < 1:
            raise OutOfRangeError(f"level must lie between 0 and 1, got {level:g}")
        if level > self.highest_level + 1e-9:
            raise OutOfRangeError(
                f"a level of {level:g} needs {int(np.ceil(level / (1 - level) - 1e-9))} groups of measurements, "
                f"there are {self.n_group}; ask for at most {np.floor(self.highest_level * 10**3) / 10**3:.3f}"
            )
        index = int(np.searchsorted(self._cumulative, level - 1e-9))
        return max(float(self._scores[min(index, len(self._scores) - 1)]), MIN_QUANTILE)

    def p_below(self, z: FloatArray) -> FloatArray:
        """Return the probability that a signed standardised error is below `z`, of any shape.

        Errors are taken to be symmetric. Beyond the largest measured error the probability stays that of the highest
        level.

        Examples
        --------
        >>> import numpy as np
        >>> c = GroupedConformal(np.linspace(0.1, 2.0, 20), pd.Series(range(20)))
        >>> c.p_below(np.array([-1.0, 0.0, 1.0, 9.0])).round(2).tolist()
        [0.25, 0.5, 0.75, 0.98]
        """
        levels, quantiles = self._table
        return np.asarray(0.5 + np.sign(z) * np.interp(np.abs(z), quantiles, levels) / 2, dtype=np.float64)

    def z_at(self, confidence: float) -> float:
        """Return the signed standardised error not exceeded with probability `confidence`, at least one half."""
        return float(np.interp(2 * confidence - 1, *self._table))

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Return levels, rising from 0, and their quantiles."""
        highest = self.highest_level
        levels = [*(i / N_LEVEL for i in range(1, N_LEVEL) if i / N_LEVEL < highest), highest]
        return np.array([0.0, *levels]), np.array([0.0, *map(self.quantile, levels)])


class LogError(NamedTuple):
    """Log error of queries, arrays of shape (n_query,): mean, standard deviation, and that of the query's median."""

    mean: FloatArray
    sd: FloatArray
    median_sd: FloatArray


@dataclass(frozen=True, slots=True)
class ErrorDistribution:
    """Distribution of log(measurement / prediction) of one metric.

    The error is a scale, given the features, times a Gaussian process. Queries are about a stack that nobody
    measured; `on_measured_stack` is the distribution of others.

    Parameters
    ----------
    effects
        The process, conditioned on what carries over of the errors on `training_row`, rows of the fit.
    conformal
        Distribution of standardised errors whose stack was held out.
    stack_error : shape (n_training_row,)
        Standardised errors on these rows with the stack's part.
    lineage_conformal
        Distribution of standardised errors whose lineage was held out and whose stack was known.
    """

    scale: ErrorScaleModel
    effects: RandomEffects
    conformal: GroupedConformal
    training_row: npt.NDArray[np.intp]
    stack_error: FloatArray
    lineage_conformal: GroupedConformal

    def on_measured_stack(self) -> ErrorDistribution:
        """Return the distribution of queries about stacks of the training rows."""
        return replace(self, effects=self.effects.with_errors(self.stack_error), conformal=self.lineage_conformal)

    def with_scores(self, scores: FloatArray, groups: tuple[pd.Series, pd.Series]) -> ErrorDistribution:
        """Return the distribution with other held-out scores, as of `pool_scores`."""
        return replace(
            self, conformal=pool_scores(scores, groups), lineage_conformal=GroupedConformal(scores[0], groups[0])
        )

    def build_cache(self) -> None:
        """Build lookup caches eagerly."""
        self.effects.build_cache()
        self.scale.log_scale.build_cache()

    def predict(self, features: FloatArray, keys: GroupKeys) -> LogError:
        """Return the log error of queries.

        All quantiles of a query share the mean of its median, so that they keep their order.
        """
        return self._scaled(features, *self.effects.predict(keys))

    def predict_left_out(
        self,
        features: FloatArray,
        keys: GroupKeys,
        error: FloatArray,
        groups: npt.NDArray[np.intp],
        is_point: npt.NDArray[np.bool_],
    ) -> LogError:
        """Return what `predict` does of each calibration point, given the points of other groups alone.

        The arguments are of n rows; the log error is NaN where it is unknown, and such a row is no point.
        """
        standardised = error / self.scale.predict(at_quantile(features, 0.5))
        is_point = is_point & ~np.isnan(error)
        effects = self.effects.predict_left_out(keys, np.nan_to_num(standardised), groups, is_point)
        return self._scaled(features, *effects)

    def _scaled(self, features: FloatArray, mean: FloatArray, sd: FloatArray) -> LogError:
        """Return effects of a mean and a standard deviation in natural logarithms."""
        is_tail = features[:, QUANTILE_INDEX] != 0.5
        scales = self.scale.predict(np.concatenate([features, at_quantile(features[is_tail], 0.5)]))
        scale, scale_of_median = scales[: len(features)], scales[: len(features)].copy()
        scale_of_median[is_tail] = scales[len(features) :]
        return LogError(scale_of_median * mean, scale * sd, scale_of_median * sd)

    def predict_joint(self, features: FloatArray, keys: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean, shape (n,), and covariance, shape (n, n), of the log errors together, without noise.

        The covariance is widened to the errors of held-out lineages.
        """
        scale = self.scale.predict(at_quantile(features, 0.5))
        mean, covariance = self.effects.predict_joint(keys)
        level = min(ONE_SD_LEVEL, self.conformal.highest_level)
        inflation = self.conformal.quantile(level) / NormalDist().inv_cdf(0.5 + level / 2)
        return scale * mean, covariance * np.outer(scale, scale) * inflation**2

    def condition_on(self, features: FloatArray, keys: GroupKeys, error: FloatArray) -> ErrorDistribution:
        """Return the distribution given the log errors of calibration points, shape (n,)."""
        standardised = error / self.scale.predict(at_quantile(features, 0.5))
        return replace(self, effects=self.effects.condition_on(keys, standardised))


def fit_error_distribution(
    features: FloatArray,
    keys: GroupKeys,
    held_out_error: FloatArray,
    groups: tuple[pd.Series, pd.Series],
    *,
    residual: FloatArray,
    stack_residual: FloatArray,
    is_central: npt.NDArray[np.bool_],
) -> tuple[ErrorDistribution, FloatArray]:
    """Return the distribution of errors, and the standard deviation expected of each held-out error, NaN for tails.

    1. A scale model predicts the size of held-out errors. It does not see the lineage, or the stack, whose errors it
       scales.
    2. The standard deviations of the random effects are fitted to standardised errors of means and medians whose
       stack was held out, or whose lineage was where no stack could be; tails share these effects.
    3. Conformal scores are errors in units of the standard deviation that the process predicts for the row from the
       others: from those of other lineages, with the row's stack known, and from those of other stacks, as for a
       query about `TARGET_STACK`.
    4. The process is conditioned on the residuals instead of the held-out errors: the trees learnt from all rows,
       residuals are what is left, and nothing is counted twice.

    Parameters
    ----------
    features : shape (n_row, n_feature)
    held_out_error : shape (2, n_row)
        Logarithm of measurement over the prediction that never saw the row's lineage, and over that which never saw
        its stack; the latter is NaN where too few stacks are known.
    groups
        Lineage of each row, and owner of its stack: shapes (n_row,).
    residual : shape (n_row,)
        Logarithm of measurement over the prediction that learnt from all rows, as far as it carries over to other
        stacks.
    stack_residual : shape (n_row,)
        The same of the prediction about the row's own stack.
    is_central : shape (n_row,)
        Whether the row is a mean or a median.

    Returns
    -------
    the distribution; shape (2, n_row)
    """
    scale, final_scale = _fit_scales(features, keys, held_out_error, groups)
    central = np.flatnonzero(is_central)
    rows = central[select_training_points(keys.take(central))]
    standardised = held_out_error / scale
    unseen = np.where(np.isnan(standardised[1]), standardised[0], standardised[1])
    effects = RandomEffects().fit(keys.take(rows), unseen[rows])
    expected = np.full(held_out_error.shape, np.nan)
    for i, queries in enumerate((keys, keys.on_target_stack())):
        known, group = central[~np.isnan(standardised[i, central])], groups[i].to_numpy()
        if len(known):
            expected[i, known] = scale[i, known] * effects.predict_sd_left_out(
                queries.take(known), group[known], group[rows]
            )
    scores, size = np.abs(held_out_error) / expected, final_scale.predict(features[rows])
    return ErrorDistribution(
        final_scale,
        effects.with_errors(residual[rows] / size),
        pool_scores(scores, groups),
        rows,
        stack_residual[rows] / size,
        GroupedConformal(scores[0], groups[0]),
    ), expected


def pool_scores(scores: FloatArray, groups: tuple[pd.Series, pd.Series]) -> GroupedConformal:
    """Return the conformal distribution of held-out scores: of stacks left out, a vote an owner, if enough have any.

    With fewer than `MIN_OWNER` owners they are those of lineages and stacks together. Queries are about a stack that
    nobody measured. Scores have shape (2, n_row), groups are the lineage and the owner of the stack of each row.
    """
    lineage, owner = groups
    if owner[~np.isnan(scores[1])].nunique() >= MIN_OWNER:
        return GroupedConformal(scores[1], owner, size_exponent=0.0)
    names = [group.astype(str).add(f" {i}") for i, group in enumerate((lineage, owner))]
    return GroupedConformal(scores.ravel(), pd.concat(names))


def _fit_scales(
    features: FloatArray, keys: GroupKeys, held_out_error: FloatArray, groups: tuple[pd.Series, pd.Series]
) -> tuple[FloatArray, ErrorScaleModel]:
    """Return the scale of held-out errors by models without what was held out, (2, n_row), and that of all rows."""
    split, row = np.nonzero(~np.isnan(held_out_error))
    error, weight = held_out_error[split, row], row_weights(keys.keys[:, -1])[row]
    scale = np.full(held_out_error.shape, np.nan)
    for i in np.unique(split):
        for train, test in leave_one_group_out(groups[i], N_SCALE_FOLD):
            is_train = np.isin(row, train)
            fold = ErrorScaleModel.fit(features[row[is_train]], error[is_train], weight[is_train])
            scale[i, test] = fold.predict(features[test])
    return scale, ErrorScaleModel.fit(features[row], error, weight)
