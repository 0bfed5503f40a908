"""The predictor: calibrated estimate, boosted residual and conformal intervals in one estimator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from roofcast.data.errors import OutOfRangeError
from roofcast.features.batching import Estimate
from roofcast.features.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.features.columns import FEATURES
from roofcast.features.pipeline import METRICS, build_features
from roofcast.training.calibration import fit_coefficients
from roofcast.training.config import TrainingConfig
from roofcast.training.estimators import ResidualRegressor
from roofcast.training.intervals import GroupedConformal
from roofcast.training.targets import log_ratio, row_weights
from roofcast.training.validation import leave_one_group_out

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[Iterable[Any], int, str], Iterable[Any]]

LATENCY_SIGNS = tuple(column.sign for column in FEATURES)
MAX_FOLD = 12


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predictions with their parts; frames have shape (n_question, n_metric), columns the metrics.

    Parameters
    ----------
    value
        Predicted median of each metric, in its SI unit.
    low, high
        Interval at `level`.
    level
        Probability that an unseen LLM's measurement lies within.
    estimate
        The analytic estimate that the learner started from.
    features
        What the learner saw.
    """

    value: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    level: float
    estimate: Estimate
    features: pd.DataFrame


class PointPredictor(BaseEstimator):  # type: ignore[misc]
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
        self.metrics_ = tuple(m for m in self.metrics if (y[m] > 0).any())
        self.regressors_: dict[str, ResidualRegressor] = {}
        for metric in self.metrics_:
            target = log_ratio(y[metric].to_numpy(dtype=float), estimates[metric])
            known = ~np.isnan(target)
            self.regressors_[metric] = _regressor(config, metric).fit(
                features.to_numpy()[known], target[known], row_weights(groups[known])
            )
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
        check_is_fitted(self)
        features, estimates, whole = build_features(X, self.coefficients_)
        matrix = features.to_numpy()
        wanted = [m for m in self.metrics_ if metrics is None or m in metrics]
        columns = {m: estimates[m] * np.exp(self.regressors_[m].predict(matrix)) for m in wanted}
        return pd.DataFrame(columns, index=X.index), features, whole

    def predict(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the predicted metrics: shape (n_question, n_metric)."""
        return self.predict_parts(X)[0]


class RoofcastPredictor(PointPredictor):
    """`PointPredictor` with grouped conformal intervals.

    `fit` also predicts every row from a predictor that never saw its lineage; the errors of those predictions
    give the intervals, and stand as `held_out_` for whoever judges the predictor. A metric that one lineage alone
    holds has no such error and is not predicted.

    Attributes
    ----------
    conformal_
        `GroupedConformal` by metric.
    held_out_
        Predictions of the training rows with their lineage held out: shape (n_row, n_metric).
    feature_range_
        Least and greatest value of each feature in training: shape (2, n_feature).
    """

    def fit(self, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series, progress: Progress | None = None) -> Self:
        """Fit, predict every lineage from the others, and return the predictor."""
        self.held_out_ = predict_held_out(self, X, y, groups, progress)
        super().fit(X, y, groups)
        self.conformal_ = {
            m: GroupedConformal(np.abs(log_ratio(y[m].to_numpy(dtype=float), self.held_out_[m].to_numpy())), groups)
            for m in self.metrics_
        }
        self.metrics_ = tuple(m for m in self.metrics_ if self.conformal_[m].n_group)
        self.conformal_ = {m: self.conformal_[m] for m in self.metrics_}
        features, _, _ = build_features(X, self.coefficients_)
        self.feature_range_ = features.agg(["min", "max"])
        return self

    def predict_interval(self, X: pd.DataFrame, level: float = 0.9) -> Prediction:
        """Return predictions with intervals made to hold an unseen LLM's measurement with probability `level`.

        Raises
        ------
        OutOfRangeError
            If `level` is more than the number of lineages measured can promise.
        """
        self.check_level(level)
        value, features, whole = self.predict_parts(X)
        width = pd.Series({m: np.exp(self.conformal_[m].quantile(level)) for m in self.metrics_})
        return Prediction(value, value / width, value * width, level, whole, features)

    def check_level(self, level: float) -> None:
        """Raise if intervals at `level` cannot be promised.

        Raises
        ------
        OutOfRangeError
            If `level` is more than the number of lineages measured can promise.
        """
        check_is_fitted(self)
        for conformal in self.conformal_.values():
            conformal.quantile(level)

    @property
    def highest_level(self) -> float:
        """Highest level that every metric can promise."""
        check_is_fitted(self)
        if not self.conformal_:
            raise OutOfRangeError("no metric was measured")
        return min(conformal.highest_level for conformal in self.conformal_.values())

    def outside(self, features: pd.DataFrame) -> pd.Series:
        """Return, per question, the features that lie outside what was measured, separated by spaces."""
        low, high = self.feature_range_.loc["min"], self.feature_range_.loc["max"]
        margin = 0.05 * (high - low) + 1e-9
        beyond = ((features < low - margin) | (features > high + margin)).to_numpy()
        names = features.columns.to_numpy()
        return pd.Series([" ".join(names[row]) for row in beyond], index=features.index, dtype=object)


def predict_held_out(
    predictor: PointPredictor,
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
        As in `PointPredictor.fit`.
    progress
        Called as ``progress(folds, n_fold, label)``; returns the folds.
    trainable : shape (n_row,)
        Rows that may be trained on; None for all. Rows of a fold that leaves none are NaN.
    """
    allowed = np.ones(len(X), dtype=bool) if trainable is None else trainable
    folds = list(leave_one_group_out(groups, MAX_FOLD))
    predicted = pd.DataFrame(np.nan, index=X.index, columns=list(predictor.metrics))
    for train, test in progress(folds, len(folds), "held-out lineages") if progress else folds:
        rows = train[allowed[train]]
        if len(rows):
            fold = PointPredictor(predictor.config, predictor.metrics, predictor.coefficients)
            answer = fold.fit(X.iloc[rows], y.iloc[rows], groups.iloc[rows]).predict(X.iloc[test])
            predicted.loc[X.index[test], answer.columns] = answer
    return predicted


def _regressor(config: TrainingConfig, metric: str) -> ResidualRegressor:
    sign = -1 if metric == "output_throughput_token_per_s" else 1
    settings = config.model_dump(exclude={"calibrate", "seed"})
    return ResidualRegressor(**settings, monotone=[sign * s for s in LATENCY_SIGNS], random_state=config.seed)
