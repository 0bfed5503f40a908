"""Crossed random effects: a Gaussian process over the errors of the boosted estimate.

The error of a query is a sum of effects that it shares with other queries (the same engine, the same accelerator, the
same LLM on it, and so on), an effect that fades with the distance of two workloads, and noise. The posterior mean
shifts a prediction by what was measured nearby, the posterior variance grows with the distance from measurements, and
calibration points condition the process without a new fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.training.learner.errors.block_cholesky import BlockCholesky
from roofcast.training.learner.errors.effect_sizes import fit_standard_deviations
from roofcast.training.learner.errors.group_keys import (
    STACK_TERM_INDEX,
    TARGET_STACK,
    TERMS,
    BoolArray,
    FloatArray,
    GroupKeys,
    IndexArray,
)
from roofcast.training.learner.errors.lazy_scipy import linalg
from roofcast.training.learner.errors.lookup_tables import (
    LookupTables,
    Projection,
    build_lookup_tables,
    build_projection,
    workload_kernel,
)
from roofcast.training.learner.estimator import Estimator, check_is_fitted

ERROR_CLIP: Final = 3.0
"""Errors are winsorised at this many scaled units."""

DEGREES_OF_FREEDOM: Final = 4.0
"""Of Student's t noise of calibration points: low, for a queue or a cold start makes a point many times slower."""

N_REWEIGHTING: Final = 10

CHUNK: Final = 2048
"""Queries whose covariance with the training points is held at once."""

_CACHES: Final = ("_factor", "_precision", "_weights", "_tables")


