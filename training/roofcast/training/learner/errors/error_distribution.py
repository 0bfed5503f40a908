"""Distribution of prediction errors: heteroscedastic scale, random effects and grouped conformal quantiles.

The logarithm of measurement over prediction is ``scale(features) * effect``. The effect is a Gaussian process: its
posterior mean shifts the prediction. The half-width of an interval is its posterior standard deviation times the
scale and a conformal quantile of held-out stacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from roofcast.features.descriptors.config_hash import HashArray
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.targets import row_weights
from roofcast.training.learner.boosted_trees import QUANTILE_INDEX, ResidualRegressor, at_quantile
from roofcast.training.learner.errors.group_keys import (
    TARGET_STACK,
    GroupKeys,
    select_training_points,
)
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal, Origins, pool_scores
from roofcast.training.learner.errors.random_effects import RandomEffects

FloatArray = npt.NDArray[np.float64]

ERROR_FLOOR: Final = 0.02
"""Error, in natural logarithms, that repeats of one measurement show."""

SCALE_LIMITS: Final = (0.05, 1.0)
"""Least and greatest predicted scale, in natural logarithms; few rows support values beyond them."""

N_SCALE_FOLD: Final = 5

N_ERROR_DIGIT: Final = 3
"""Digits after the point of the errors of stack points, which are thousands of times the noise."""

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


class LogError(NamedTuple):
    """Log error of queries, arrays of shape (n_query,): mean, standard deviation, and that of the query's median."""

    mean: FloatArray
    sd: FloatArray
    median_sd: FloatArray


@dataclass(frozen=True, slots=True)
class ErrorDistribution:
    """Distribution of log(measurement / prediction) of one metric.

    The error is a scale, given the features, times a Gaussian process. Queries are about a stack that nobody
    measured; `on_measured_stacks` is the distribution of others.

    - `effects`: The process, conditioned on what carries over of the errors on `training_row`, rows of the fit, and
      after these on imputed errors of the user's own stack.
    - `conformal`: Distribution of standardised errors of competent operators' stacks that were held out, see
      `pool_scores`.
    - `stack_points`: All means and medians of named stacks, then their rows with imputed errors: the training points
      of answers about a measured stack are its own.
    - `stack_error`: shape (n_stack_point,). Their standardised errors, of the prediction about the row's own stack.
    - `lineage_conformal`: Distribution of standardised errors whose lineage was held out and whose stack was known.
    """

    scale: ErrorScaleModel
    effects: RandomEffects
    conformal: GroupedConformal
    training_row: npt.NDArray[np.intp]
    stack_points: GroupKeys
    stack_error: FloatArray
    lineage_conformal: GroupedConformal

    def on_measured_stacks(self, stacks: HashArray) -> ErrorDistribution:
        """Return the distribution of queries about some stacks, conditioned on all their rows and on no others."""
        is_own = np.isin(self.stack_points.stack, stacks)
        effects = self.effects.with_points(self.stack_points.take(is_own), self.stack_error[is_own])
        return replace(self, effects=effects, conformal=self.lineage_conformal)

    def of_any_operator(self) -> ErrorDistribution:
        """Return the distribution of queries about a stack that anybody runs."""
        return replace(self, conformal=self.conformal.everyone or self.conformal)

    def with_imputed_errors(
        self, features: FloatArray, keys: GroupKeys, residual: FloatArray, stack_residual: FloatArray
    ) -> ErrorDistribution:
        """Return the distribution conditioned on imputed errors too, of rows that lack the metric.

        Those of the user's own stack are further training points of `effects`; those of named stacks do not carry
        over, and are training points on a measured stack. Neither the standard deviations nor the conformal
        distributions change: both are of measured errors.

        `features` and `keys`: of n rows. `residual` and `stack_residual`: shapes (n,): as in
        `fit_error_distribution`.
        """
        size = self.scale.predict(features)
        is_own, effects = keys.stack == TARGET_STACK, self.effects
        errors = np.append(effects.errors_, (residual / size)[is_own])
        stack_error = (stack_residual / size)[~is_own].round(N_ERROR_DIGIT)
        return replace(
            self,
            effects=effects.with_points(effects.training_points_.append(keys.take(is_own)), errors),
            stack_points=self.stack_points.append(keys.take(~is_own)),
            stack_error=np.append(self.stack_error, stack_error),
        )

    def with_scores(self, scores: FloatArray, origins: Origins) -> ErrorDistribution:
        """Return the distribution with other held-out scores, as of `pool_scores`."""
        of_lineages = GroupedConformal(scores[0], origins.lineage)
        return replace(self, conformal=pool_scores(scores, origins), lineage_conformal=of_lineages)

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
        is_tail = features[:, QUANTILE_INDEX] != 0.5
        if not is_tail.any():
            scale = self.scale.predict(features)
            return LogError(scale * mean, scale * sd, scale * sd)
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


class FoldErrors(NamedTuple):
    """Errors of the models that never saw some lineages, on all rows.

    - `fold`: shape (n_row,). Index of the model that never saw the row's lineage.
    - `error`: shape (n_fold, n_row). Logarithm of measurement over the prediction of each model about the row's own
      stack.
    """

    fold: npt.NDArray[np.intp]
    error: FloatArray


