"""Crossed random effects of groups of training runs: lineage, accelerator, framework, owner of the stack and so on.

The standardised error of a run is a sum of effects that it shares with runs of the same group, one for each of
`TERMS`; of slopes over the parts of the estimate (`SLOPES`), so that each part has a factor that all runs share, one
of its framework and one of its stack; of smooth functions of the job within a group (`SMOOTH`); and noise. An owner
that nobody measured has effects of mean zero, whose variance widens the interval. A stack is an owner's framework.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import BoolArray, FloatArray, RowIndex
from roofcast.training.jobs.job_table import JobTable
from roofcast.training.learner.errors.effect_sizes import most_likely_sd
from roofcast.training.learner.errors.gaussian_process import GaussianProcess

KeyArray = npt.NDArray[np.uint64]
Terms = dict[tuple[str, ...], float]

TERMS: Final[Terms] = {
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

SLOPES: Final[Terms] = {(): 0.3, ("framework",): 0.3, ("owner", "framework"): 0.4}
"""Groupings with a factor for each part of the estimate."""

SMOOTH: Final[Terms] = {("owner", "framework"): 0.4, ("accelerator",): 0.3}
"""Groupings in which like jobs have like errors; those of an accelerator, of few owners each, only among stacks
that were learnt from."""

NOISE_SD: Final = 0.4
"""Prior median of the standard deviation of the noise."""

REACH: Final = 0.5
"""Root mean square distance of columns, in standard deviations, at which the likeness of jobs is `exp(-1/2)`."""

LEAST_SPREAD: Final = 1e-9
"""Columns with a smaller standard deviation do not tell jobs apart."""

N_SEARCH_POINT: Final = 500
MAX_POINT: Final = 1000
"""Training runs that the effects are conditioned on, at most."""

_STACK: Final = tuple(TERMS).index(("owner", "framework"))
_STACK_ACCELERATOR: Final = tuple(TERMS).index(("owner", "framework", "accelerator"))


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


@dataclass(frozen=True, slots=True)
class JobPoints:
    """What the covariance reads of n jobs.

    - `keys`: shape (n, n_term). As of `group_keys`.
    - `part`: shape (n, n_part). Shares of the parts of the estimate.
    - `place`: shape (n, n_column). Columns, scaled so that squares of differences add up to the squared distance.
    """

    keys: KeyArray
    part: FloatArray
    place: FloatArray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: RowIndex | BoolArray) -> JobPoints:
        """Return some rows."""
        return JobPoints(self.keys[rows], self.part[rows], self.place[rows])

    def append(self, other: JobPoints) -> JobPoints:
        """Return these rows, then the others."""
        part, place = np.vstack([self.part, other.part]), np.vstack([self.place, other.place])
        return JobPoints(np.vstack([self.keys, other.keys]), part, place)


@dataclass(frozen=True)
class JobSpace:
    """Columns of jobs as coordinates; the first `n_part` columns are shares, `unit`, shape (n_column,), the scale."""

    n_part: int
    unit: FloatArray

    @classmethod
    def fit(cls, columns: Sequence[str], x: FloatArray, parts: Sequence[str]) -> Self:
        """Return the space of columns of shape (n_row, n_column), of which those of `parts` come first."""
        n_part = sum(name.removeprefix("share.") in parts for name in columns)
        sd = x.std(axis=0)
        unit = np.divide(1.0, sd, out=np.zeros(len(sd)), where=sd > LEAST_SPREAD)
        return cls(n_part, unit / REACH / np.sqrt(len(sd)))

    def points(self, keys: KeyArray, x: FloatArray) -> JobPoints:
        """Return jobs with these keys and columns."""
        return JobPoints(keys, x[:, : self.n_part], x * self.unit)


class JobEffects(GaussianProcess[JobPoints]):
    """Gaussian process of standardised errors over groups of jobs.

    `sd_`: shape (n_effect + 1,). Standard deviation of each of `TERMS`, `SLOPES` and `SMOOTH`, and of the noise.
    """

    clip = 3.5
    chunk = 256  # the covariance with the runs stays in the processor's cache

    def fit(self, X: JobPoints, y: FloatArray) -> Self:
        """Fit the standard deviations, condition on n runs and return the estimator; `y` has shape (n,)."""
        rows = np.random.default_rng(0).permutation(select_runs(X.keys))[:N_SEARCH_POINT]
        prior = np.array([*TERMS.values(), *SLOPES.values(), *SMOOTH.values(), NOISE_SD])
        errors = self._winsorise(y)
        self.sd_ = most_likely_sd(_correlations(X.take(rows)), prior, errors[rows], self.n_iteration)
        self._forget()
        self.training_points_, self.errors_ = X, errors
        return self

    def covariance(self, X: JobPoints, other: JobPoints) -> FloatArray:
        """Return the prior covariance of errors, without noise: shape (n, n_other)."""
        groups, group = np.unique(X.keys, axis=0, return_inverse=True)
        same, variance = _same_groups(groups, other.keys), iter(self.sd_**2)
        both_learnt = self._is_learnt(groups)[:, None] & self._is_learnt(other.keys)
        carried = same | {("accelerator",): same["accelerator",] & both_learnt}
        offset, slope, smooth = (
            sum((next(variance) * shared[term] for term in terms), np.zeros((len(groups), len(other))))
            for terms, shared in ((TERMS, same), (SLOPES, same), (SMOOTH, carried))
        )
        product, near = _likeness(X, other)
        product *= slope[group]
        near *= smooth[group]
        near += product
        near += offset[group]
        return near

    def _is_learnt(self, keys: KeyArray) -> BoolArray:
        return np.isin(keys[:, _STACK], self.training_points_.keys[:, _STACK])

    def variance(self, X: JobPoints) -> FloatArray:
        """Return the prior variance of the error of a new measurement, noise included: shape (n,)."""
        of_slopes = (self.sd_[len(TERMS) : len(TERMS) + len(SLOPES)] ** 2).sum()
        return np.asarray((self.sd_**2).sum() - of_slopes + of_slopes * (X.part**2).sum(axis=1))

    def knows_stack(self, keys: KeyArray) -> BoolArray:
        """Return whether runs of each job's owner with its framework are known: shape (n_query,)."""
        return np.isin(keys[:, _STACK], self.known_points.keys[:, _STACK])

    def knows_accelerator(self, keys: KeyArray) -> BoolArray:
        """Return whether runs of each job's stack on its accelerator are known: shape (n_query,)."""
        return np.isin(keys[:, _STACK_ACCELERATOR], self.known_points.keys[:, _STACK_ACCELERATOR])

    def _by_kind(self, X: JobPoints, solve: Callable[[JobPoints], tuple[FloatArray, ...]]) -> list[FloatArray]:
        order = np.lexsort(X.keys.T)  # jobs of the same groups share a chunk
        return [values[np.argsort(order)] for values in super()._by_kind(X.take(order), solve)]


