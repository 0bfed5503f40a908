"""Boosted residual of training jobs: small trees around the median, monotone where physics says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np

from roofcast.features.arrays import FloatArray
from roofcast.training.learner.trees.library_booster import LibraryBooster

N_TREE: Final = 200
DEPTH: Final = 3
OBJECTIVE: Final = "reg:absoluteerror"
LEARNING_RATE: Final = 0.05
MIN_WEIGHT: Final = 5.0
SAMPLE_RATIO: Final = 0.7
COLUMN_RATIO: Final = 0.5

FALLING: Final = ("log.n_accelerator", "log.n_domain")
"""Columns with which the residual never rises: more accelerators never speed up each."""


@dataclass(frozen=True)
class ResidualTrees:
    """Gradient-boosted trees of log errors.

    Parameters
    ----------
    median
        Of the errors.
    member
        Booster fitted to the errors less their median, as XGBoost's UBJSON.
    """

    median: float
    member: bytes

    @classmethod
    def fit(cls, columns: Sequence[str], x: FloatArray, error: FloatArray, weight: FloatArray, median: float) -> Self:
        """Return trees fitted to errors of shape (n_row,), around their median."""
        from xgboost import XGBRegressor  # noqa: PLC0415

        regressor = XGBRegressor(
            n_estimators=N_TREE, max_depth=DEPTH, learning_rate=LEARNING_RATE, min_child_weight=MIN_WEIGHT,
            subsample=SAMPLE_RATIO, colsample_bytree=COLUMN_RATIO, objective=OBJECTIVE, tree_method="hist",
            monotone_constraints=tuple(-1 if name in FALLING else 0 for name in columns), n_jobs=1, random_state=0,
        )  # fmt: skip
        booster = regressor.fit(x, error - median, sample_weight=weight).get_booster()
        return cls(median, bytes(booster.save_raw("ubj")))

    def predict(self, x: FloatArray) -> FloatArray:
        """Return the log error of each row: shape (n_row,)."""
        values = self.booster.predict(x)
        return np.asarray(self.median + values, dtype=np.float64)

    @cached_property
    def booster(self) -> LibraryBooster:
        """Trees as a booster of XGBoost's library."""
        return LibraryBooster(self.member, 1)
