"""The predictor: analytic estimate, boosted ratio, random effects and conformal intervals in one estimator.

`RoofcastPredictor.fit`

1. predicts each lineage from a ratio model of the others: the held-out errors;
2. calibrates the estimate and boosts log(measurement / estimate) on all rows: the ratio model;
3. fits the distribution of the errors of each metric: scale, random effects, conformal quantiles;
4. conditions it on errors imputed from other metrics.

`RoofcastPredictor.predict_distribution`

1. multiplies the estimate by the boosted ratio;
2. conditions the random effects on calibration points;
3. shifts the medians by the posterior mean, and reconciles E2E latency and throughput with TTFT and TPOT;
4. returns medians and standard deviations, whose intervals are conformal.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Final, Self
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.features.columns import ENGINES, FEATURE_NAMES
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import Queries, QueryTable, descriptor_arrays
from roofcast.features.validity.physical_bounds import physical_bounds
from roofcast.training.dataset.stacks import competent_rows, is_uploaded, recent_since, stack_owners
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.carry_over import fit_carry_over
from roofcast.training.learner.derived_metrics import (
    DERIVED,
    SOURCES,
    THROUGHPUT,
    derived_scores,
)
from roofcast.training.learner.errors.error_distribution import (
    ErrorDistribution,
    FoldErrors,
    LogError,
    fit_error_distribution,
)
from roofcast.training.learner.errors.group_keys import TARGET_STACK, GroupKeys, stack_keys
from roofcast.training.learner.errors.grouped_conformal import Origins
from roofcast.training.learner.errors.imputed_errors import condition_on_imputed_errors
from roofcast.training.learner.errors.prediction_errors import calibration_surprises, derived_sds
from roofcast.training.learner.estimator import check_is_fitted
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.ratio_model import (
    DATE,
    Progress,
    RatioModel,
    RatioPrediction,
    fit_held_out,
    predict_by_fold,
    predict_by_model,
    without_columns,
)

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MIN_STACK: Final = 3
"""Fewest stack owners from which the spread between stacks is estimated."""


class RoofcastPredictor(RatioModel):
    """`RatioModel` with the distribution of its errors.

    - `held_out_`: Predictions of the training rows with their lineage held out: shape (n_row, n_metric).
    - `stack_held_out_`: The same with the owner of their stack held out; NaN where too few owners are known.
    - `scores_`: Absolute standardised errors by metric: shape (3, n_row), as in `pool_scores`.
    - `error_distributions_`: `ErrorDistribution` by metric. A metric measured for only one lineage has none and is
      not predicted.
    - `stack_`: Measured stack of all queries, or of each by its index; empty for a stack that nobody measured.
    - `feature_range_`: Least and greatest value of each feature in training: shape (2, n_feature).
    - `competent_since_`: Year since which competent operators (`competent_rows`) run an engine, by engine; a question
      about older software, or about another engine, has the errors of all stacks.
    - `points_`: Calibration points that `condition_on` was called with.
    """

    stack_: str | pd.Series = ""
    points_: tuple[CalibrationPoints, ...] = ()

    def fit(
        self,
        X: pd.DataFrame,
        y: pd.DataFrame,
        groups: pd.Series,
        progress: Progress | None = None,
        *,
        stacks: pd.Series | None = None,
    ) -> Self:
        """Fit the ratio model and the distribution of its errors, and return the predictor.

        `X`, `y`, `groups` and `progress`: as in `fit_held_out`. `stacks`: shape (n_row,): stack that measured each
        row; empty for the user's own, None if all rows are. Rows of an API key have a limited weight in the joint fit
        of the calibration and in the trees, and none in the distribution of errors.
        """
        stacks = pd.Series("", index=X.index) if stacks is None else stacks.reindex(X.index)
        owners, is_public = stack_owners(stacks), ~is_uploaded(stacks).to_numpy()
        origins = Origins(groups, owners, competent_rows(X, stacks) & is_public)
        lineage_folds = fit_held_out(self, X, y, groups, progress, stacks=stacks)
        fold, by_fold = predict_by_model(lineage_folds, X, stacks)
        by_lineage = {m: np.where(fold >= 0, table[fold, np.arange(len(X))], np.nan) for m, table in by_fold.items()}
        self.held_out_ = pd.DataFrame(by_lineage, X.index, columns=list(self.metrics))
        held_out = [self.held_out_, pd.DataFrame(np.nan, index=X.index, columns=list(self.metrics))]
        carry_over: tuple[float | FloatArray, Mapping[str, FloatArray]] = (1.0, {})
        public = y.where(np.broadcast_to(is_public[:, None], y.shape))
        if owners[is_public].nunique() >= MIN_STACK:
            folds = fit_held_out(self, X, y, groups, progress, stacks=stacks, held_out=owners)
            carry_over = fit_carry_over(folds, X, public, origins)
            held_out[1] = predict_by_fold([one.carried_over(*carry_over) for one in folds], X)
        self.stack_held_out_ = held_out[1]
        super().fit(X, y, groups, stacks=stacks)
        vars(self).update(vars(self.carried_over(*carry_over)))
        prediction = self.predict_ratio(X)
        full = self._with_full_correction().predict_ratio(X, coefficients=self.coefficients_on(stacks, X))
        seen = prediction.features[is_public]
        self.feature_range_ = pd.DataFrame([seen.min(axis=0), seen.max(axis=0)], ["min", "max"], [*FEATURE_NAMES])
        engines = X.loc[origins.is_competent, "config.engine"].unique()
        self.competent_since_ = {ENGINES[int(code)]: recent_since(X, stacks) for code in engines}
        features = without_columns(prediction.features, DATE)
        keys = prediction.keys.on_stacks(stacks, X.index)
        is_central = (X["workload.quantile"] == 0.5).to_numpy()
        self.error_distributions_: dict[str, ErrorDistribution] = {}
        errors, expected = {}, {}
        for metric in self.metrics_:
            measured = y[metric].to_numpy(dtype=float)
            error = np.stack([log_ratio(measured, table[metric].to_numpy()) for table in held_out])
            known = np.flatnonzero(~np.isnan(error[0]) & is_public)
            if groups.iloc[known[is_central[known]]].nunique() < 2:
                continue
            errors[metric], expected[metric] = np.full((2, 3, len(X)), np.nan)
            fold_errors = log_ratio(measured, by_fold[metric])[:, known]
            fitted = fit_error_distribution(
                features[known],
                keys.take(known),
                error[:, known],
                origins.take(known),
                residual=_own_residuals(log_ratio(measured, prediction.value[metric]), keys)[known],
                stack_residual=log_ratio(measured, full.value[metric])[known],
                fold_errors=FoldErrors(fold[known], fold_errors),
                is_central=is_central[known],
            )
            self.error_distributions_[metric], errors[metric][:, known], expected[metric][:, known] = fitted
        self.metrics_ = tuple(self.error_distributions_)
        self.scores_ = {metric: np.abs(errors[metric]) / expected[metric] for metric in errors}
        if set(SOURCES) <= errors.keys():
            shares = prediction.error_shares()
            for metric, scores in derived_scores(shares, prediction.loads, errors, expected).items():
                self.scores_[metric] = scores
                distribution = self.error_distributions_[metric]
                self.error_distributions_[metric] = distribution.with_scores(scores, origins)
        self.error_distributions_ = condition_on_imputed_errors(
            self.error_distributions_, X, public, (prediction, full), keys
        )
        return self

    def predict_distribution(
        self,
        X: QueryTable,
        points: CalibrationPoints | None = None,
        *,
        metrics: Collection[str] | None = None,
        estimate: Estimate | None = None,
        keys: GroupKeys | None = None,
    ) -> Prediction:
        """Return the predictive distribution of `select_metrics(metrics)`, conditioned on calibration points.

        `estimate`, if given, is that of the queries by this predictor's coefficients, and `keys` their group keys.
        """
        check_is_fitted(self)
        names = self.select_metrics(metrics)
        prediction, distributions = self.predict_ratio(X, names, estimate, keys), self._condition(points, names)
        keys = self._keys_on_stack(prediction)
        own = [metric for metric in names if not prediction.follows(metric)]
        errors = {metric: distributions[metric].predict(prediction.features, keys) for metric in own}
        return self._build_prediction(X, prediction, distributions, errors)

    def predict_left_out(
        self, points: CalibrationPoints, groups: npt.NDArray[np.intp], is_point: npt.NDArray[np.bool_]
    ) -> Prediction:
        """Return the predictive distribution of each row of calibration points, conditioned on other groups alone.

        `groups`: shape (n_row,): such as the run of each row. `is_point`: shape (n_row,): whether the row conditions
        the predictions of other groups.
        """
        check_is_fitted(self)
        prediction, error, keys = self._calibration_errors(points)
        features, distributions = prediction.features, self.error_distributions_
        errors = {
            metric: distributions[metric].predict_left_out(features, keys, error[metric], groups, is_point)
            for metric in self.metrics_
        }
        return self._build_prediction(points.X, prediction, distributions, errors)

    def select_metrics(self, metrics: Collection[str] | None = None) -> tuple[str, ...]:
        """Return the predicted metrics among `metrics`, or all if None, and the sources of derived ones."""
        wanted = set(self.metrics_ if metrics is None else metrics)
        wanted.update(SOURCES if wanted & set(DERIVED) else ())
        return tuple(metric for metric in self.metrics_ if metric in wanted)

    def sample(
        self, X: pd.DataFrame, n_draw: int = 500, points: CalibrationPoints | None = None, seed: int = 0
    ) -> dict[str, FloatArray]:
        """Return draws of the mean of many measurements, by metric: shape (n_draw, n_query).

        Within a draw, errors of queries are correlated by the effects that they share. Errors of two metrics are
        independent unless one is derived from the other.
        """
        check_is_fitted(self)
        prediction, distributions = self.predict_ratio(X), self._condition(points, self.metrics_)
        features, keys = prediction.features, self._keys_on_stack(prediction)
        rng = np.random.default_rng(seed)
        draws: dict[str, FloatArray] = {}
        for metric in prediction.value:
            mean, covariance = distributions[metric].predict_joint(features, keys)
            draws[metric] = rng.multivariate_normal(mean, covariance, n_draw, check_valid="ignore", method="eigh")
        return prediction.apply_shifts(draws)

    def condition_on(self, points: CalibrationPoints | None) -> RoofcastPredictor:
        """Return the predictor conditioned on calibration points; itself if there are none."""
        if points is None:
            return self
        other = copy.copy(self)
        other.error_distributions_ = self._condition(points, self.metrics_)
        other.points_ = (*self.points_, points)
        return other

    def on_stack(self, stack: str | pd.Series) -> RoofcastPredictor:
        """Return the predictor of queries about a stack that training rows name, as `owner/part`.

        The estimate has the offsets of the stack's owner, the correction applies in full, errors on the stack's own
        rows shift predictions, and intervals are those of lineages left out. Calibration points of this predictor
        condition the returned one too.

        `stack`: shape (n_query,): of all queries, or of each by its index: stacks of one owner. Raises
        `OutOfRangeError` if no training point is of a stack; `ValueError` if the stacks have several owners.
        """
        names = pd.Series([stack]) if isinstance(stack, str) else stack
        if not (known := self.knows_stacks(names)).all():
            unknown = names[~known].iloc[0]
            raise OutOfRangeError(f"no measurement that the predictor learnt from is of the stack {unknown!r}")
        owner, *others = stack_owners(names).unique()
        if others:
            raise ValueError(f"the stacks have several owners, ask about one at a time: {[owner, *others]}")
        other = self._with_full_correction()
        other.coefficients_ = self.owner_offsets_.of_owner(owner, self.coefficients_)
        other.stack_, keys = stack, np.unique(stack_keys(names.to_numpy(dtype=object)))
        other.error_distributions_ = {
            metric: one.on_measured_stacks(keys) for metric, one in self.error_distributions_.items()
        }
        other.points_ = ()
        for points in self.points_:
            other = other.condition_on(points)
        return other

    def of_any_operator(self) -> RoofcastPredictor:
        """Return the predictor of a stack that anybody runs, instead of a competent operator (`competent_rows`)."""
        other = copy.copy(self)
        other.error_distributions_ = {m: one.of_any_operator() for m, one in self.error_distributions_.items()}
        return other

    def knows_stacks(self, names: pd.Series) -> BoolArray:
        """Return whether the predictor learnt from rows of each stack: shape (n_name,)."""
        known = np.concatenate([one.stack_points.stack for one in self.error_distributions_.values()])
        return np.isin(stack_keys(names.to_numpy(dtype=object)), known)

    def _keys_on_stack(self, prediction: RatioPrediction) -> GroupKeys:
        keys, index = prediction.keys, prediction.index
        if isinstance(self.stack_, str):
            return keys.on_stacks(pd.Series(self.stack_, index), index) if self.stack_ else keys
        return keys.on_stacks(self.stack_, index)

    def _with_full_correction(self) -> RoofcastPredictor:
        other = copy.copy(self)
        other.carry_over_ = {}
        return other

    def _condition(self, points: CalibrationPoints | None, metrics: Collection[str]) -> dict[str, ErrorDistribution]:
        distributions = {metric: self.error_distributions_[metric] for metric in metrics}
        if points is None or points.X.empty:
            return distributions
        conditioned = points.conditioned.setdefault(self, {})
        if missing := set(metrics) - conditioned.keys():
            conditioned.update(self._condition_metrics(points, missing))
        return {metric: conditioned[metric] for metric in metrics}

    def _condition_metrics(self, points: CalibrationPoints, metrics: Collection[str]) -> dict[str, ErrorDistribution]:
        distributions = {metric: self.error_distributions_[metric] for metric in metrics}
        prediction, error, keys = self._calibration_errors(points)
        for metric in metrics:
            known = np.flatnonzero(~np.isnan(error[metric]))
            if len(known):
                distributions[metric] = distributions[metric].condition_on(
                    prediction.features[known], keys.take(known), error[metric][known]
                )
        return distributions

    def _calibration_errors(
        self, points: CalibrationPoints
    ) -> tuple[RatioPrediction, dict[str, FloatArray], GroupKeys]:
        prediction = self.predict_ratio(points.X)
        keys = self._keys_on_stack(prediction)
        if points.stacks is not None:
            keys = keys.on_stacks(points.stacks, points.X.index)
        features = prediction.features
        means = {metric: known.predict(features, keys).mean for metric, known in self.error_distributions_.items()}
        surprise = calibration_surprises(points.X, points.y, prediction, prediction.apply_shifts(means))
        return prediction, {metric: surprise[metric] + mean for metric, mean in means.items()}, keys

    def _build_prediction(
        self,
        X: QueryTable,
        prediction: RatioPrediction,
        distributions: Mapping[str, ErrorDistribution],
        errors: Mapping[str, LogError],
    ) -> Prediction:
        medians = prediction.apply_shifts({metric: error.mean for metric, error in errors.items()})
        d, sds = descriptor_arrays(X), derived_sds(prediction, errors)
        physical, is_competent = physical_bounds(d, prediction.estimate), self._is_competent(d)
        is_measured = np.any([error.mean != 0 for error in errors.values()], axis=0)
        for metric, median in medians.items():
            possible = (np.minimum if metric == THROUGHPUT else np.maximum)(median, physical[metric])
            medians[metric] = np.where(is_measured, median, possible)
        return Prediction(
            medians,
            {m: sds[m] * np.where(is_competent, 1.0, distributions[m].conformal.widening) for m in medians},
            {metric: distributions[metric].conformal for metric in medians},
            physical,
            prediction.estimate,
            prediction.features,
            prediction.index,
        )

    def _is_competent(self, d: Queries) -> BoolArray:
        since = np.array([self.competent_since_.get(engine, np.inf) for engine in ENGINES])
        return np.asarray(d["config.date"] >= since[d["config.engine"].astype(np.intp)])

    def build_cache(self, metrics: Collection[str]) -> Self:
        """Build the lookup caches of some metrics eagerly and return the predictor."""
        for metric in self.error_distributions_.keys() & set(metrics):
            self.regressors_[metric].build_cache()
            self.error_distributions_[metric].build_cache()
        return self

    def check_level(self, level: float, metrics: Collection[str] | None = None) -> None:
        """Check that some metrics, or all, support intervals at `level`.

        Raises `OutOfRangeError` if there are too few measured lineages.
        """
        check_is_fitted(self)
        conformals = [self.error_distributions_[metric].conformal for metric in self.select_metrics(metrics)]
        for conformal in sorted(conformals, key=lambda one: one.highest_level):
            conformal.quantile(level)

    def highest_level(self, metrics: Collection[str] | None = None) -> float:
        """Return the highest level that each of some metrics, or of all, supports."""
        check_is_fitted(self)
        levels = [self.error_distributions_[m].conformal.highest_level for m in self.select_metrics(metrics)]
        if not levels:
            raise OutOfRangeError("no metric was measured")
        return min(levels)

    def extrapolated_features(self, features: FloatArray) -> list[list[str]]:
        """Return the features of each query, shape (n_query, n_feature), outside their range in training."""
        low, high = self.feature_range_.to_numpy()
        margin = 0.05 * (high - low) + 1e-9
        is_outside = (features < low - margin) | (features > high + margin)
        return [[*compress(FEATURE_NAMES, row)] for row in is_outside.tolist()]


@dataclass(frozen=True, slots=True)
class CalibrationPoints:
    """Measurements of the LLM in question, or of the user's own stack.

    - `X`: shape (n_row, n_descriptor)
    - `y`: shape (n_row, n_metric). Measured values; NaN or no column where unknown.
    - `stacks`: shape (n_row,). Stack of each row, aligned by index; None for that of the queries.

    - `conditioned`: Cache: the error distributions that a predictor has conditioned on these points, by metric.
    """

    X: pd.DataFrame
    y: pd.DataFrame
    stacks: pd.Series | None = None
    conditioned: WeakKeyDictionary[RoofcastPredictor, dict[str, ErrorDistribution]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if len(self.X) != len(self.y):
            raise InputError("references", f"got {len(self.X)} questions and {len(self.y)} measurements")


def _own_residuals(residual: FloatArray, keys: GroupKeys) -> FloatArray:
    return np.where((keys.stack == TARGET_STACK) | np.isnan(residual), residual, 0.0)
