"""The boosted residual: gradient-boosted trees of the logarithm of measurement over estimate."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt

from roofcast.training.learner.estimator import Estimator, check_is_fitted
from roofcast.training.learner.trees.library_booster import LibraryBooster
from roofcast.training.learner.trees.numpy_booster import NumpyBooster

if TYPE_CHECKING:
    from xgboost import Booster

FloatArray = npt.NDArray[np.float64]

MAX_NUMPY_ROW: Final = 20
"""Rows up to which `NumpyBooster` is faster than a call of the library."""

MAX_NUMPY_DEPTH: Final = 6
"""Depth up to which trees are padded for `NumpyBooster`; its memory doubles with each level."""

_CACHES: Final = ("_booster", "boosters_")


class ResidualRegressor(Estimator):
    """Average of gradient-boosted trees around the median of the targets.

    Averaging members with different seeds, which count up from `random_state`, removes most of the scatter that a
    single seed has on few groups. Settings are those of XGBoost.

    Attributes
    ----------
    median_
        Of the targets.
    members_
        Boosters fitted to the targets less their median, as XGBoost's UBJSON.

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

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags  # noqa: PLC0415

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags, tags.target_tags.required = "regressor", RegressorTags(), True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit every member and return the regressor."""
        from sklearn.utils.validation import _check_sample_weight, validate_data  # noqa: PLC0415

        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, ensure_non_negative=True, allow_all_zero_weights=False
            )
        self.median_ = float(np.median(y))
        self._set_members(self._fit_members(X, y - self.median_, sample_weight))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the mean prediction of the members: shape (n_row,)."""
        from sklearn.utils.validation import validate_data  # noqa: PLC0415

        check_is_fitted(self)
        return self.predict_unchecked(validate_data(self, X, dtype=np.float64, reset=False))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the variance that the prediction explains."""
        from sklearn.metrics import r2_score  # noqa: PLC0415

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def predict_unchecked(self, X: FloatArray) -> FloatArray:
        """Return the prediction of a matrix known to have the right columns, without the time of checks."""
        booster: NumpyBooster | None = self.__dict__.get("_booster")
        residuals = (
            booster.predict(X)
            if booster and len(X) <= MAX_NUMPY_ROW
            else [booster.predict(X) for booster in self.boosters_]
        )
        return np.asarray(self.median_ + sum(residuals) / len(residuals), dtype=np.float64)

    def build_cache(self) -> Self:
        """Build the NumPy trees that predict few rows faster, and return the regressor; deep trees have none."""
        check_is_fitted(self)
        if self.max_depth <= MAX_NUMPY_DEPTH:
            self._booster = NumpyBooster.from_boosters(self.boosters_)
        return self

    @cached_property
    def boosters_(self) -> list[LibraryBooster]:
        """Members as boosters of XGBoost's library."""
        return [LibraryBooster(member, self.n_jobs) for member in self.members_]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without caches."""
        return {name: value for name, value in vars(self).items() if name not in _CACHES}

    def _set_members(self, boosters: list[Booster]) -> None:
        self.__dict__.pop("_booster", None)
        self.members_ = [bytes(booster.save_raw("ubj")) for booster in boosters]
        self.boosters_ = [LibraryBooster(member, self.n_jobs) for member in self.members_]

    def _fit_members(self, X: FloatArray, y: FloatArray, weight: FloatArray | None) -> list[Booster]:
        from xgboost import XGBRegressor  # noqa: PLC0415

        settings = self.get_params() | {"tree_method": "hist"}
        n_member, seed = settings.pop("n_member"), settings.pop("random_state")
        members = [XGBRegressor(**settings, random_state=seed + i) for i in range(n_member)]
        return [member.fit(X, y, sample_weight=weight).get_booster() for member in members]
