"""How large the error of a prediction usually is, from what the question is like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from roofcast.training.learner.boosted_residual import ResidualRegressor

FloatArray = npt.NDArray[np.float64]

LEAST: Final = 0.02
"""Error, in natural logarithms, that repeats of one measurement show."""

LIMITS: Final = (0.05, 1.0)
"""Least and greatest size that is answered, in natural logarithms: few rows tell of rarer ones."""


@dataclass(frozen=True, slots=True)
class ErrorScaleModel:
    """The size that about half of the errors stay below.

    Parameters
    ----------
    log_size
        Fitted to the logarithm of absolute errors: few, shallow trees, for sizes of errors are far noisier than
        their signs.
    """

    log_size: ResidualRegressor

    @classmethod
    def fitted(cls, X: FloatArray, error: FloatArray, weight: FloatArray | None = None) -> Self:
        """Return the sizes of errors like these.

        Parameters
        ----------
        X : shape (n_row, n_column)
        error : shape (n_row,)
            Natural logarithms of measurement over prediction.
        weight : shape (n_row,), or None for equal weights
        """
        regressor = ResidualRegressor(
            objective="reg:squarederror", n_estimators=80, learning_rate=0.07, min_child_weight=20.0
        )
        return cls(regressor.fit(X, np.log(np.abs(error) + LEAST), weight))

    def warm(self) -> None:
        """Work out now what answers few rows sooner."""
        self.log_size.warm()

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the usual size of the error: shape (n_row,), natural logarithms."""
        return np.clip(np.exp(self.log_size.predict_unchecked(X)), *LIMITS)
