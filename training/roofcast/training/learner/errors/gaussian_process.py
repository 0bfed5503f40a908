"""Gaussian process over standardised errors, conditioned on training points and then on calibration points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, Self

import numpy as np

from roofcast.features.queries import FloatArray, IndexArray
from roofcast.training.learner.errors.block_cholesky import BlockCholesky, P
from roofcast.training.learner.errors.lazy_scipy import linalg
from roofcast.training.learner.estimator import Estimator, check_is_fitted

DEGREES_OF_FREEDOM: Final = 4.0
"""Of Student's t noise of calibration points: low, for a queue or a cold start makes a point many times slower."""

N_REWEIGHTING: Final = 10

CACHES: Final = ("_factor", "_precision", "_weights", "_tables", "_projection")


class GaussianProcess(Estimator, ABC, Generic[P]):
    """Gaussian process whose subclasses say what rows share; `sd_[-1]` is the standard deviation of its noise.

    - `sd_`: Standard deviation of each effect and of the noise.
    - `training_points_`, `errors_`: What the process is conditioned on.
    - `weight_`: shape (n_training_point,). Noise of one of weight 1 over that of each; None for 1 each.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5.
    """

    clip: float = 3.0
    """Errors of training points are winsorised at this many scaled units."""

    chunk: int = 2048
    """Queries whose covariance with the training points is held at once."""

    sd_: FloatArray
    training_points_: P
    errors_: FloatArray
    weight_: FloatArray | None = None
    _calibration: Calibration[P] | None = None

    def __init__(self, n_iteration: int = 15) -> None:
        self.n_iteration = n_iteration

    @abstractmethod
    def covariance(self, X: P, other: P) -> FloatArray:
        """Return the prior covariance of errors, without noise: shape (n, n_other)."""

    def variance(self, X: P) -> FloatArray:
        """Return the prior variance of the error of a new measurement, noise included: shape (n,)."""
        return np.full(len(X), (self.sd_**2).sum())

    @property
    def known_points(self) -> P:
        """Training points, then calibration points."""
        own = self._calibration
        return self.training_points_ if own is None else self.training_points_.append(own.points)

    def with_points(self, points: P, errors: FloatArray, weight: FloatArray | None = None) -> Self:
        """Return the process conditioned on these points instead, with their errors: shape (n_point,)."""
        check_is_fitted(self)
        other = type(self)(self.n_iteration)
        other.sd_, other.training_points_, other.weight_ = self.sd_, points, weight
        other.errors_ = other._winsorise(errors)
        return other

    def condition_on(self, X: P, y: FloatArray) -> Self:
        """Return the process that also knows the errors of calibration points, without a new fit.

        A point that is far off and alone in it has a smaller weight; see `student_t_weights`.
        """
        check_is_fitted(self)
        noise = self._noise / student_t_weights(y, self.covariance(X, X), self._noise)
        before = self._calibration
        if before is not None:
            X, y, noise = before.points.append(X), np.append(before.error, y), np.append(before.noise, noise)
        cross = self.covariance(X, self.training_points_)
        gain = self._factor.solve(cross.T)
        posterior = self.covariance(X, X) - cross @ gain + np.diag(noise)
        factor = np.asarray(np.linalg.cholesky(posterior), dtype=np.float64)
        weights = linalg.cho_solve((factor, True), y - gain.T @ self.errors_)
        other = type(self)(self.n_iteration)
        other.__dict__.update(self.__dict__, _calibration=Calibration(X, y, noise, gain, factor, weights))
        other.__dict__.pop("_projection", None)
        return other

    def predict(self, X: P) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the error of a new measurement: shapes (n,).

        With K the covariance of the training points' errors, noise included, and k that with the query, the mean is
        ``k K ** -1 errors`` and the variance explained ``k K ** -1 k``.
        """
        check_is_fitted(self)
        mean, explained = self._predict_by_training(X)
        if self._calibration is not None and len(X):
            shift, further = self._by_kind(X, self._predict_shift)
            mean, explained = mean + shift, explained + further
        return mean, np.sqrt(np.maximum(self.variance(X) - explained, self._noise))

    def _predict_by_training(self, X: P) -> tuple[FloatArray, FloatArray]:
        mean, explained = self._by_kind(X, self._solve)
        return mean, explained

    def _by_kind(self, X: P, solve: Callable[[P], tuple[FloatArray, ...]]) -> list[FloatArray]:
        rows = np.arange(len(X))
        chunks = [solve(X.take(rows[i : i + self.chunk])) for i in range(0, max(len(X), 1), self.chunk)]
        return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]

    def _solve(self, X: P) -> tuple[FloatArray, FloatArray]:
        cross = self.covariance(X, self.training_points_)
        return cross @ self._weights, self._factor.squared_norms(cross.T)

    def _predict_shift(self, X: P) -> tuple[FloatArray, FloatArray]:
        known = self._known
        cross = self._posterior_covariance(X)
        explained = linalg.solve_triangular(known.factor, cross.T, lower=True, check_finite=False) ** 2
        return cross @ known.weights, explained.sum(axis=0)

    def _posterior_covariance(self, X: P) -> FloatArray:
        return self.covariance(X, self._known.points) - self._project(X)

    def _project(self, X: P) -> FloatArray:
        """Return the covariance with the training points times the gain: shape (n, n_calibration_point)."""
        return self.covariance(X, self.training_points_) @ self._known.gain

    @property
    def _known(self) -> Calibration[P]:
        if self._calibration is None:
            raise ValueError("the process knows no calibration points")
        return self._calibration

    def _winsorise(self, errors: FloatArray) -> FloatArray:
        return np.clip(errors, -self.clip, self.clip)

    @property
    def _noise(self) -> float:
        return float(self.sd_[-1] ** 2)

    @property
    def _blocks(self) -> IndexArray:
        """Code of the block of each training point: the covariance between blocks is zero."""
        return np.zeros(len(self.training_points_), dtype=np.intp)

    @cached_property
    def _factor(self) -> BlockCholesky:
        noise = np.full(len(self.training_points_), self._noise)
        noise = noise if self.weight_ is None else noise / self.weight_
        return BlockCholesky.factorise(self.training_points_, self._blocks, self.covariance, noise)

    @cached_property
    def _precision(self) -> FloatArray:
        return self._factor.inverse()

    @cached_property
    def _weights(self) -> FloatArray:
        return self._factor.solve(self.errors_)

    def _forget(self) -> None:
        for name in (*CACHES, "_calibration"):
            vars(self).pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without caches, which are a hundred times as large."""
        return {name: value for name, value in vars(self).items() if name not in CACHES}


