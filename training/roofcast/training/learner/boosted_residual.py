"""The boosted residual: a scikit-learn regressor over the ratio of measurement to estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from xgboost import XGBRegressor

from roofcast.training.learner.numpy_booster import NumpyBooster

FloatArray = npt.NDArray[np.float64]

FEW: Final = 20
"""Rows up to which a call of the library takes longer than `NumpyBooster` do."""

DEEPEST: Final = 6
"""Depth beyond which filling trees up would take them more memory than it is worth."""

_WORKED_OUT: Final = "_trees"


class ResidualRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Average of gradient-boosted trees around the median.

    Averaging members with different seeds removes most of the scatter that a single seed has on few groups.

    Parameters
    ----------
    n_member, n_estimators, max_depth, learning_rate, subsample, colsample_bytree, min_child_weight, reg_lambda
        As in `roofcast.training.config.TrainingConfig`.
    objective
        Loss, by its name in XGBoost.
    n_jobs
        Threads.
    random_state
        Seed of the first member; the next ones count up.

    Attributes
    ----------
    median_
        Of the targets.
    members_
        The fitted boosters, of what is left.
    n_features_in_
        Number of columns seen in `fit`.

    References
    ----------
    T. Chen and C. Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016.
    """

    def __init__(
        self,
        *,
        n_member: int = 1,
        n_estimators: int = 300,
        max_depth: int = 3,
        learning_rate: float = 0.05,
        subsample: float = 0.7,
        colsample_bytree: float = 0.5,
        min_child_weight: float = 5.0,
        reg_lambda: float = 1.0,
        objective: str = "reg:absoluteerror",
        n_jobs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.n_member = n_member
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.objective = objective
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit every member and return the regressor.

        Parameters
        ----------
        X : shape (n_row, n_column)
        y : shape (n_row,)
        sample_weight : shape (n_row,), or None for equal weights
        """
        self.__dict__.pop(_WORKED_OUT, None)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, ensure_non_negative=True, allow_all_zero_weights=False
            )
        self.median_ = float(np.median(y))
        self.members_ = [
            self._member(self.random_state + i).fit(X, y - self.median_, sample_weight=sample_weight)
            for i in range(self.n_member)
        ]
        return self

    def learn_besides(self, parts: Sequence[tuple[FloatArray, FloatArray, FloatArray]]) -> Self:
        """Add as many members that are fitted to several sets of rows together, and return the regressor.

        Members that learnt from more kinds of rows err otherwise than those that learnt from the asked kind alone,
        so that their average errs less than either.

        Parameters
        ----------
        parts
            Columns, targets and weights of each set: shapes (n_row, n_column), (n_row,), (n_row,). Each set's targets
            are taken around their median.
        """
        check_is_fitted(self)
        self.__dict__.pop(_WORKED_OUT, None)
        X = np.concatenate([columns for columns, _, _ in parts])
        y = np.concatenate([target - np.median(target) for _, target, _ in parts])
        weight = np.concatenate([weight for _, _, weight in parts])
        more = [self._member(self.random_state + i).fit(X, y, sample_weight=weight) for i in range(self.n_member)]
        self.members_ = [*self.members_, *more]
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the mean prediction of the members: shape (n_row,)."""
        check_is_fitted(self)
        return self.predict_unchecked(validate_data(self, X, dtype=np.float64, reset=False))

    def predict_unchecked(self, X: FloatArray) -> FloatArray:
        """Return what `predict` does, of a matrix known to have the right columns, without the time of checks."""
        trees: NumpyBooster | None = self.__dict__.get(_WORKED_OUT)
        found = (
            trees.predict(X)
            if trees and len(X) <= FEW
            else [member.get_booster().inplace_predict(X, validate_features=False) for member in self.members_]
        )
        return np.asarray(self.median_ + sum(found) / len(found), dtype=np.float64)

    def warm(self) -> Self:
        """Work out what answers few rows sooner, and return the regressor; of deep trees nothing does."""
        check_is_fitted(self)
        if self.max_depth <= DEEPEST:
            setattr(self, _WORKED_OUT, NumpyBooster.of([member.get_booster() for member in self.members_]))
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what cannot be worked out again."""
        return {name: value for name, value in super().__getstate__().items() if name != _WORKED_OUT}

    def _member(self, seed: int) -> XGBRegressor:
        return XGBRegressor(
            objective=self.objective,
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            learning_rate=self.learning_rate,
            subsample=self.subsample,
            colsample_bytree=self.colsample_bytree,
            min_child_weight=self.min_child_weight,
            reg_lambda=self.reg_lambda,
            tree_method="hist",
            n_jobs=self.n_jobs,
            random_state=seed,
        )
