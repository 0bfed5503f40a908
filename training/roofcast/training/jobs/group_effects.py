"""Crossed random effects of groups of training runs: lineage, accelerator, framework, owner of the stack and so on.

The standardised error of a run is a sum of effects that it shares with runs of the same group, one for each of
`TERMS`; of slopes over the parts of the estimate (`SLOPES`), so that each part has a factor that all runs share, one
of its framework and one of its stack; of smooth functions of the job within a group (`SMOOTH`); and noise. An owner
that nobody measured has effects of mean zero, whose variance widens the interval. A stack is an owner's framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import FloatArray, RowIndex
from roofcast.training.jobs.job_table import JobTable
from roofcast.training.learner.errors.lazy_scipy import linalg, optimize
from roofcast.training.learner.errors.random_effects import student_t_weights

KeyArray = npt.NDArray[np.uint64]

TERMS: Final[dict[tuple[str, ...], float]] = {
    ("accelerator",): 0.3,
    ("accelerator", "precision"): 0.3,
    ("framework",): 0.3,
    ("framework", "accelerator"): 0.3,
    ("method", "framework"): 0.3,
    ("lineage",): 0.4,
    ("lineage", "accelerator"): 0.4,
    ("lineage", "accelerator", "precision"): 0.3,
    ("owner",): 0.4,
    ("owner", "framework"): 0.3,
    ("owner", "framework", "accelerator"): 0.4,
    ("owner", "framework", "method", "precision"): 0.3,
    ("owner", "lineage"): 0.4,
    ("owner", "lineage", "accelerator"): 0.4,
    ("owner", "lineage", "accelerator", "precision", "method", "size"): 0.4,
    ("owner", "lineage", "accelerator", "precision", "method", "size", "plan"): 0.4,
}
"""Groupings of the crossed effects, and the prior median of the standard deviation of each."""

SLOPES: Final[dict[tuple[str, ...], float]] = {(): 0.3, ("framework",): 0.3, ("owner", "framework"): 0.4}
"""Groupings with a factor for each part of the estimate, and the prior median of the standard deviation of each."""

SMOOTH: Final[dict[tuple[str, ...], float]] = {("owner", "framework"): 0.4, ("accelerator",): 0.3}
"""Groupings in which like jobs have like errors, and the prior median of the standard deviation of each."""

OF_ACCELERATOR: Final = (("accelerator",),)
"""Of `SMOOTH`, those that rest on few owners each and do not carry over to stacks without runs."""

REACH: Final = 0.5
"""Root mean square distance of columns, in standard deviations, at which the likeness of jobs is `exp(-1/2)`."""

_STACK: Final = tuple(TERMS).index(("owner", "framework"))
_STACK_ACCELERATOR: Final = tuple(TERMS).index(("owner", "framework", "accelerator"))

NOISE_SD: Final = 0.4
"""Prior median of the standard deviation of the noise."""

PRIOR_LOG_SD: Final = 0.7
SD_LIMITS: Final = (0.03, 3.0)
LEAST_SPREAD: Final = 1e-9
"""Columns with a smaller standard deviation do not tell jobs apart."""

ERROR_CLIP: Final = 3.5
"""Standardised errors of training runs are winsorised at this value."""

N_SEARCH_POINT: Final = 500
N_SEARCH_STEP: Final = 15
MAX_POINT: Final = 1000
"""Training runs that the effects are conditioned on, at most."""

N_BLOCK_ROW: Final = 256
"""Queries predicted at once, so that their covariance with the runs stays in the processor's cache."""


def group_keys(table: JobTable) -> KeyArray:
    """Return the hash of each job's level in each of `TERMS`: shape (n_job, n_term)."""
    plan, job = table.runs.plan, table.runs.job
    size = np.rint(np.log2(job.n_accelerator))
    token = np.rint(2.0 * np.log2(plan.micro_batch * job.n_token))
    precision = np.where(job.is_eight_bit > 0, "low", "half") + np.array(table.text("precision_recipe"), dtype=str)
    split = [plan.tp, plan.pp, plan.cp, plan.ep, plan.recomputation, plan.zero_stage, token]
    levels = {
        "accelerator": table.text("accelerator"),
        "precision": precision,
        "framework": job.framework,
        "method": table.text("method"),
        "lineage": table.groups,
        "owner": table.owners,
        "size": size,
        "plan": _joint([np.asarray(part) for part in split]),
    }
    hashes = {name: _hash(np.broadcast_to(level, len(table))) for name, level in levels.items()}
    return np.column_stack([_joint([hashes[name] for name in term]) for term in TERMS])


def _hash(level: npt.NDArray[Any]) -> KeyArray:
    codes, names = pd.factorize(level)
    return np.asarray(pd.util.hash_array(names.astype(str).astype(object)))[codes]


def _joint(parts: list[npt.NDArray[np.generic]]) -> KeyArray:
    frame = pd.DataFrame({i: np.asarray(part) for i, part in enumerate(parts)})
    return np.asarray(pd.util.hash_pandas_object(frame, index=False), dtype=np.uint64)


