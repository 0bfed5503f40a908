"""Random effects: what the errors of the boosted estimate have in common from question to question.

The error of one question is a sum of effects that it shares with other questions (the same engine, the same
accelerator, the same LLM on it, and so on), an effect that fades with the distance of two workloads, and noise. That
is a Gaussian process; its mean shifts a prediction by what was measured nearby, its variance grows with how little
was, and measurements given later condition it without training.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from roofcast.training.learner.group_keys import OF_STACK, OF_STACK_AT, TERMS, YOURS, GroupKeys, anchor_rows
from roofcast.training.learner.random_effect_tables import Tables, build_tables, fading

FloatArray = npt.NDArray[np.float64]

WORKLOAD_SD: Final = 0.5
NOISE_SD: Final = 0.4
"""Prior medians of the effect that fades with the workloads' distance, and of what is left."""

PRIOR_LOG_SD: Final = 0.7
LARGEST: Final = 3.0
"""Errors count to this size; a larger one is a fault, not an effect."""

DEGREES: Final = 4.0
"""Degrees of freedom of the noise of references: few, for a queue or a cold start makes a point many times slower."""

N_REWEIGHTING: Final = 10

N_SIZED: Final = 450
"""Questions that the sizes of the effects are fitted to, configurations drawn by chance."""

_WORKED_OUT: Final = ("_lower", "_weights", "_tables")

_LIMITS: Final = (0.03, 3.0)


