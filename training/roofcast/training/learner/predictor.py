"""The predictor: calibrated estimate, boosted residual, random effects and conformal intervals in one estimator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.features.arrays import build_frame
from roofcast.features.engine.estimate import Estimate
from roofcast.features.pipeline import build_features
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.conformal import GroupedConformal
from roofcast.training.learner.derived_metrics import lead, scores_of_followers, sds_of_followers
from roofcast.training.learner.group_keys import places
from roofcast.training.learner.ratio_model import Progress, RatioModel, RatioPrediction, predict_held_out
from roofcast.training.learner.reconciliation import THROUGHPUT, coherent
from roofcast.training.learner.uncertainty import Uncertainty, fit_uncertainty

FloatArray = npt.NDArray[np.float64]

INTERCHANGEABLE: Final = ("tpot_s", "itl_s")
"""Time a token over requests, and over gaps: where the one runs slower than predicted, so does the other."""


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


class RoofcastPredictor(RatioModel):
    """`RatioModel` with the distribution of its errors.

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
    whole
        Of a predictor that was narrowed to some metrics, the one of all; else None.
    """

    whole: RoofcastPredictor | None = None

    def fit(
        self,
        X: pd.DataFrame,
        y: pd.DataFrame,
        groups: pd.Series,
        progress: Progress | None = None,
        *,
        stacks: pd.Series | None = None,
    ) -> Self:
        """Fit, predict every lineage from the others, and return the predictor.

        Parameters
        ----------
        X, y, groups, progress
            As in `RatioModel.fit` and `predict_held_out`.
        stacks : shape (n_row,)
            Names of whose stack each row was measured on; empty, or None for all, for that which questions are about.
        """
        self.held_out_ = predict_held_out(self, X, y, groups, progress)
        super().fit(X, y, groups)
        parts = self.predict_columns(X)
        self.feature_range_ = parts.features.agg(["min", "max"])
        matrix, asked = parts.features.to_numpy(), places(X, stacks)
        is_central = (X["workload.quantile"] == 0.5).to_numpy()
        self.uncertainty_: dict[str, Uncertainty] = {}
        errors, expected = {}, {}
        for metric in self.metrics_:
            measured = y[metric].to_numpy(dtype=float)
            error = log_ratio(measured, self.held_out_[metric].to_numpy())
            known = np.flatnonzero(~np.isnan(error))
            if len(groups.iloc[known[is_central[known]]].unique()) > 1:
                errors[metric], expected[metric] = error, np.full(len(error), np.nan)
                self.uncertainty_[metric], expected[metric][known] = fit_uncertainty(
                    matrix[known],
                    asked.take(known),
                    error[known],
                    groups.iloc[known],
                    left=log_ratio(measured, parts.value[metric])[known],
                    is_central=is_central[known],
                )
        self.metrics_ = tuple(m for m in self.metrics_ if m in self.uncertainty_)
        for metric, scores in scores_of_followers(parts, errors, expected).items():
            conformal = GroupedConformal(scores, groups)
            self.uncertainty_[metric] = replace(self.uncertainty_[metric], conformal=conformal)
        return self

    def predict_interval(
        self,
        X: pd.DataFrame,
        level: float = 0.9,
        references: References | None = None,
        estimate: Estimate | None = None,
    ) -> Prediction:
        """Return predictions with intervals made to hold an unseen LLM's measurement with probability `level`.

        Parameters
        ----------
        X : shape (n_question, n_descriptor)
        level
            Of the intervals.
        references
            Measurements that shift and tighten the predictions of what resembles them.
        estimate
            Of the questions by this predictor's coefficients, if it was made before.

        Raises
        ------
        OutOfRangeError
            If `level` is more than the number of lineages measured can promise.
        """
        self.check_level(level)
        parts, known = self.predict_columns(X, estimate=estimate), self.known(references)
        matrix, asked = parts.features.to_numpy(), places(X)
        shifts = {metric: known[metric].shift(matrix, asked) for metric in parts.value}
        value = _moved(parts, {metric: mean for metric, (mean, _) in shifts.items()})
        sds = {metric: sd for metric, (_, sd) in shifts.items()}
        low, high = {}, {}
        for metric, sd in (sds | sds_of_followers(parts, known, asked, sds)).items():
            half = sd * known[metric].conformal.quantile(level)
            low[metric], high[metric] = value[metric] * np.exp(-half), value[metric] * np.exp(half)
        of_value, of_low, of_high = (build_frame(part, tuple(parts.value), X.index) for part in (value, low, high))
        return Prediction(of_value, of_low, of_high, level, parts.whole, parts.features)

    def sample(
        self, X: pd.DataFrame, n_draw: int = 500, references: References | None = None, seed: int = 0
    ) -> dict[str, FloatArray]:
        """Return draws of what many measurements would give in the mean, by metric: shape (n_draw, n_question).

        The errors of one draw go together as questions share effects; those of two metrics are drawn apart, unless
        one follows from the other.
        """
        parts, known = self.predict_columns(X), self.known(references)
        matrix, asked = parts.features.to_numpy(), places(X)
        rng = np.random.default_rng(seed)
        draws: dict[str, FloatArray] = {}
        for metric in parts.value:
            mean, covariance = known[metric].joint(matrix, asked)
            draws[metric] = rng.multivariate_normal(mean, covariance, n_draw, check_valid="ignore", method="eigh")
        return _moved(parts, draws)

    def known(self, references: References | None) -> dict[str, Uncertainty]:
        """Return the distribution of errors by metric, given reference measurements.

        A measurement of what follows from TTFT and TPOT tells of the one of them that the row does not, so that the
        three stay in keeping. So does a mean or median of ITL, which is TPOT taken over other samples, and the other
        way round.
        """
        known = dict(self.uncertainty_)
        if references is None or references.X.empty:
            return known
        errors = (self.whole or self)._errors(references)
        matrix, given = build_features(references.X, self.coefficients_)[0].to_numpy(), places(references.X)
        for metric, uncertainty in known.items():
            told = np.flatnonzero(~np.isnan(errors[metric]))
            if len(told):
                known[metric] = uncertainty.conditioned(matrix[told], given.take(told), errors[metric][told])
        return known

    def _errors(self, references: References) -> dict[str, FloatArray]:
        """Return logarithms of measurement over the trees' prediction by metric: shapes (n_row,), NaN if not told."""
        parts = self.predict_columns(references.X)
        matrix, given = parts.features.to_numpy(), places(references.X)
        means = {metric: known.shift(matrix, given)[0] for metric, known in self.uncertainty_.items()}
        expected = _moved(parts, means)
        error = {
            metric: log_ratio(references.y[metric].to_numpy(dtype=float), expected[metric])
            if metric in references.y
            else np.full(len(matrix), np.nan)
            for metric in means
        }
        if THROUGHPUT in error:
            error[THROUGHPUT] = np.where(parts.loads.is_at_a_rate, np.nan, error[THROUGHPUT])
        _pair(error, (references.X["workload.quantile"] == 0.5).to_numpy())
        if parts.pace:
            lead(error, parts.loads.follows)
        return {metric: error[metric] + means[metric] for metric in error}

    def warm(self, metrics: Collection[str]) -> Self:
        """Work out now what the first prediction of some metrics would, and return the predictor."""
        for metric in self.uncertainty_.keys() & set(metrics):
            self.regressors_[metric].warm()
            self.uncertainty_[metric].warm()
        return self

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
        low, high = self.feature_range_.to_numpy()
        margin, values = 0.05 * (high - low) + 1e-9, features.to_numpy()
        beyond = (values < low - margin) | (values > high + margin)
        names = features.columns.to_numpy()
        return pd.Series([" ".join(names[row]) for row in beyond], index=features.index, dtype=object)


def _moved(parts: RatioPrediction, shifts: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return predictions moved by these logarithms, of shapes that end in (n_question,), and kept in keeping."""
    moved = {metric: parts.value[metric] * np.exp(shift) for metric, shift in shifts.items()}
    pace = {metric: factor * np.exp(shifts[metric]) for metric, factor in parts.pace.items()}
    return coherent(moved, parts.estimates, pace, parts.whole, parts.loads)


def _pair(error: dict[str, FloatArray], is_central: npt.NDArray[np.bool_]) -> None:
    """Let errors of ITL stand for those of TPOT that are not told, and the other way round."""
    for metric, twin in (INTERCHANGEABLE, INTERCHANGEABLE[::-1]):
        if metric in error and twin in error:
            lacks = is_central & np.isnan(error[metric])
            error[metric] = np.where(lacks, error[twin], error[metric])
