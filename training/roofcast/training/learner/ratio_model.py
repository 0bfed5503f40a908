"""The point predictor: the calibrated estimate times the boosted ratio."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from roofcast.features.arrays import build_frame
from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.descriptors.config_hash import CELL, config_hashes, joint_hash
from roofcast.features.descriptors.descriptor_table import QUANTILE
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.features.engine.estimate import Estimate
from roofcast.features.pipeline import METRICS, build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.targets import log_ratio, row_weights
from roofcast.training.learner.boosted_residual import ResidualRegressor
from roofcast.training.learner.calibration import fit_coefficients
from roofcast.training.learner.reconciliation import SOURCES, Loads, coherent

Progress = Callable[[Iterable[Any], int, str], Iterable[Any]]

FloatArray = npt.NDArray[np.float64]

_QUANTILES: Final = tuple(sorted(set(QUANTILE.values())))

POOLED: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")
"""Metrics that tell of the same kernels, static batches aside, and are measured of unlike LLMs and accelerators."""

LEARNS_FROM_POOL: Final = "tpot_s"
"""Metric that trees fitted to all of `POOLED` help: it is measured of the fewest LLMs and accelerators."""

QUANTILE_PLACE = FEATURE_NAMES.index("workload.quantile")
IS_MEAN_PLACE = FEATURE_NAMES.index("workload.is_mean")


@dataclass(frozen=True, slots=True)
class RatioPrediction:
    """A prediction and what it was made of; arrays have shape (n_question,).

    Parameters
    ----------
    value, estimates
        Predictions and estimates of the statistics asked for, by metric.
    pace
        Predicted over estimated mean of what others follow from; empty if nothing that was asked follows.
    features
        What the learner saw.
    whole
        The estimate, of means.
    loads
        Of the questions.
    """

    value: dict[str, FloatArray]
    estimates: dict[str, FloatArray]
    pace: dict[str, FloatArray]
    features: pd.DataFrame
    whole: Estimate
    loads: Loads


class RatioModel(BaseEstimator):  # type: ignore[misc]
    """Calibrated estimate times the boosted ratio, without intervals.

    Parameters
    ----------
    config
        Settings; None for the defaults.
    metrics
        Which of `METRICS` to predict.
    coefficients
        Of the estimate; None to fit them, or take the priors, as `config.calibrate` says.

    Attributes
    ----------
    coefficients_
        Of the estimate.
    regressors_
        Fitted `ResidualRegressor` by metric.
    metrics_
        The metrics that the training rows hold.
    """

    def __init__(
        self,
        config: TrainingConfig | None = None,
        metrics: tuple[str, ...] = METRICS,
        coefficients: Coefficients | None = None,
    ) -> None:
        self.config = config
        self.metrics = metrics
        self.coefficients = coefficients

    def fit(self, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series) -> Self:
        """Calibrate the estimate, fit one residual a metric, and return the predictor.

        Parameters
        ----------
        X : shape (n_row, n_descriptor)
        y : shape (n_row, n_metric)
            Columns `METRICS`; NaN where a row does not say.
        groups : shape (n_row,)
            Which LLM lineage a row belongs to.
        """
        config = self.config or TrainingConfig()
        self.coefficients_ = self._coefficients(config, X, y, groups)
        features, estimates, _ = build_features(X, self.coefficients_)
        cells = joint_hash(config_hashes(X), CELL)
        self.metrics_ = tuple(m for m in self.metrics if (y[m] > 0).any())
        columns, pool = features.to_numpy(), {}
        is_live = (X["workload.is_static"] == 0).to_numpy()
        self.regressors_: dict[str, ResidualRegressor] = {}
        for metric in self.metrics_:
            target = log_ratio(y[metric].to_numpy(dtype=float), estimates[metric])
            known = ~np.isnan(target)
            weight = row_weights(cells[known])
            self.regressors_[metric] = _regressor(config).fit(columns[known], target[known], weight)
            if metric in POOLED and (known & is_live).any():
                weight = row_weights(cells[known & is_live])
                pool[metric] = (columns[known & is_live], _sign(metric) * target[known & is_live], weight)
        if LEARNS_FROM_POOL in pool and len(pool) > 1:
            self.regressors_[LEARNS_FROM_POOL].learn_besides([*pool.values()])
        return self

    def _coefficients(
        self, config: TrainingConfig, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series
    ) -> Coefficients:
        if self.coefficients is not None:
            return self.coefficients
        return fit_coefficients(X, y, groups) if config.calibrate else DEFAULT_COEFFICIENTS

    def predict_parts(
        self, X: pd.DataFrame, metrics: Collection[str] | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame, Estimate]:
        """Return predictions of some metrics, or of all, the learner's columns and the estimate."""
        parts = self.predict_columns(X, metrics)
        return build_frame(parts.value, tuple(parts.value), X.index), parts.features, parts.whole

    def predict_columns(
        self, X: pd.DataFrame, metrics: Collection[str] | None = None, estimate: Estimate | None = None
    ) -> RatioPrediction:
        """Return predictions of some metrics, or of all, with what they were made of; `estimate` if it is known."""
        check_is_fitted(self)
        wanted = [m for m in self.metrics_ if metrics is None or m in metrics]
        loads = Loads.of(X)
        follows = loads.follows if set(SOURCES) <= set(self.metrics_) else {}
        led = any(m in follows for m in wanted)
        needed = {*wanted, *(SOURCES if led else ())}
        features, estimates, whole = build_features(X, self.coefficients_, estimate, needed)
        asked = _Asked.from_features(features.to_numpy(), with_means=led)
        value, pace = {}, {}
        for m in self.metrics_:
            if m in wanted and m in follows and follows[m].all():
                value[m] = estimates[m]
            elif m in wanted or (led and m in SOURCES):
                found = self.regressors_[m].predict_unchecked(asked.rows)
                value[m] = np.asarray(estimates[m] * np.exp(_rising(found, asked, _sign(m))))
                if led and m in SOURCES:
                    pace[m] = value[m] / estimates[m]
                    pace[m][asked.means] = np.exp(found[len(found) - len(asked.means) :])
        answer = coherent(value, estimates, pace, whole, loads)
        return RatioPrediction({m: answer[m] for m in wanted}, estimates, pace, features, whole, loads)

    def predict(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the predicted metrics: shape (n_question, n_metric)."""
        return self.predict_parts(X)[0]


def predict_held_out(
    predictor: RatioModel,
    X: pd.DataFrame,
    y: pd.DataFrame,
    groups: pd.Series,
    progress: Progress | None = None,
    *,
    trainable: npt.NDArray[np.bool_] | None = None,
) -> pd.DataFrame:
    """Return predictions of each row from a predictor that never saw the row's group.

    Parameters
    ----------
    predictor
        Its settings are used; it is not fitted.
    X, y, groups
        As in `RatioModel.fit`.
    progress
        Called as ``progress(folds, n_fold, label)``; returns the folds.
    trainable : shape (n_row,)
        Rows that may be trained on; None for all. Rows of a fold that leaves none are NaN.
    """
    allowed = np.ones(len(X), dtype=bool) if trainable is None else trainable
    folds = list(leave_one_group_out(groups, (predictor.config or TrainingConfig()).n_fold))
    predicted = pd.DataFrame(np.nan, index=X.index, columns=list(predictor.metrics))
    for train, test in progress(folds, len(folds), "held-out lineages") if progress else folds:
        rows = train[allowed[train]]
        if len(rows):
            fold = RatioModel(predictor.config, predictor.metrics, predictor.coefficients)
            answer = fold.fit(X.iloc[rows], y.iloc[rows], groups.iloc[rows]).predict(X.iloc[test])
            predicted.loc[X.index[test], answer.columns] = answer
    return predicted


def at_quantile(features: FloatArray, quantile: float) -> FloatArray:
    """Return the learner's columns, shape (n, n_feature), as if another quantile had been asked; means stay means."""
    asked = features.copy()
    is_mean = features[:, IS_MEAN_PLACE] > 0
    asked[~is_mean, QUANTILE_PLACE] = quantile
    return asked


@dataclass(frozen=True, slots=True)
class _Asked:
    """Rows as they are asked, then those of higher quantiles as if each lower one, and the mean, had been asked.

    Parameters
    ----------
    rows : shape (n_row + n_lower + n_mean, n_feature)
    lower
        Which of the n rows each group of the lower ones stands for, quantile by quantile.
    means
        Which of them the last ones stand for.
    """

    rows: FloatArray
    lower: tuple[npt.NDArray[np.intp], ...]
    means: npt.NDArray[np.intp]

    @classmethod
    def from_features(cls, features: FloatArray, *, with_means: bool) -> Self:
        above = [(q, np.flatnonzero(features[:, QUANTILE_PLACE] > q)) for q in _QUANTILES]
        lower = [(q, rows) for q, rows in above if len(rows)]
        means = np.flatnonzero((features[:, IS_MEAN_PLACE] < 0.5) & with_means)
        as_means = features[means]
        as_means[:, [IS_MEAN_PLACE, QUANTILE_PLACE]] = 1.0, 0.5
        parts = [features, *(at_quantile(features[rows], q) for q, rows in lower), as_means]
        return cls(np.concatenate(parts), tuple(rows for _, rows in lower), means)


def _rising(correction: FloatArray, asked: _Asked, sign: int) -> FloatArray:
    """Return the correction of the rows that are asked, no less for a quantile than for a lower one.

    Absolute loss fits leaves anew after the trees have grown, which breaks a monotone constraint; so the correction
    of each quantile is the greatest up to it. The estimate below it rises by itself.

    References
    ----------
    V. Chernozhukov, I. Fernandez-Val and A. Galichon, "Quantile and Probability Curves Without Crossing",
    Econometrica 2010.
    """
    found = sign * correction
    start = len(found) - sum(map(len, asked.lower)) - len(asked.means)
    greatest = found[:start]
    for rows in asked.lower:
        greatest[rows] = np.maximum(greatest[rows], found[start : start + len(rows)])
        start += len(rows)
    return sign * greatest


def _sign(metric: str) -> int:
    return -1 if metric == "output_throughput_token_per_s" else 1


def _regressor(config: TrainingConfig) -> ResidualRegressor:
    settings = config.model_dump(exclude={"calibrate", "seed", "n_fold"})
    return ResidualRegressor(**settings, random_state=config.seed)