class RandomEffects(BaseEstimator):  # type: ignore[misc]
    """Gaussian process over errors of prediction; the sizes of its effects are those of greatest posterior density.

    Parameters
    ----------
    n_iteration
        Steps of the search for them at most; 0 keeps the prior medians.

    Attributes
    ----------
    sd_
        Standard deviation of each of `TERMS`, of each of `OF_STACK`, of the workload's effect and of the noise.
    anchors_, errors_
        The questions that the process is conditioned on, and their errors: those it was fitted to, or, after
        `about`, those of another predictor.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5.
    """

    def __init__(self, n_iteration: int = 15) -> None:
        self.n_iteration = n_iteration

    def fit(self, X: GroupKeys, y: FloatArray) -> Self:
        """Choose anchors among the questions, fit the effects' sizes and return the estimator.

        Parameters
        ----------
        X
            GroupKeys of n questions.
        y : shape (n,)
            Errors of predictions that did not know the LLM, in units of the error that such questions have.
        """
        rows = anchor_rows(X)
        start = np.log(np.array([*TERMS.values(), *OF_STACK.values(), WORKLOAD_SD, NOISE_SD]))
        anchors, errors = X.take(rows), np.clip(y[rows], -LARGEST, LARGEST)
        bounds = [(np.log(_LIMITS[0]), np.log(_LIMITS[1]))] * len(start)
        log_sd = start
        if self.n_iteration:
            some = _drawn(anchors)
            objective = _Objective(_parts(anchors.take(some), anchors.take(some)), errors[some], start)
            log_sd = minimize(
                objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": self.n_iteration}
            ).x
        for name in _WORKED_OUT:
            self.__dict__.pop(name, None)
        self.sd_, self.anchors_, self.errors_ = np.exp(log_sd), anchors, errors
        return self

    def about(self, errors: FloatArray) -> RandomEffects:
        """Return a copy of the same sizes whose anchors have other errors: shape (n_anchor,).

        Those of `YOURS` count whole: one's own stack may lie far from all others.
        """
        check_is_fitted(self)
        other = RandomEffects(self.n_iteration)
        other.sd_, other.anchors_ = self.sd_, self.anchors_
        is_yours = self.anchors_.stack == YOURS
        other.errors_ = np.where(is_yours, errors, np.clip(errors, -LARGEST, LARGEST))
        return other

    def conditioned(self, X: GroupKeys, y: FloatArray) -> RandomEffects:
        """Return a copy that also knows these errors: reference measurements, without a new fit.

        One that is far off and alone in it counts less (`agreement`).
        """
        check_is_fitted(self)
        told = RandomEffects(self.n_iteration)
        told.sd_, told.anchors_ = self.sd_, self.anchors_.followed_by(X)
        told.errors_ = np.append(self.errors_, y)
        lower, n, noise = self._lower, len(self.errors_), self.sd_[-1] ** 2
        side = solve_triangular(lower, self._covariance(self.anchors_, X), lower=True, check_finite=False)
        prior = self._covariance(X, X)
        corner = prior - side.T @ side + np.diag(noise / agreement(y, prior, noise))
        grown = np.zeros((n + len(y), n + len(y)))
        grown[:n, :n], grown[n:, :n], grown[n:, n:] = lower, side.T, np.linalg.cholesky(corner)
        told._lower, told._tables = grown, None
        return told

    @cached_property
    def _lower(self) -> FloatArray:
        """The Cholesky factor of the covariance of the anchors' errors."""
        covariance = self._covariance(self.anchors_, self.anchors_)
        covariance[np.diag_indices(len(self.errors_))] += self.sd_[-1] ** 2
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    @cached_property
    def _weights(self) -> FloatArray:
        return np.asarray(cho_solve((self._lower, True), self.errors_), dtype=np.float64)

    @cached_property
    def _tables(self) -> Tables | None:
        """What answers sooner; none after conditioning, since few ask what references change.

        The factor that they are made with is larger than all else here, and rarely needed again.
        """
        anchors = self.anchors_
        shared, of_stack, of_workload = self._variances()
        share = shared + of_stack * (anchors.stack == YOURS)[:, None]
        tables = build_tables(anchors, share, of_workload, self._lower, self._weights)
        self.__dict__.pop("_lower", None)
        return tables

    def __getstate__(self) -> dict[str, Any]:
        """Return what cannot be worked out again: the rest is a hundred times as large."""
        state: dict[str, Any] = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name not in _WORKED_OUT}

    def warm(self) -> Self:
        """Work out what the first prediction would, which takes a moment, and return the estimator."""
        _ = self._tables
        return self

    def predict(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the error of a new measurement: shapes (n,)."""
        check_is_fitted(self)
        if self._tables:
            mean, explained, is_told = self._tables.look_up(X.keys, X.workload)
            is_told &= X.stack == YOURS
        else:
            mean, explained, is_told = np.empty(len(X.keys)), np.empty(len(X.keys)), np.zeros(len(X.keys), dtype=bool)
        rest = np.flatnonzero(~is_told)
        if len(rest):
            mean[rest], explained[rest] = self._solved(X.take(rest))
        variance = (self.sd_**2).sum() - explained
        return mean, np.sqrt(np.maximum(variance, self.sd_[-1] ** 2))

    def _solved(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance explained, without tables: shapes (n,)."""
        first, back = self._distinct(X)
        some = X.take(first)
        mean, explained = np.empty(len(first)), np.empty(len(first))
        for start in range(0, len(first), 2048):
            rows = np.arange(start, min(start + 2048, len(first)))
            cross = self._covariance(some.take(rows), self.anchors_)
            mean[rows] = cross @ self._weights
            known = solve_triangular(self._lower, cross.T, lower=True, check_finite=False)
            explained[rows] = (known**2).sum(axis=0)
        return mean[back], explained[back]

    def joint(self, X: GroupKeys) -> tuple[FloatArray, FloatArray]:
        """Return mean, shape (n,), and covariance, shape (n, n), of errors together, without noise of measurement."""
        check_is_fitted(self)
        cross = self._covariance(X, self.anchors_)
        prior = self._covariance(X, X)
        return cross @ self._weights, prior - cross @ cho_solve((self._lower, True), cross.T)

    def sd_left_out(self, X: GroupKeys, groups: npt.NDArray[Any], anchor_groups: npt.NDArray[Any]) -> FloatArray:
        """Return the standard deviation of errors if the anchors of their group were not known: shape (n,).

        Parameters
        ----------
        X
            GroupKeys of n questions.
        groups : shape (n,)
        anchor_groups : shape (n_anchor,)

        Notes
        -----
        With Q the inverse covariance of all anchors, that of those outside group g is ``Q_rr - Q_rg Q_gg ** -1 Q_gr``
        (Rasmussen and Williams, section A.3).
        """
        check_is_fitted(self)
        precision = cho_solve((self._lower, True), np.eye(len(self.errors_)))
        sd = np.empty(len(groups))
        for group in np.unique(groups):
            rows, own = np.flatnonzero(groups == group), anchor_groups == group
            cross = self._covariance(X.take(rows), self.anchors_)
            cross[:, own] = 0.0
            lower = np.linalg.cholesky(precision[np.ix_(own, own)])
            spread = cross @ precision
            lost = solve_triangular(lower, spread[:, own].T, lower=True, check_finite=False)
            explained = (spread * cross).sum(axis=1) - (lost**2).sum(axis=0)
            sd[rows] = np.sqrt(np.maximum((self.sd_**2).sum() - explained, self.sd_[-1] ** 2))
        return sd

    def nearest(self, X: GroupKeys, n: int = 3) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Return each question's `n` most telling anchors, and their correlation with it: shapes (n_question, n)."""
        check_is_fitted(self)
        shared = self._covariance(X, self.anchors_) / (self.sd_[:-1] ** 2).sum()
        order = np.argsort(-shared, axis=1, kind="stable")[:, :n]
        return order, np.take_along_axis(shared, order, axis=1)

    def _variances(self) -> tuple[FloatArray, FloatArray, float]:
        """Return the variance of each of `TERMS`, what a shared stack adds to each, and that of the workload."""
        variance, of_stack = self.sd_**2, np.zeros(len(TERMS))
        of_stack[[*OF_STACK_AT]] = variance[len(TERMS) : -2]
        return variance[: len(TERMS)], of_stack, float(variance[-2])

    def _covariance(self, X: GroupKeys, other: GroupKeys) -> FloatArray:
        shared, of_stack, of_workload = self._variances()
        is_stack = X.stack[:, None] == other.stack
        total = np.zeros(is_stack.shape)
        for size, more, mine, theirs in zip(shared, of_stack, X.keys.T, other.keys.T, strict=True):
            is_same = mine[:, None] == theirs
            total += size * is_same
            if more:
                total += more * (is_same & is_stack)
        near = np.nonzero(X.keys[:, -1, None] == other.keys[:, -1])
        total[near] += of_workload * fading(X.workload[near[0]] - other.workload[near[1]])
        return total

    def _distinct(self, X: GroupKeys) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return one question of each kind that the process cannot tell apart, and the kind of every question.

        To it, whatever no anchor has is alike, and workloads count only beside an anchor's own configuration.
        """
        keys = np.zeros_like(X.keys)
        for i, anchored in enumerate(self.anchors_.keys.T):
            keys[:, i] = np.where(np.isin(X.keys[:, i], anchored), X.keys[:, i], 0)
        workload = X.workload * (keys[:, -1:] != 0)
        told = np.hstack([keys, workload.view(np.uint64), X.stack[:, None]])
        kinds = pd.util.hash_pandas_object(pd.DataFrame(told), index=False)
        _, first, back = np.unique(kinds.to_numpy(), return_index=True, return_inverse=True)
        return first, back


def agreement(errors: FloatArray, covariance: FloatArray, noise: float) -> FloatArray:
    """Return what each measurement counts for, 0 to 1: less the further it lies from what the others make likely.

    Parameters
    ----------
    errors : shape (n,)
        Of mean 0 before any was measured.
    covariance : shape (n, n)
        Of the errors, without noise.
    noise
        Variance of the noise.

    Notes
    -----
    Noise of Student's t distribution, by reweighting: one point far off is as likely a fault as a slow machine;
    several that agree are not.

    Examples
    --------
    >>> import numpy as np
    >>> one, shared = np.array([5.0]), np.ones((3, 3))
    >>> agreement(one, shared[:1, :1], 0.1).round(2), agreement(np.array([5.0, 5.1, 4.9]), shared, 0.1).round(2)
    (array([0.19]), array([1., 1., 1.]))

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
        weight = np.minimum((DEGREES + 1) / (DEGREES + distance), 1.0)
    return weight


class _Objective:
    """Negative log posterior density of the sizes, and its gradient, in their logarithms."""

    def __init__(self, parts: list[FloatArray], errors: FloatArray, start: FloatArray) -> None:
        self.parts, self.errors, self.start = parts, errors, start

    def __call__(self, log_sd: FloatArray) -> tuple[float, FloatArray]:
        variance = np.exp(2 * log_sd)
        covariance = variance[-1] * np.eye(len(self.errors))
        for size, part in zip(variance[:-1], self.parts, strict=True):
            covariance += size * part
        factor = cho_factor(covariance, lower=True)
        weights = cho_solve(factor, self.errors)
        slope = cho_solve(factor, np.eye(len(self.errors))) - np.outer(weights, weights)
        distance = (log_sd - self.start) / PRIOR_LOG_SD
        value = np.log(np.diag(factor[0])).sum() + 0.5 * self.errors @ weights + 0.5 * distance @ distance
        gradient = [size * (slope * part).sum() for size, part in zip(variance[:-1], self.parts, strict=True)]
        gradient.append(variance[-1] * np.trace(slope))
        return float(value), np.array(gradient) + distance / PRIOR_LOG_SD


def _parts(X: GroupKeys, other: GroupKeys) -> list[FloatArray]:
    """Return the correlation of each effect between two sets of questions: shapes (n, n_other)."""
    same = [(X.keys[:, i, None] == other.keys[None, :, i]).astype(float) for i in range(X.keys.shape[1])]
    is_stack = X.stack[:, None] == other.stack
    near = same[-1] * fading(X.workload[:, None, :] - other.workload[None, :, :])
    return [*same, *(same[i] * is_stack for i in OF_STACK_AT), near]


def _drawn(anchors: GroupKeys) -> npt.NDArray[np.intp]:
    """Return places of the anchors of some configurations, `N_SIZED` at most.

    Half of them are of what several stacks measured, as far as there are such: these alone tell stacks apart.
    """
    order = np.unique(anchors.keys[:, -1])
    order = order[np.random.default_rng(0).permutation(len(order))]
    by_key = np.argsort(order)
    place = by_key[np.searchsorted(order[by_key], anchors.keys[:, -1])]
    cells = pd.DataFrame({"cell": anchors.keys[:, OF_STACK_AT[-1]], "stack": anchors.stack})
    is_shared = (cells.groupby("cell")["stack"].transform("nunique") > 1).to_numpy()
    turn = np.empty(len(place))
    for some in (np.flatnonzero(is_shared), np.flatnonzero(~is_shared)):
        turn[some[np.argsort(place[some], kind="stable")]] = np.arange(len(some))
    return np.sort(np.argsort(turn, kind="stable")[:N_SIZED])
