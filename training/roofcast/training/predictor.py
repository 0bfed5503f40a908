"""The predictor: calibrated estimate, boosted residual, random effects and conformal intervals in one estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.features.batching import Estimate
from roofcast.features.pipeline import build_features
from roofcast.training.effects import places
from roofcast.training.point import PointPredictor, Progress, predict_held_out
from roofcast.training.targets import log_ratio
from roofcast.training.uncertainty import Uncertainty, fit_uncertainty

FloatArray = npt.NDArray[np.float64]


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


@dataclass(frozen=True, slots=True)
class References:
    """Measurements of the LLM in question, or of the user's own stack.

    Parameters
    ----------
    X : shape (n_row, n_descriptor)
    y : shape (n_row, n_metric)
        What was measured; NaN or no column where a row does not say.
    """

    X: pd.DataFrame
    y: pd.DataFrame

    def __post_init__(self) -> None:
        """Check the tables against each other.

        Raises
        ------
        InputError
            If they differ in length.
        """
        if len(self.X) != len(self.y):
            raise InputError("references", f"got {len(self.X)} questions and {len(self.y)} measurements")


class RoofcastPredictor(PointPredictor):
    """`PointPredictor` with the distribution of its errors.

    `fit` also predicts every row from a predictor that never saw its lineage; the errors of those predictions
    give the effects and intervals, and stand as `held_out_` for whoever judges the predictor. A metric that one
    lineage alone holds has no such error and is not predicted.

    Attributes
    ----------
    uncertainty_
        `Uncertainty` by metric.
    held_out_
        Predictions of the training rows with their lineage held out: shape (n_row, n_metric).
    feature_range_
        Least and greatest value of each feature in training: shape (2, n_feature).
    """

    def fit(self, X: pd.DataFrame, y: pd.DataFrame, groups: pd.Series, progress: Progress | None = None) -> Self:
        """Fit, predict every lineage from the others, and return the predictor."""
        self.held_out_ = predict_held_out(self, X, y, groups, progress)
        super().fit(X, y, groups)
        features, _, _ = build_features(X, self.coefficients_)
        self.feature_range_ = features.agg(["min", "max"])
        matrix, asked = features.to_numpy(), places(X)
        is_central = (X["workload.quantile"] == 0.5).to_numpy()
        self.uncertainty_: dict[str, Uncertainty] = {}
        for metric in self.metrics_:
            error = log_ratio(y[metric].to_numpy(dtype=float), self.held_out_[metric].to_numpy())
            known = np.flatnonzero(~np.isnan(error))
            if len(groups.iloc[known[is_central[known]]].unique()) > 1:
                self.uncertainty_[metric] = fit_uncertainty(
                    matrix[known], asked.take(known), error[known], groups.iloc[known], is_central[known]
                )
        self.metrics_ = tuple(m for m in self.metrics_ if m in self.uncertainty_)
        return self

    def predict_interval(
        self, X: pd.DataFrame, level: float = 0.9, references: References | None = None
    ) -> Prediction:
        """Return predictions with intervals made to hold an unseen LLM's measurement with probability `level`.

        Parameters
        ----------
        X : shape (n_question, n_descriptor)
        level
            Of the intervals.
        references
            Measurements that shift and tighten the predictions of what resembles them.

        Raises
        ------
        OutOfRangeError
            If `level` is more than the number of lineages measured can promise.
        """
        self.check_level(level)
        value, features, whole = self.predict_parts(X)
        matrix, asked, known = features.to_numpy(), places(X), self._known(references)
        low, high = value.copy(), value.copy()
        for metric in value.columns.map(str):
            mean, sd = known[metric].shift(matrix, asked)
            half = sd * known[metric].conformal.quantile(level)
            value[metric] *= np.exp(mean)
            low[metric], high[metric] = value[metric] * np.exp(-half), value[metric] * np.exp(half)
        return Prediction(value, low, high, level, whole, features)

    def sample(
        self, X: pd.DataFrame, n_draw: int = 500, references: References | None = None, seed: int = 0
    ) -> dict[str, FloatArray]:
        """Return draws of what many measurements would give in the mean, by metric: shape (n_draw, n_question).

        The errors of one draw go together as questions share effects; those of two metrics are drawn apart.
        """
        value, features, _ = self.predict_parts(X)
        matrix, asked, known = features.to_numpy(), places(X), self._known(references)
        rng = np.random.default_rng(seed)
        draws: dict[str, FloatArray] = {}
        for metric in value.columns.map(str):
            mean, covariance = known[metric].joint(matrix, asked)
            shifts = rng.multivariate_normal(mean, covariance, n_draw, check_valid="ignore", method="eigh")
            draws[metric] = value[metric].to_numpy() * np.exp(shifts)
        return draws

    def _known(self, references: References | None) -> dict[str, Uncertainty]:
        if references is None or references.X.empty:
            return self.uncertainty_
        value, features, _ = self.predict_parts(references.X)
        matrix, given = features.to_numpy(), places(references.X)
        known = {}
        for metric, uncertainty in self.uncertainty_.items():
            measured = references.y.get(metric)
            if measured is None or not (measured > 0).any():
                known[metric] = uncertainty
                continue
            error = log_ratio(measured.to_numpy(dtype=float), value[metric].to_numpy())
            told = np.flatnonzero(~np.isnan(error))
            known[metric] = uncertainty.conditioned(matrix[told], given.take(told), error[told])
        return known

    def check_level(self, level: float) -> None:
        """Raise if intervals at `level` cannot be promised.

        Raises
        ------
        OutOfRangeError
            If `level` is more than the number of lineages measured can promise.
        """
        check_is_fitted(self)
        for uncertainty in self.uncertainty_.values():
            uncertainty.conformal.quantile(level)

    @property
    def highest_level(self) -> float:
        """Highest level that every metric can promise."""
        check_is_fitted(self)
        if not self.uncertainty_:
            raise OutOfRangeError("no metric was measured")
        return min(uncertainty.conformal.highest_level for uncertainty in self.uncertainty_.values())

    def outside(self, features: pd.DataFrame) -> pd.Series:
        """Return, per question, the features that lie outside what was measured, separated by spaces."""
        low, high = self.feature_range_.loc["min"], self.feature_range_.loc["max"]
        margin = 0.05 * (high - low) + 1e-9
        beyond = ((features < low - margin) | (features > high + margin)).to_numpy()
        names = features.columns.to_numpy()
        return pd.Series([" ".join(names[row]) for row in beyond], index=features.index, dtype=object)