def fit_error_distribution(
    features: FloatArray,
    keys: GroupKeys,
    held_out_error: FloatArray,
    origins: Origins,
    *,
    residual: FloatArray,
    stack_residual: FloatArray,
    fold_errors: FoldErrors,
    is_central: npt.NDArray[np.bool_],
) -> tuple[ErrorDistribution, FloatArray, FloatArray]:
    """Return the distribution, the remaining held-out errors, and their expected standard deviations, NaN for tails.

    1. A scale model predicts the size of errors whose stack was held out, or whose lineage was where no stack could
       be. It does not see the lineage, or the stack, whose errors it scales.
    2. The standard deviations of the random effects are fitted to the standardised ones of means and medians; tails
       share these effects.
    3. The process is conditioned on residuals instead of held-out errors: the trees learnt from all rows, residuals
       are what is left, and nothing is counted twice.
    4. Conformal scores are errors in units of the standard deviation that the process predicts for the row from the
       others. On a measured stack these are its rows of other lineages, and what their residuals explain is taken off
       the error; for a query about `TARGET_STACK` they are the rows of other stacks.

    - `features`: shape (n_row, n_feature)
    - `held_out_error`: shape (2, n_row). Logarithm of measurement over the prediction that never saw the row's
      lineage, and over that which never saw its stack; the latter is NaN where too few stacks are known.
    - `residual`: shape (n_row,). Logarithm of measurement over the prediction that learnt from all rows, as far as it
      carries over to other stacks.
    - `stack_residual`: shape (n_row,). The same of the prediction about the row's own stack.
    - `fold_errors`: Residuals of the models without a lineage on other lineages.
    - `is_central`: shape (n_row,). Whether the row is a mean or a median.

    Returns
    -------
    the distribution; shapes (3, n_row), as in `pool_scores`
    """
    scale, final_scale = _fit_scales(features, keys, held_out_error, origins)
    central = np.flatnonzero(is_central)
    rows = central[select_training_points(keys.take(central))]
    standardised = held_out_error / scale
    effects = RandomEffects().fit(keys.take(rows), _unseen(standardised)[rows])
    size = final_scale.predict(features[rows])
    residuals = _FoldResiduals(keys, scale[0], fold_errors.fold, rows, fold_errors.error[:, rows] / size)
    on_stack = effects.with_points(keys.take(rows).within_stacks(), effects.errors_)
    remaining = held_out_error[[0, 1, 0]]
    remaining[0, central] -= residuals.explain(on_stack, central)
    expected = np.full(remaining.shape, np.nan)
    splits = ((0, on_stack, keys.within_stacks()), (1, effects, keys.on_target_stack()), (0, effects, keys))
    for i, (split, process, queries) in enumerate(splits):
        known, group = central[~np.isnan(standardised[split, central])], origins[split].to_numpy()
        if len(known):
            expected[i, known] = scale[split, known] * process.predict_sd_left_out(
                queries.take(known), group[known], group[rows]
            )
    scores = np.abs(remaining) / expected
    named = central[keys.stack[central] != TARGET_STACK]
    stack_error = stack_residual[named] / final_scale.predict(features[named])
    return (
        ErrorDistribution(
            final_scale,
            effects.with_points(keys.take(rows), residual[rows] / size),
            pool_scores(scores, origins),
            rows,
            keys.take(named),
            stack_error.round(N_ERROR_DIGIT),
            GroupedConformal(scores[0], origins.lineage),
        ),
        remaining,
        expected,
    )


@dataclass(frozen=True, slots=True)
class _FoldResiduals:
    """What models without some lineages leave on training points of other lineages.

    - `keys`, `scale`, `fold`: of n_row. Group keys, scale of the errors with the lineage held out, and the model that
      never saw the lineage.
    - `points`: shape (n_point,). Rows that are training points.
    - `error`: shape (n_fold, n_point). Standardised errors of each model.
    """

    keys: GroupKeys
    scale: FloatArray
    fold: npt.NDArray[np.intp]
    points: npt.NDArray[np.intp]
    error: FloatArray

    def explain(self, process: RandomEffects, rows: npt.NDArray[np.intp]) -> FloatArray:
        fold = self.fold[rows]
        keys = self.keys.take(rows).within_stacks()
        mean = process.predict_mean_left_out(keys, fold, self.fold[self.points], self.error)
        return self.scale[rows] * mean


def _unseen(by_split: FloatArray) -> FloatArray:
    return np.asarray(np.where(np.isnan(by_split[1]), by_split[0], by_split[1]))


def _fit_scales(
    features: FloatArray, keys: GroupKeys, held_out_error: FloatArray, origins: Origins
) -> tuple[FloatArray, ErrorScaleModel]:
    error, weight = _unseen(held_out_error), row_weights(keys.keys[:, -1])
    scale = np.full(held_out_error.shape, np.nan)
    for i in np.flatnonzero(~np.isnan(held_out_error).all(axis=1)):
        for train, test in leave_one_group_out(origins[i], N_SCALE_FOLD):
            scale[i, test] = ErrorScaleModel.fit(features[train], error[train], weight[train]).predict(features[test])
    return scale, ErrorScaleModel.fit(features, error, weight)
