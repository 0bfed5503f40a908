"""Crossed random effects: a Gaussian process over the errors of the boosted estimate.

The error of a query is a sum of effects that it shares with other queries (the same engine, the same accelerator, the
same LLM on it, and so on), an effect that fades with the distance of two workloads, and noise. The posterior mean
shifts a prediction by what was measured nearby, the posterior variance grows with the distance from measurements, and
calibration points condition the process without a new fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.training.learner.errors.effect_sizes import fit_standard_deviations
from roofcast.training.learner.errors.gaussian_process import (
    GaussianProcess,
    student_t_weights,
)
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
from roofcast.training.learner.estimator import check_is_fitted


class RandomEffects(GaussianProcess[GroupKeys]):
    """Gaussian process over errors of prediction; its standard deviations have the greatest posterior density.

    The search for them takes `n_iteration` steps at most; 0 keeps the prior medians.

    - `sd_`: Standard deviation of each of `TERMS`, of each of `STACK_TERMS`, of the workload's effect and of the
      noise.
    """

    def fit(self, X: GroupKeys, y: FloatArray) -> Self:
        """Fit the standard deviations, condition on n training points and return the estimator.

        `y`, shape (n,), are errors of predictions that did not know the LLM, in units of their expected scale.
        """
        errors = np.clip(y, -self.clip, self.clip)
        sd = fit_standard_deviations(X, errors, self.n_iteration)
        self._forget()
        self.sd_, self.training_points_, self.errors_ = sd, X, errors
        return self

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

    def condition_on(self, X: GroupKeys, y: FloatArray) -> Self:
        """Return the process that also knows the errors of calibration points, without a new fit."""
        check_is_fitted(self)
        if (X.stack == TARGET_STACK).any():
            self.build_cache()
        return super().condition_on(X, y)

    def _predict_by_training(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        mean, explained, is_cached = np.zeros(len(X.keys)), np.zeros(len(X.keys)), X.stack == TARGET_STACK
        if is_cached.any():
            mean, explained, has_entry = self._tables.look_up(X.keys, X.workload)
            is_cached &= has_entry
        rest = np.flatnonzero(~is_cached)
        if len(rest):
            mean[rest], explained[rest] = self._by_kind(X.take(rest), self._solve)
        return mean, explained

    def predict_joint(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean, shape (n,), and covariance, shape (n, n), of errors together, without noise."""
        check_is_fitted(self)
        cross = self.covariance(X, self.training_points_)
        mean = cross @ self._weights
        covariance = self.covariance(X, X) - cross @ self._factor.solve(cross.T)
        if self._calibration is not None:
            further = self._posterior_covariance(X)
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

    def _winsorise(self, errors: FloatArray) -> FloatArray:
        # the user's own stack may lie far from all others
        is_target = self.training_points_.stack == TARGET_STACK
        return np.where(is_target, errors, np.clip(errors, -self.clip, self.clip))

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

    @property
    def _blocks(self) -> IndexArray:
        return np.unique(self.training_points_.keys[:, 0], return_inverse=True)[1]

    @cached_property
    def _projection(self) -> Projection:
        return build_projection(self.training_points_, self._target_covariance, self._near_variance, self._known.gain)

    def _project(self, X: GroupKeys) -> FloatArray:
        if (X.stack == TARGET_STACK).all():
            return self._projection.apply(X.keys, X.workload)
        return super()._project(X)

    @cached_property
    def _tables(self) -> LookupTables:
        weights, inverse = self._weights, self._factor.inverse()
        tables = build_lookup_tables(
            self.training_points_, self._target_covariance, self._near_variance, inverse, weights
        )
        self.__dict__.pop("_factor", None)
        return tables

    def _by_kind(self, X: GroupKeys, solve: Callable[[GroupKeys], tuple[FloatArray, ...]]) -> list[FloatArray]:
        """Return what `solve` does, arrays of shape (n,), computed in chunks for one query of each kind.

        The process cannot distinguish queries of one kind: keys that no known point has are alike, and workloads
        matter only where a configuration is known.
        """
        keys = np.zeros_like(X.keys)
        for i, column in enumerate(self.known_points.keys.T):
            keys[:, i] = np.where(np.isin(X.keys[:, i], column), X.keys[:, i], 0)
        workload = X.workload * (keys[:, -1:] != 0)
        table = np.hstack([keys, workload.view(np.uint64), X.stack[:, None]])
        kinds = pd.util.hash_pandas_object(pd.DataFrame(table), index=False)
        _, first, back = np.unique(kinds.to_numpy(), return_index=True, return_inverse=True)
        return [values[back] for values in super()._by_kind(X.take(first), solve)]