def _same_groups(keys: KeyArray, other: KeyArray) -> dict[tuple[str, ...], BoolArray]:
    same = {term: one[:, None] == two for term, one, two in zip(TERMS, keys.T, other.T, strict=True)}
    return same | {(): np.ones((len(keys), len(other)), dtype=bool)}


def _likeness(X: JobPoints, other: JobPoints) -> tuple[FloatArray, FloatArray]:
    square = (X.place**2).sum(axis=1)[:, None] + (other.place**2).sum(axis=1) - 2.0 * X.place @ other.place.T
    return X.part @ other.part.T, np.exp(-0.5 * np.maximum(square, 0.0))


def _correlations(X: JobPoints) -> list[FloatArray]:
    same, (product, near) = _same_groups(X.keys, X.keys), _likeness(X, X)
    parts = [same[term].astype(float) for term in TERMS]
    return parts + [product * same[term] for term in SLOPES] + [near * same[term] for term in SMOOTH]


def select_runs(keys: KeyArray, limit: int = MAX_POINT) -> RowIndex:
    """Return the runs that effects are conditioned on: as many of each configuration as `limit` allows, in order."""
    rank = pd.Series(keys[:, -2]).groupby(keys[:, -2]).cumcount().to_numpy()
    order = np.argsort(rank, kind="stable")
    return np.asarray(np.sort(order[:limit]))