@dataclass(frozen=True, slots=True)
class Calibration(Generic[P]):
    """Conditioning of a process on k calibration points.

    - `error`, `noise`: shape (k,). Their errors, and the variance of the noise of each.
    - `gain`: shape (n_training_point, k). Inverse covariance of the training points, times their covariance with the
      calibration points.
    - `factor`: shape (k, k). Cholesky factor of the posterior covariance of the calibration points, noise included.
    - `weights`: shape (k,). The inverse of that covariance times the errors' distance from their posterior mean.
    """

    points: P
    error: FloatArray
    noise: FloatArray
    gain: FloatArray
    factor: FloatArray
    weights: FloatArray


def student_t_weights(errors: FloatArray, covariance: FloatArray, noise: float) -> FloatArray:
    """Return the weight of each measurement under Student's t noise, 0 to 1, by iterative reweighting.

    One point that is far off is as likely a fault as a slow machine and has a small weight; several that agree are
    not. The n errors have prior mean 0, and their covariance leaves out the noise, a variance.

    Examples
    --------
    >>> import numpy as np
    >>> one, shared = np.array([5.0]), np.ones((3, 3))
    >>> student_t_weights(one, shared[:1, :1], 0.1).round(2)
    array([0.19])
    >>> student_t_weights(np.array([5.0, 5.1, 4.9]), shared, 0.1).round(2)
    array([1., 1., 1.])

    References
    ----------
    C. Liu and D. B. Rubin, "ML estimation of the t distribution using EM and its extensions", Statistica Sinica 1995.
    """
    weight = np.ones(len(errors))
    for _ in range(N_REWEIGHTING):
        precision = np.linalg.inv(covariance + np.diag(noise / weight))
        own = np.diag(precision)
        spread = 1 / own - noise / weight + noise
        distance = (precision @ errors / own) ** 2 / spread
        before, weight = weight, np.minimum((DEGREES_OF_FREEDOM + 1) / (DEGREES_OF_FREEDOM + distance), 1.0)
        if np.array_equal(before, weight):
            break
    return weight
