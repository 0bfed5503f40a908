"""How large the error of a prediction usually is, from what the question is like."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from xgboost import XGBRegressor

FloatArray = npt.NDArray[np.float64]

LEAST: Final = 0.02
"""Error, in natural logarithms, that repeats of one measurement show."""

LIMITS: Final = (0.05, 1.0)
"""Least and greatest size that is answered, in natural logarithms: few rows tell of rarer ones."""


class SpreadRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Boosted regression of the logarithm of absolute errors: the size that half of them stay below, about.

    Parameters
    ----------
    n_estimators, max_depth, learning_rate, min_child_weight
        As in XGBoost; few, shallow trees, for sizes of errors are far noisier than their signs.
    random_state
        Seed.

    Attributes
    ----------
    booster_
        The fitted trees.
    n_features_in_
        Number of columns seen in `fit`.
    """

    def __init__(
        self,
        *,
        n_estimators: int = 80,
        max_depth: int = 3,
        learning_rate: float = 0.07,
        min_child_weight: float = 20.0,
        random_state: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.min_child_weight = min_child_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to errors and return the regressor.

        Parameters
        ----------
        X : shape (n_row, n_column)
        y : shape (n_row,)
            Natural logarithms of measurement over prediction.
        sample_weight : shape (n_row,), or None for equal weights
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, ensure_non_negative=True, allow_all_zero_weights=False
            )
        self.booster_ = XGBRegressor(
            objective="reg:squarederror",
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            learning_rate=self.learning_rate,
            min_child_weight=self.min_child_weight,
            subsample=0.7,
            colsample_bytree=0.5,
            tree_method="hist",
            n_jobs=1,
            random_state=self.random_state,
        ).fit(X, np.log(np.abs(y) + LEAST), sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the usual size of the error: shape (n_row,), natural logarithms."""
        check_is_fitted(self)
        return self.predict_unchecked(validate_data(self, X, dtype=np.float64, reset=False))

    def predict_unchecked(self, X: FloatArray) -> FloatArray:
        """Return what `predict` does, of a matrix known to have the right columns, without the time of checks."""
        log_size = self.booster_.get_booster().inplace_predict(X)
        return np.asarray(np.clip(np.exp(log_size), *LIMITS), dtype=np.float64)
