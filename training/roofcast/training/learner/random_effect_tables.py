"""Tables of a process of random effects: what it answers, by the keys of a question.

Nearly all of its covariance is a sum over terms of a variance wherever two keys agree. So mean and variance of a
question are sums of entries for its keys and for pairs of them, which are worked out once. Only what depends on the
workload needs anchors themselves: the few of the question's own configuration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotri
from scipy.sparse import csr_array

from roofcast.features.descriptors.config_hash import HashArray
from roofcast.training.learner.group_keys import GroupKeys

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.intp]

LENGTH: Final = 1.4
"""Distance of two workloads, in natural logarithms of tokens and requests, at which the effect has faded to 0.6:
a factor of four."""


def fading(distance: FloatArray) -> FloatArray:
    """Return how much of the workload's effect is left at a distance: shape (..., n_size) to shape (...)."""
    return np.asarray(np.exp(-0.5 * (distance**2).sum(axis=-1) / LENGTH**2), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Tables:
    """What a process answers, in parts that add up.

    Far effects are all but the last term's and the workload's; these two are near ones.

    Parameters
    ----------
    level : shape (n_level,)
        Keys of far effects that anchors have, sorted.
    pull : shape (n_level + 1,)
        What each adds to the mean; the last is nothing, for keys that no anchor has.
    known : shape (n_level + 1, n_level + 1)
        What each pair adds to the variance explained.
    variance
        Of the two near effects.
    configuration : shape (n_configuration,)
        Signatures of the anchors, sorted; the arrays that follow have a row for each.
    own : shape (n_own,)
        Keys of the last term that anchors have, sorted.
    workload : shape (n_configuration, n_most, n_size)
        Of the anchors of the same last key.
    weight, cross : shape (n_configuration, n_most)
        What near covariance with each of them adds to the mean and to the variance explained; 0 where there is none.
    precision : shape (n_configuration, n_most, n_most)
        What near covariance with two of them adds to the variance explained.
    """

    level: HashArray
    pull: FloatArray
    known: FloatArray
    variance: tuple[float, float]
    configuration: HashArray
    own: HashArray
    workload: FloatArray
    weight: FloatArray
    cross: FloatArray
    precision: FloatArray

    def look_up(self, keys: HashArray, workload: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the mean of each question, the variance that anchors explain, and whether the tables can tell.

        They cannot where anchors share the last key, but none has all keys. Arrays have shape (n_question,).
        """
        signature = _signature(keys)
        _, first, back = np.unique(signature, return_index=True, return_inverse=True)
        level, is_level = _found(self.level, _by_term(keys[first, :-1]))
        level[~is_level] = len(self.level)
        place, is_known = _found(self.configuration, signature[first])
        mean = self.pull[level].sum(axis=1)[back]
        explained = self.known[level[:, :, None], level[:, None, :]].sum(axis=(1, 2))[back]
        near = np.flatnonzero(is_known[back])
        at = place[back[near]]
        covariance = self.variance[0] + self.variance[1] * fading(workload[near, None, :] - self.workload[at])
        mean[near] += (covariance * self.weight[at]).sum(axis=1)
        explained[near] += (covariance * self.cross[at]).sum(axis=1)
        explained[near] += np.einsum("ni,nij,nj->n", covariance, self.precision[at], covariance)
        return mean, explained, (is_known | ~_found(self.own, keys[first, -1])[1])[back]


def build_tables(
    anchors: GroupKeys, share: FloatArray, of_workload: float, lower: FloatArray, weights: FloatArray
) -> Tables:
    """Return the tables of a process, for questions of `YOURS`.

    Parameters
    ----------
    anchors
        Of n anchors.
    share : shape (n_anchor, n_term)
        Covariance of each anchor with questions that share its key of a term; of the last, the same for all.
    of_workload
        Variance of the workload's effect.
    lower : shape (n_anchor, n_anchor)
        Cholesky factor of the covariance of the anchors' errors, zero above the diagonal.
    weights : shape (n_anchor,)
        Its inverse times the errors.
    """
    keys, workload = anchors.keys, anchors.workload
    n_anchor, n_far = len(keys), keys.shape[1] - 1
    level, of_anchor = np.unique(_by_term(keys[:, :-1]), return_inverse=True)
    rows = np.arange(0, n_anchor * n_far + 1, n_far)
    has = csr_array((np.ones(n_anchor * n_far), of_anchor.ravel(), rows), shape=(n_anchor, len(level)))
    shared = csr_array((share[:, :-1].ravel(), of_anchor.ravel(), rows), shape=has.shape)
    half = dpotri(lower, lower=1)[0]
    inverse = half + half.T
    inverse[np.diag_indices(n_anchor)] *= 0.5
    pulled = shared.T @ inverse
    configuration, first = np.unique(_signature(keys), return_index=True)
    own, members = _members(keys[:, -1])
    row = members[np.searchsorted(own, keys[first, -1])]
    is_row = row >= 0
    return Tables(
        level=level,
        pull=np.append(shared.T @ weights, 0.0),
        known=np.pad(shared.T @ pulled.T, (0, 1)),
        variance=(float(share[0, -1]), of_workload),
        configuration=configuration,
        own=own,
        workload=workload[row],
        weight=weights[row] * is_row,
        cross=2 * np.take_along_axis(has[first] @ pulled, row, axis=1) * is_row,
        precision=inverse[row[:, :, None], row[:, None, :]] * (is_row[:, :, None] & is_row[:, None, :]),
    )


def _members(keys: HashArray) -> tuple[HashArray, IndexArray]:
    """Return the keys that there are, shape (n_key,), and the rows of each, filled up with -1."""
    own, of_row, size = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(of_row, kind="stable")
    place = np.arange(len(keys)) - (np.cumsum(size) - size)[of_row[order]]
    members = np.full((len(own), size.max(initial=0)), -1, dtype=np.intp)
    members[of_row[order], place] = order
    return own, members


def _by_term(keys: HashArray) -> HashArray:
    """Return the keys, shape (n, n_term), such that those of two terms differ even if they look alike."""
    return keys ^ np.arange(keys.shape[1], dtype=np.uint64)


def _signature(keys: HashArray) -> HashArray:
    """Return one key for all of a row: hashes times odd numbers, added modulo 2 ** 64."""
    return np.asarray(keys @ np.arange(1, 2 * keys.shape[1], 2, dtype=np.uint64), dtype=np.uint64)


def _found(known: HashArray, asked: HashArray) -> tuple[IndexArray, BoolArray]:
    """Return where each key stands among sorted ones, and whether it does."""
    place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return place, known[place] == asked
