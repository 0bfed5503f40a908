"""Crossed random effects of groups of training runs: lineage, accelerator, framework, owner of the stack and so on.

The standardised error of a run is a sum of effects that it shares with runs of the same group, one for each of
`TERMS`, and noise. An owner that nobody measured has effects of mean zero, whose variance widens the interval. A
stack is an owner's framework.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.arrays import FloatArray, RowIndex
from roofcast.training.learner.errors.lazy_scipy import linalg, optimize
from roofcast.training.learner.errors.random_effects import student_t_weights
from roofcast.training.training_jobs.job_table import JobTable

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

_STACK: Final = tuple(TERMS).index(("owner", "framework"))

NOISE_SD: Final = 0.4
"""Prior median of the standard deviation of the noise."""

PRIOR_LOG_SD: Final = 0.7
SD_LIMITS: Final = (0.03, 3.0)
ERROR_CLIP: Final = 3.5
"""Standardised errors of training runs are winsorised at this value."""

N_SEARCH_POINT: Final = 500
N_SEARCH_STEP: Final = 15
MAX_POINT: Final = 1000
"""Training runs that the effects are conditioned on, at most."""


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
        "lineage": table.lineage,
        "owner": table.owner,
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
class GroupEffects:
    """Gaussian process of standardised errors over groups, conditioned on n runs.

    Parameters
    ----------
    sd : shape (n_term + 1,)
        Standard deviation of each of `TERMS`, and of the noise.
    keys : shape (n, n_term)
    error, noise : shape (n,)
        Errors of the runs, and the variance of the noise of each.
    """

    sd: FloatArray
    keys: KeyArray
    error: FloatArray
    noise: FloatArray

    @cached_property
    def inverse(self) -> FloatArray:
        """Inverse of the covariance of the errors of the runs, noise included: shape (n, n)."""
        covariance = _covariance(self.sd, self.keys, self.keys) + np.diag(self.noise)
        return np.asarray(linalg.cho_solve(linalg.cho_factor(covariance, lower=True), np.eye(len(self.keys))))

    @cached_property
    def weights(self) -> FloatArray:
        """The inverse times the errors: shape (n,)."""
        return np.asarray(self.inverse @ self.error)

    def append(self, keys: KeyArray, error: FloatArray) -> GroupEffects:
        """Return the process that also knows the errors of k other runs.

        One that is far off and alone counts less; see `student_t_weights`.
        """
        prior = _covariance(self.sd, keys, keys)
        noise = self.sd[-1] ** 2 / student_t_weights(error, prior, float(self.sd[-1] ** 2))
        gain = self.inverse @ _covariance(self.sd, self.keys, keys)
        posterior = prior + np.diag(noise) - _covariance(self.sd, keys, self.keys) @ gain
        own = np.asarray(linalg.inv(posterior))
        joint = np.append(self.error, error), np.append(self.noise, noise)
        other = GroupEffects(self.sd, np.vstack([self.keys, keys]), *joint)
        vars(other)["inverse"] = np.block([[self.inverse + gain @ own @ gain.T, -gain @ own], [-own @ gain.T, own]])
        return other

    def knows_stack(self, keys: KeyArray) -> npt.NDArray[np.bool_]:
        """Return whether runs of each job's owner with its framework are known: shape (n_query,)."""
        return np.isin(keys[:, _STACK], self.keys[:, _STACK])

    def predict(self, keys: KeyArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the error of a new measurement: shapes (n_query,)."""
        first, back = _distinct(keys)
        keys = keys[first]
        known = np.column_stack([np.where(np.isin(q, k), q, 0) for q, k in zip(keys.T, self.keys.T, strict=True)])
        kind, place = _distinct(known.astype(np.uint64))
        distinct, back = known[kind], place[back]
        cross = _covariance(self.sd, distinct, self.keys)
        explained = np.einsum("ij,ij->i", cross @ self.inverse, cross)
        variance = np.maximum((self.sd**2).sum() - explained, self.sd[-1] ** 2)
        return (cross @ self.weights)[back], np.sqrt(variance)[back]


def _distinct(keys: KeyArray) -> tuple[RowIndex, RowIndex]:
    """Return a row of each distinct one, and the place of each row among these."""
    multiplier = np.random.default_rng(0).integers(1, 2**63, keys.shape[1], dtype=np.uint64) | np.uint64(1)
    _, first, back = np.unique((keys * multiplier).sum(axis=1), return_index=True, return_inverse=True)
    return first, back


def _covariance(sd: FloatArray, keys: KeyArray, other: KeyArray) -> FloatArray:
    total = np.zeros((len(keys), len(other)))
    for size, one, two in zip(sd, keys.T, other.T, strict=False):
        total += size**2 * (one[:, None] == two)
    return total


def select_runs(keys: KeyArray, limit: int = MAX_POINT) -> RowIndex:
    """Return the runs that effects are conditioned on: as many of each configuration as `limit` allows, in order."""
    rank = pd.Series(keys[:, -2]).groupby(keys[:, -2]).cumcount().to_numpy()
    order = np.argsort(rank, kind="stable")
    return np.asarray(np.sort(order[:limit]))


def fit_standard_deviations(keys: KeyArray, error: FloatArray) -> FloatArray:
    """Return the standard deviations of `TERMS` and of the noise, of greatest posterior density.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.1.
    """
    rows = np.random.default_rng(0).permutation(select_runs(keys))[:N_SEARCH_POINT]
    keys, error = keys[rows], np.clip(error[rows], -ERROR_CLIP, ERROR_CLIP)
    same = [(one[:, None] == one).astype(np.float64) for one in keys.T]
    same.append(np.eye(len(rows)))
    prior: FloatArray = np.log(np.array([*TERMS.values(), NOISE_SD]))

    def loss(log_sd: FloatArray) -> tuple[float, FloatArray]:
        variance = np.exp(2.0 * log_sd)
        covariance = sum(size * part for size, part in zip(variance, same, strict=True))
        factor = linalg.cho_factor(covariance, lower=True)
        weights = linalg.cho_solve(factor, error)
        slope = linalg.cho_solve(factor, np.eye(len(error))) - np.outer(weights, weights)
        distance = (log_sd - prior) / PRIOR_LOG_SD
        value = np.log(np.diag(factor[0])).sum() + 0.5 * error @ weights + 0.5 * distance @ distance
        gradient = [size * np.vdot(slope, part) for size, part in zip(variance, same, strict=True)]
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


def condition_effects(sd: FloatArray, keys: KeyArray, error: FloatArray) -> GroupEffects:
    """Return the effects given standardised errors of training runs, thinned and winsorised."""
    rows = select_runs(keys)
    clipped = np.clip(error[rows], -ERROR_CLIP, ERROR_CLIP)
    return GroupEffects(sd, keys[rows], clipped, np.full(len(rows), sd[-1] ** 2))