class RandomEffects(Estimator):
    """Gaussian process over errors of prediction; its standard deviations have the greatest posterior density.

    The search for them takes `n_iteration` steps at most; 0 keeps the prior medians.

    - `sd_`: Standard deviation of each of `TERMS`, of each of `STACK_TERMS`, of the workload's effect and of the
      noise.
    - `training_points_`, `errors_`: What the process is conditioned on.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5.
    """

    _calibration: _Calibration | None = None

    def __init__(self, n_iteration: int = 15) -> None:
        self.n_iteration = n_iteration

    def fit(self, X: GroupKeys, y: FloatArray) -> Self:
        """Fit the standard deviations, condition on n training points and return the estimator.

        `y`, shape (n,), are errors of predictions that did not know the LLM, in units of their expected scale.
        """
        errors = np.clip(y, -ERROR_CLIP, ERROR_CLIP)
        sd = fit_standard_deviations(X, errors, self.n_iteration)
        for name in (*_CACHES, "_calibration"):
            self.__dict__.pop(name, None)
        self.sd_, self.training_points_, self.errors_ = sd, X, errors
        return self

    def with_points(self, points: GroupKeys, errors: FloatArray) -> RandomEffects:
        """Return the process conditioned on these points instead, with their errors: shape (n_point,).

        Errors of `TARGET_STACK` are not winsorised: the user's own stack may lie far from all others.
        """
        check_is_fitted(self)
        other = RandomEffects(self.n_iteration)
        other.sd_, other.training_points_ = self.sd_, points
        other.errors_ = other._winsorise(errors)
        return other

    def covariance(self, X: GroupKeys, other: GroupKeys) -> FloatArray:
        """Return the prior covariance of errors, without noise: shape (n, n_other).

        It is a sum over `TERMS` of ``sd ** 2`` where two rows share the key of the term, a further ``sd ** 2`` of
        `STACK_TERMS` where they share the stack too, and the workload kernel within a `CONFIGURATION`.
        """
        variance, stack_variance, workload_variance = self._variances
        is_same_stack = X.stack[:, None] == other.stack
        total = np.zeros(is_same_stack.shape)
        for size, of_stack, key, other_key in zip(variance, stack_variance, X.keys.T, other.keys.T, strict=True):
            is_same = key[:, None] == other_key
            total += size * is_same
            if of_stack:
                total += of_stack * (is_same & is_same_stack)
        near = np.nonzero(X.keys[:, -1, None] == other.keys[:, -1])
        total[near] += workload_variance * workload_kernel(X.workload[near[0]] - other.workload[near[1]])
        return total

    def condition_on(self, X: GroupKeys, y: FloatArray) -> RandomEffects:
        """Return the process that also knows the errors of calibration points, without a new fit.

        A point that is far off and alone in it has a smaller weight; see `student_t_weights`.
        """
        check_is_fitted(self)
        if (X.stack == TARGET_STACK).any():
            self.build_cache()
        noise = self._noise / student_t_weights(y, self.covariance(X, X), self._noise)
        before = self._calibration
        if before is not None:
            X, y, noise = before.points.append(X), np.append(before.error, y), np.append(before.noise, noise)
        cross = self.covariance(X, self.training_points_)
        gain = self._factor.solve(cross.T)
        posterior = self.covariance(X, X) - cross @ gain + np.diag(noise)
        factor = np.asarray(np.linalg.cholesky(posterior), dtype=np.float64)
        weights = linalg.cho_solve((factor, True), y - gain.T @ self.errors_)
        explained = build_projection(self.training_points_, self._target_covariance, self._near_variance, gain)
        other = RandomEffects(self.n_iteration)
        other.__dict__.update(self.__dict__, _calibration=_Calibration(self, X, y, noise, explained, factor, weights))
        return other

    def predict(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the error of a new measurement: shapes (n,).

        With K the covariance of the training points' errors, noise included, and k that with the query, the mean is
        ``k K ** -1 errors`` and the variance explained ``k K ** -1 k``.
        """
        check_is_fitted(self)
        mean, explained, is_cached = np.zeros(len(X.keys)), np.zeros(len(X.keys)), X.stack == TARGET_STACK
        if is_cached.any():
            mean, explained, has_entry = self._tables.look_up(X.keys, X.workload)
            is_cached &= has_entry
        rest = np.flatnonzero(~is_cached)
        if len(rest):
            mean[rest], explained[rest] = self._by_kind(X.take(rest), self._solve)
        if self._calibration is not None and len(X.keys):
            shift, further = self._by_kind(X, self._calibration.solve)
            mean, explained = mean + shift, explained + further
        return mean, np.sqrt(np.maximum((self.sd_**2).sum() - explained, self._noise))

    def predict_joint(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean, shape (n,), and covariance, shape (n, n), of errors together, without noise."""
        check_is_fitted(self)
        cross = self.covariance(X, self.training_points_)
        mean = cross @ self._weights
        covariance = self.covariance(X, X) - cross @ self._factor.solve(cross.T)
        if self._calibration is not None:
            further = self._calibration.covariance(X)
            mean = mean + further @ self._calibration.weights
            covariance = covariance - further @ linalg.cho_solve((self._calibration.factor, True), further.T)
        return mean, covariance

    def predict_left_out(
        self, X: GroupKeys, y: FloatArray, groups: npt.NDArray[Any], is_point: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the error of each row, conditioned on the points of other groups.

        The weights of points, see `student_t_weights`, are those of all points together: a group left out still votes
        on whether points of others are faults. Where all weights are 1, this equals `predict` of each group by the
        process conditioned on the points of all other groups.

        - `X`, `y`: of n rows. Calibration points and their errors.
        - `groups`: shape (n,)
        - `is_point`: shape (n,). Whether other groups are conditioned on the row.

        Notes
        -----
        With Q the inverse covariance of all points, that of those outside group g is
        ``Q_rr - Q_rg Q_gg ** -1 Q_gr`` (Rasmussen and Williams, sections 5.4.2 and A.3).
        """
        mean, posterior = self.predict_joint(X)
        mean, variance = mean.copy(), np.diag(posterior) + self._noise
        points = np.flatnonzero(is_point)
        if not len(points):
            return mean, np.sqrt(variance)
        prior = self.covariance(X.take(points), X.take(points))
        noise = self._noise / student_t_weights(y[points], prior, self._noise)
        precision = np.linalg.inv(posterior[np.ix_(points, points)] + np.diag(noise))
        weights = precision @ (y[points] - mean[points])
        cross = np.where(groups[:, None] == groups[points], 0.0, posterior[:, points])
        spread = cross @ precision
        mean, variance = mean + cross @ weights, variance - (spread * cross).sum(axis=1)
        for group in np.unique(groups[points]):
            rows, own = groups == group, groups[points] == group
            lost = np.linalg.solve(precision[np.ix_(own, own)], spread[np.ix_(rows, own)].T)
            mean[rows] -= lost.T @ weights[own]
            variance[rows] += (lost * spread[np.ix_(rows, own)].T).sum(axis=0)
        return mean, np.sqrt(np.maximum(variance, self._noise))

    def predict_sd_left_out(
        self, X: GroupKeys, groups: npt.NDArray[Any], training_groups: npt.NDArray[Any]
    ) -> FloatArray:
        """Return the standard deviation of errors with the training points of their group left out: shape (n,).

        Notes
        -----
        With Q the inverse covariance of all training points, that of those outside group g is
        ``Q_rr - Q_rg Q_gg ** -1 Q_gr`` (Rasmussen and Williams, section A.3).
        """
        check_is_fitted(self)
        precision = self._precision
        sd = np.empty(len(groups))
        for group in np.unique(groups):
            rows, own = np.flatnonzero(groups == group), training_groups == group
            lower: FloatArray = np.linalg.cholesky(precision[np.ix_(own, own)]).astype(np.float64)

            def solve(queries: GroupKeys, own: BoolArray = own, lower: FloatArray = lower) -> tuple[FloatArray, ...]:
                cross = self.covariance(queries, self.training_points_)
                cross[:, own] = 0.0
                spread = cross @ precision
                lost = linalg.solve_triangular(lower, spread[:, own].T, lower=True, check_finite=False)
                return ((spread * cross).sum(axis=1) - (lost**2).sum(axis=0),)

            (explained,) = self._by_kind(X.take(rows), solve)
            sd[rows] = np.sqrt(np.maximum((self.sd_**2).sum() - explained, self._noise))
        return sd

    def predict_mean_left_out(
        self, X: GroupKeys, fold: IndexArray, training_fold: IndexArray, errors: FloatArray
    ) -> FloatArray:
        """Return the mean of each row's error with the training points of its fold left out: shape (n,).

        `fold` and `training_fold`: shapes (n,) and (n_training_point,). `errors`: shape (n_fold, n_training_point):
        errors that the process is conditioned on, by the fold that is left out.

        Notes
        -----
        The weights of points outside fold g are ``Q_rr e_r - Q_rg Q_gg ** -1 Q_gr e_r``, see `predict_sd_left_out`.
        """
        check_is_fitted(self)
        precision, errors, mean = self._precision, self._winsorise(errors), np.empty(len(fold))
        for i in np.unique(fold):
            rows, own = np.flatnonzero(fold == i), training_fold == i
            weights = precision @ np.where(own, 0.0, errors[i])
            weights -= precision[:, own] @ np.linalg.solve(precision[np.ix_(own, own)], weights[own])
            weights[own] = 0.0

            def solve(queries: GroupKeys, weights: FloatArray = weights) -> tuple[FloatArray, ...]:
                return (self.covariance(queries, self.training_points_) @ weights,)

            (mean[rows],) = self._by_kind(X.take(rows), solve)
        return mean

    def correlation(self, X: GroupKeys, other: GroupKeys) -> FloatArray:
        """Return the prior correlation of two sets of errors: shape (n, n_other)."""
        check_is_fitted(self)
        return self.covariance(X, other) / float((self.sd_[:-1] ** 2).sum())

    def build_cache(self) -> Self:
        """Build lookup caches eagerly and return the estimator."""
        _ = self._tables
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without caches, which are a hundred times as large."""
        return {name: value for name, value in vars(self).items() if name not in _CACHES}

    def _winsorise(self, errors: FloatArray) -> FloatArray:
        is_target = self.training_points_.stack == TARGET_STACK
        return np.where(is_target, errors, np.clip(errors, -ERROR_CLIP, ERROR_CLIP))

    @property
    def _noise(self) -> float:
        return float(self.sd_[-1] ** 2)

    @property
    def _variances(self) -> tuple[FloatArray, FloatArray, float]:
        variance, stack_variance = self.sd_**2, np.zeros(len(TERMS))
        stack_variance[[*STACK_TERM_INDEX]] = variance[len(TERMS) : -2]
        return variance[: len(TERMS)], stack_variance, float(variance[-2])

    @property
    def _target_covariance(self) -> FloatArray:
        variance, stack_variance, _ = self._variances
        is_target = self.training_points_.stack == TARGET_STACK
        return np.asarray(variance + stack_variance * is_target[:, None], dtype=np.float64)

    @property
    def _near_variance(self) -> tuple[float, float]:
        variance, _, workload_variance = self._variances
        return float(variance[-1]), workload_variance

    @cached_property
    def _factor(self) -> BlockCholesky:
        return BlockCholesky.factorise(self.training_points_, self.covariance, self._noise)

    @cached_property
    def _precision(self) -> FloatArray:
        return self._factor.inverse()

    @cached_property
    def _weights(self) -> FloatArray:
        return self._factor.solve(self.errors_)

    @cached_property
    def _tables(self) -> LookupTables:
        weights, inverse = self._weights, self._factor.inverse()
        tables = build_lookup_tables(
            self.training_points_, self._target_covariance, self._near_variance, inverse, weights
        )
        self.__dict__.pop("_factor", None)
        return tables

    def _solve(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        cross = self.covariance(X, self.training_points_)
        return cross @ self._weights, self._factor.squared_norms(cross.T)

    def _by_kind(self, X: GroupKeys, solve: Callable[[GroupKeys], tuple[FloatArray, ...]]) -> list[FloatArray]:
        """Return what `solve` does, arrays of shape (n,), computed in chunks for one query of each kind.

        The process cannot distinguish queries of one kind: keys that no known point has are alike, and workloads
        matter only where a configuration is known.
        """
        known = self.training_points_.keys
        if self._calibration is not None:
            known = np.vstack([known, self._calibration.points.keys])
        keys = np.zeros_like(X.keys)
        for i, column in enumerate(known.T):
            keys[:, i] = np.where(np.isin(X.keys[:, i], column), X.keys[:, i], 0)
        workload = X.workload * (keys[:, -1:] != 0)
        table = np.hstack([keys, workload.view(np.uint64), X.stack[:, None]])
        kinds = pd.util.hash_pandas_object(pd.DataFrame(table), index=False)
        _, first, back = np.unique(kinds.to_numpy(), return_index=True, return_inverse=True)
        chunks = [solve(X.take(first[i : i + CHUNK])) for i in range(0, len(first), CHUNK)]
        return [np.concatenate(parts)[back] for parts in zip(*chunks, strict=True)]


@dataclass(frozen=True, slots=True)
class _Calibration:
    """Conditioning of a process on k calibration points.

    - `error`, `noise`: shape (k,). Their errors, and the variance of the noise of each.
    - `explained`: Covariance of queries with the training points, times the inverse covariance of these, times their
      covariance with the calibration points.
    - `factor`: shape (k, k). Cholesky factor of the posterior covariance of the calibration points, noise included.
    - `weights`: shape (k,). The inverse of that covariance times the errors' distance from their posterior mean.
    """

    process: RandomEffects
    points: GroupKeys
    error: FloatArray
    noise: FloatArray
    explained: Projection
    factor: FloatArray
    weights: FloatArray

    def covariance(self, X: GroupKeys) -> FloatArray:
        prior = self.process.covariance(X, self.points)
        if (X.stack == TARGET_STACK).all():
            return prior - self.explained.apply(X.keys, X.workload)
        return prior - self.process.covariance(X, self.process.training_points_) @ self.explained.matrix

    def solve(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        cross = self.covariance(X)
        explained = linalg.solve_triangular(self.factor, cross.T, lower=True, check_finite=False) ** 2
        return cross @ self.weights, explained.sum(axis=0)


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
