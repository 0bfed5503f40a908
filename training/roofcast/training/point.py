"""The point predictor: the calibrated estimate times the boosted ratio."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from roofcast.features.batching import Estimate
from roofcast.features.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.descriptors import QUANTILE
from roofcast.features.identity import CELL, identities, joined
from roofcast.features.pipeline import METRICS, build_features
from roofcast.training.calibration import fit_coefficients
from roofcast.training.config import TrainingConfig
from roofcast.training.estimators import ResidualRegressor
from roofcast.training.targets import log_ratio, row_weights
from roofcast.training.validation import leave_one_group_out

Progress = Callable[[Iterable[Any], int, str], Iterable[Any]]

FloatArray = npt.NDArray[np.float64]

QUANTILE_PLACE = FEATURE_NAMES.index("workload.quantile")


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
        cells = joined(identities(X), CELL)
        self.metrics_ = tuple(m for m in self.metrics if (y[m] > 0).any())
        self.regressors_: dict[str, ResidualRegressor] = {}
        for metric in self.metrics_:
            target = log_ratio(y[metric].to_numpy(dtype=float), estimates[metric])
            known = ~np.isnan(target)
            self.regressors_[metric] = _regressor(config).fit(
                features.to_numpy()[known], target[known], row_weights(cells[known])
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
        columns = {m: estimates[m] * np.exp(_rising(self.regressors_[m], matrix, _sign(m))) for m in wanted}
        return pd.DataFrame(columns, index=X.index), features, whole

    def predict(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the predicted metrics: shape (n_question, n_metric)."""
        return self.predict_parts(X)[0]


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
    folds = list(leave_one_group_out(groups, (predictor.config or TrainingConfig()).n_fold))
    predicted = pd.DataFrame(np.nan, index=X.index, columns=list(predictor.metrics))
    for train, test in progress(folds, len(folds), "held-out lineages") if progress else folds:
        rows = train[allowed[train]]
        if len(rows):
            fold = PointPredictor(predictor.config, predictor.metrics, predictor.coefficients)
            answer = fold.fit(X.iloc[rows], y.iloc[rows], groups.iloc[rows]).predict(X.iloc[test])
            predicted.loc[X.index[test], answer.columns] = answer
    return predicted


def at_quantile(features: FloatArray, quantile: float) -> FloatArray:
    """Return the learner's columns, shape (n, n_feature), as if another quantile had been asked; means stay means."""
    asked = features.copy()
    is_mean = features[:, FEATURE_NAMES.index("workload.is_mean")] > 0
    asked[~is_mean, QUANTILE_PLACE] = quantile
    return asked


def _rising(regressor: ResidualRegressor, features: FloatArray, sign: int) -> FloatArray:
    """Return the correction, no less for a quantile than for a lower one.

    Absolute loss fits leaves anew after the trees have grown, which breaks a monotone constraint; so the correction
    of each quantile is the greatest up to it. The estimate below it rises by itself.

    References
    ----------
    V. Chernozhukov, I. Fernandez-Val and A. Galichon, "Quantile and Probability Curves Without Crossing",
    Econometrica 2010.
    """
    greatest = sign * regressor.predict(features)
    for quantile in sorted(set(QUANTILE.values())):
        is_above = features[:, QUANTILE_PLACE] > quantile
        if is_above.any():
            lower = sign * regressor.predict(at_quantile(features[is_above], quantile))
            greatest[is_above] = np.maximum(greatest[is_above], lower)
    return sign * greatest


def _sign(metric: str) -> int:
    return -1 if metric == "output_throughput_token_per_s" else 1


def _regressor(config: TrainingConfig) -> ResidualRegressor:
    settings = config.model_dump(exclude={"calibrate", "seed", "n_fold"})
    return ResidualRegressor(**settings, random_state=config.seed)