@dataclass(frozen=True)
class JobSpace:
    """How alike jobs are by their columns.

    `n_part`: columns, the first ones, that are shares of the parts of the estimate. `unit`: shape (n_column,):
    factors of the columns, whose squares add up to the squared distance.
    """

    n_part: int
    unit: FloatArray

    @classmethod
    def fit(cls, columns: Sequence[str], x: FloatArray, parts: Sequence[str]) -> Self:
        """Return the space of columns of shape (n_row, n_column), of which those of `parts` come first."""
        n_part = sum(name.removeprefix("share.") in parts for name in columns)
        sd = x.std(axis=0)
        unit = np.divide(1.0, sd, out=np.zeros(len(sd)), where=sd > LEAST_SPREAD)
        return cls(n_part, unit / REACH / np.sqrt(len(sd)))

    def parts(self, x: FloatArray) -> FloatArray:
        """Return the shares of the parts: shape (n_row, n_part)."""
        return x[:, : self.n_part]

    def likeness(self, x: FloatArray, other_x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, of pairs of jobs, the product of their shares and how near they are: shapes (n_row, n_other)."""
        place, other_place = x * self.unit, other_x * self.unit
        square = (place**2).sum(axis=1)[:, None] + (other_place**2).sum(axis=1) - 2.0 * place @ other_place.T
        return self.parts(x) @ self.parts(other_x).T, np.exp(-0.5 * np.maximum(square, 0.0))


def same_groups(keys: KeyArray, other: KeyArray) -> dict[tuple[str, ...], npt.NDArray[np.bool_]]:
    """Return whether pairs of jobs share the group of each of `TERMS`, and of all jobs: shapes (n_row, n_other)."""
    same = {term: one[:, None] == two for term, one, two in zip(TERMS, keys.T, other.T, strict=True)}
    return same | {(): np.ones((len(keys), len(other)), dtype=bool)}


@dataclass(frozen=True)
class GroupEffects:
    """Gaussian process of standardised errors over groups, conditioned on n runs.

    - `sd`: shape (n_effect + 1,). Standard deviation of each of `TERMS`, `SLOPES` and `SMOOTH`, and of the noise.
    - `space`: Of the columns of jobs.
    - `keys`: shape (n, n_term)
    - `x`: shape (n, n_column)
    - `error`, `noise`: shape (n,). Errors of the runs, and the variance of the noise of each.
    """

    sd: FloatArray
    space: JobSpace
    keys: KeyArray
    x: FloatArray
    error: FloatArray
    noise: FloatArray

    @cached_property
    def root(self) -> FloatArray:
        """Inverse of the lower Cholesky factor of the covariance of the errors of the runs: shape (n, n)."""
        covariance = self._covariance(self.keys, self.x, self.keys, self.x) + np.diag(self.noise)
        return _inverse_root(covariance)

    @cached_property
    def weights(self) -> FloatArray:
        """The inverse of the covariance times the errors: shape (n,)."""
        return np.asarray((self.root @ self.error) @ self.root)

    def append(self, keys: KeyArray, x: FloatArray, error: FloatArray) -> GroupEffects:
        """Return the process that also knows the errors of k other runs.

        One that is far off and alone counts less; see `student_t_weights`.
        """
        prior = self._covariance(keys, x, keys, x)
        noise = self.sd[-1] ** 2 / student_t_weights(error, prior, float(self.sd[-1] ** 2))
        known = self.root @ self._covariance(self.keys, self.x, keys, x)
        own = _inverse_root(prior + np.diag(noise) - known.T @ known)
        joint = np.append(self.error, error), np.append(self.noise, noise)
        other = GroupEffects(self.sd, self.space, np.vstack([self.keys, keys]), np.vstack([self.x, x]), *joint)
        above = np.zeros((len(self.keys), len(keys)))
        vars(other)["root"] = np.block([[self.root, above], [-own @ known.T @ self.root, own]])
        return other

    def knows_stack(self, keys: KeyArray) -> npt.NDArray[np.bool_]:
        """Return whether runs of each job's owner with its framework are known: shape (n_query,)."""
        return np.isin(keys[:, _STACK], self.keys[:, _STACK])

    def knows_accelerator(self, keys: KeyArray) -> npt.NDArray[np.bool_]:
        """Return whether runs of each job's stack on its accelerator are known: shape (n_query,)."""
        return np.isin(keys[:, _STACK_ACCELERATOR], self.keys[:, _STACK_ACCELERATOR])

    def predict(self, keys: KeyArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the error of a new measurement: shapes (n_query,)."""
        mean, explained = np.empty(len(x)), np.empty(len(x))
        order = np.lexsort(keys.T)  # jobs of the same groups share a block
        for start in range(0, len(x), N_BLOCK_ROW):
            rows = order[start : start + N_BLOCK_ROW]
            cross = self._covariance(keys[rows], x[rows], self.keys, self.x, is_query=True)
            mean[rows] = cross @ self.weights
            explained[rows] = (linalg.blas.dtrmm(1.0, self.root.T, cross.T, trans_a=1) ** 2).sum(axis=0)
        return mean, np.sqrt(np.maximum(self._variance(x) - explained, self.sd[-1] ** 2))

    def _covariance(
        self, keys: KeyArray, x: FloatArray, other: KeyArray, other_x: FloatArray, *, is_query: bool = False
    ) -> FloatArray:
        groups, group = np.unique(keys, axis=0, return_inverse=True)
        carries = self.knows_stack(groups) if is_query else np.ones(len(groups), dtype=bool)
        offset, slope, smooth = self._shared_variance(groups, other, carries)
        product, near = self.space.likeness(x, other_x)
        product *= slope[group]
        near *= smooth[group]
        near += product
        near += offset[group]
        return near

    def _shared_variance(
        self, keys: KeyArray, other: KeyArray, carries: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        same, variance = same_groups(keys, other), iter(self.sd**2)
        carried = same | {term: same[term] & carries[:, None] for term in OF_ACCELERATOR}
        offset, slope, smooth = (
            sum((next(variance) * shared[term] for term in terms), np.zeros((len(keys), len(other))))
            for terms, shared in ((TERMS, same), (SLOPES, same), (SMOOTH, carried))
        )
        return offset, slope, smooth

    def _variance(self, x: FloatArray) -> FloatArray:
        slope = slice(len(TERMS), len(TERMS) + len(SLOPES))
        total = (self.sd**2).sum() - (self.sd[slope] ** 2).sum()
        return np.asarray(total + (self.sd[slope] ** 2).sum() * (self.space.parts(x) ** 2).sum(axis=1))


def select_runs(keys: KeyArray, limit: int = MAX_POINT) -> RowIndex:
    """Return the runs that effects are conditioned on: as many of each configuration as `limit` allows, in order."""
    rank = pd.Series(keys[:, -2]).groupby(keys[:, -2]).cumcount().to_numpy()
    order = np.argsort(rank, kind="stable")
    return np.asarray(np.sort(order[:limit]))


def fit_standard_deviations(space: JobSpace, keys: KeyArray, x: FloatArray, error: FloatArray) -> FloatArray:
    """Return the standard deviations of all effects and of the noise, of greatest posterior density.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.1.
    """
    rows = np.random.default_rng(0).permutation(select_runs(keys))[:N_SEARCH_POINT]
    keys, x, error = keys[rows], x[rows], np.clip(error[rows], -ERROR_CLIP, ERROR_CLIP)
    same, (product, near) = same_groups(keys, keys), space.likeness(x, x)
    parts = [same[term].astype(float) for term in TERMS]
    parts += [product * same[term] for term in SLOPES] + [near * same[term] for term in SMOOTH] + [np.eye(len(rows))]
    prior: FloatArray = np.log(np.array([*TERMS.values(), *SLOPES.values(), *SMOOTH.values(), NOISE_SD]))

    def loss(log_sd: FloatArray) -> tuple[float, FloatArray]:
        variance = np.exp(2.0 * log_sd)
        covariance = sum(size * part for size, part in zip(variance, parts, strict=True))
        factor = linalg.cho_factor(covariance, lower=True)
        weights = linalg.cho_solve(factor, error)
        slope = linalg.cho_solve(factor, np.eye(len(error))) - np.outer(weights, weights)
        distance = (log_sd - prior) / PRIOR_LOG_SD
        value = np.log(np.diag(factor[0])).sum() + 0.5 * error @ weights + 0.5 * distance @ distance
        gradient = [size * np.vdot(slope, part) for size, part in zip(variance, parts, strict=True)]
        return float(value), np.array(gradient) + distance / PRIOR_LOG_SD

    log_sd = optimize.minimize(
        loss,
        prior,
        jac=True,
        method="L-BFGS-B",
        bounds=[tuple(np.log(SD_LIMITS))] * len(prior),
        options={"maxiter": N_SEARCH_STEP},
    ).x
    return np.asarray(np.exp(log_sd), dtype=np.float64)


def _inverse_root(covariance: FloatArray) -> FloatArray:
    factor = linalg.cholesky(covariance, lower=True)
    return np.asarray(linalg.solve_triangular(factor, np.eye(len(covariance)), lower=True))


def condition_effects(
    sd: FloatArray,
    space: JobSpace,
    keys: KeyArray,
    x: FloatArray,
    error: FloatArray,
    *,
    weight: FloatArray | None = None,
) -> GroupEffects:
    """Return the effects given standardised errors of training runs, winsorised.

    `weight`: shape (n_run,): of each run: the inverse of the ratio of its noise to that of others; None for one each.
    """
    noise = np.full(len(error), sd[-1] ** 2) / (1.0 if weight is None else weight)
    return GroupEffects(sd, space, keys, x, np.clip(error, -ERROR_CLIP, ERROR_CLIP), noise)
