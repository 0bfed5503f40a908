"""Lookup tables of the random effects: posterior mean and variance of a query as sums of entries for its keys.

Nearly all of the covariance is a sum over terms of a variance wherever two keys agree, so mean and variance are sums
of entries for keys and for pairs of keys. Only the workload's effect needs training points themselves: the few of the
query's own configuration.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from roofcast.features.descriptors.config_hash import HashArray
from roofcast.training.learner.errors.group_keys import TARGET_STACK, BoolArray, FloatArray, GroupKeys, IndexArray
from roofcast.training.learner.errors.lazy_scipy import sparse

LENGTH_SCALE: Final = 1.4
"""Length scale of the workload kernel, in natural logarithms of tokens and requests: a factor of four."""


def workload_kernel(distance: FloatArray) -> FloatArray:
    """Return the squared-exponential correlation at a distance: shape (..., n_coordinate) to shape (...)."""
    return np.asarray(np.exp(-0.5 * (distance**2).sum(axis=-1) / LENGTH_SCALE**2), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class LookupTables:
    """Posterior of a process for queries about `TARGET_STACK`, in parts that add up.

    The near effects are that of the last term and the workload's; all others are far effects. With K the covariance
    of the training points' errors and k that with a query, a sum of terms, the entries are the terms of the mean
    ``k K ** -1 errors`` and of the variance explained ``k K ** -1 k``.

    - `level`: shape (n_level,). Keys of far effects that training points have, sorted.
    - `mean`: shape (n_level + 1,). Contribution of each level to the mean; the last is 0, for unknown keys.
    - `cell`: shape (n_cell, n_far). Levels of each set of points that share all far keys and the stack.
    - `cell_covariance`: shape (n_cell, n_far). Covariance of its points with queries that share a level.
    - `cell_precision`: shape (n_cell * (n_cell + 1) / 2,). Sums of the inverse covariance over the points of two
      cells, lower triangle row by row.
    - `explained`: shape (n_level + 1, n_level + 1). Contribution of each pair of levels to the variance explained;
      computed from the cells, which are far fewer.
    - `near_variance`: Variances of the two near effects.
    - `signature`: shape (n_signature,). Hashes of all keys of a training point, sorted; the arrays that follow have a
      row for each.
    - `configuration`: shape (n_configuration,). Keys of the last term that training points have, sorted.
    - `workload`: shape (n_signature, n_most, n_coordinate). Workloads of the training points of the same last key.
    - `weight`, `cross`: shape (n_signature, n_most). Factors of near covariance with each of them in the mean and in
      the variance explained; 0 where there is none.
    - `precision`: shape (n_signature, n_most, n_most). Factors of near covariance with two of them in the variance
      explained.
    """

    level: HashArray
    mean: FloatArray
    cell: IndexArray
    cell_covariance: FloatArray
    cell_precision: FloatArray
    near_variance: tuple[float, float]
    signature: HashArray
    configuration: HashArray
    workload: FloatArray
    weight: FloatArray
    cross: FloatArray
    precision: FloatArray
    explained: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sum the cells of each pair of levels."""
        n_cell = len(self.cell)
        lower = np.zeros((n_cell, n_cell))
        lower[np.tril_indices(n_cell)] = self.cell_precision
        covariance = np.zeros((len(self.level) + 1, n_cell))
        covariance[self.cell.T, np.arange(n_cell)] = self.cell_covariance.T
        precision = lower + np.tril(lower, -1).T
        object.__setattr__(self, "explained", covariance @ precision @ covariance.T)

    def look_up(self, keys: HashArray, workload: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return mean, variance explained and whether the tables hold the query: shapes (n_query,).

        They do not where training points share the last key, but none has all keys.
        """
        signatures = key_signatures(keys)
        _, first, back = np.unique(signatures, return_index=True, return_inverse=True)
        level, is_level = _search(self.level, keys_by_term(keys[first, :-1]))
        level[~is_level] = len(self.level)
        row, is_known = _search(self.signature, signatures[first])
        mean = self.mean[level].sum(axis=1)[back]
        explained = self.explained[level[:, :, None], level[:, None, :]].sum(axis=(1, 2))[back]
        near = np.flatnonzero(is_known[back])
        at = row[back[near]]
        distance = workload[near, None, :] - self.workload[at]
        covariance = self.near_variance[0] + self.near_variance[1] * workload_kernel(distance)
        mean[near] += (covariance * self.weight[at]).sum(axis=1)
        explained[near] += (covariance * self.cross[at]).sum(axis=1)
        explained[near] += np.einsum("ni,nij,nj->n", covariance, self.precision[at], covariance)
        return mean, explained, (is_known | ~_search(self.configuration, keys[first, -1])[1])[back]


def build_lookup_tables(
    points: GroupKeys,
    covariance: FloatArray,
    near_variance: tuple[float, float],
    inverse: FloatArray,
    weights: FloatArray,
) -> LookupTables:
    """Return the tables of a process, for queries about `TARGET_STACK`.

    - `covariance`: shape (n, n_term). Of each of n training points with queries that share its key of a term; of the
      last term, the same for all.
    - `inverse`: shape (n, n). Of the covariance of the training points' errors.
    - `weights`: shape (n,). That inverse times the errors.
    """
    keys, n_point, n_far = points.keys, len(points.keys), points.keys.shape[1] - 1
    level, of_point = np.unique(keys_by_term(keys[:, :-1]), return_inverse=True)
    start = np.arange(0, n_point * n_far + 1, n_far)
    has = sparse.csr_array((np.ones(n_point * n_far), of_point.ravel(), start), shape=(n_point, len(level)))
    shared = sparse.csr_array((covariance[:, :-1].ravel(), of_point.ravel(), start), shape=has.shape)
    solved = shared.T @ inverse
    sets = np.column_stack([of_point.reshape(n_point, n_far), points.stack == TARGET_STACK])
    _, of_cell, cell_of_point = np.unique(sets, axis=0, return_index=True, return_inverse=True)
    in_cell = sparse.csr_array(
        (np.ones(n_point), cell_of_point.ravel(), np.arange(n_point + 1)), (n_point, len(of_cell))
    )
    cell_precision = np.asarray(in_cell.T @ (in_cell.T @ inverse).T)
    signature, first = np.unique(key_signatures(keys), return_index=True)
    configuration, members = _members(keys[:, -1])
    row = members[np.searchsorted(configuration, keys[first, -1])]
    is_row = row >= 0
    return LookupTables(
        level=level,
        mean=np.append(shared.T @ weights, 0.0),
        cell=sets[of_cell, :-1],
        cell_covariance=covariance[of_cell, :-1],
        cell_precision=cell_precision[np.tril_indices(len(of_cell))],
        near_variance=near_variance,
        signature=signature,
        configuration=configuration,
        workload=points.workload[row],
        weight=weights[row] * is_row,
        cross=2 * np.take_along_axis(has[first] @ solved, row, axis=1) * is_row,
        precision=inverse[row[:, :, None], row[:, None, :]] * (is_row[:, :, None] & is_row[:, None, :]),
    )


@dataclass(frozen=True, slots=True)
class Projection:
    """Product of the covariance of queries about `TARGET_STACK` with the training points, and a matrix.

    - `level`: shape (n_level,). Keys of far effects that training points have, sorted.
    - `far`: shape (n_level + 1, k). Contribution of each level to the product; the last is 0, for unknown keys.
    - `configuration`, `member`: Keys of the last term, sorted, and the training points of each, padded with -1.
    - `workload`, `matrix`: shape (n, n_coordinate), shape (n, k). Of the n training points.
    - `near_variance`: Variances of the two near effects; see `LookupTables`.
    """

    level: HashArray
    far: FloatArray
    configuration: HashArray
    member: IndexArray
    workload: FloatArray
    matrix: FloatArray
    near_variance: tuple[float, float]

    def apply(self, keys: HashArray, workload: FloatArray) -> FloatArray:
        """Return the product of queries: shape (n_query, k)."""
        product = np.zeros((len(keys), self.matrix.shape[1]))
        for key in keys_by_term(keys[:, :-1]).T:
            level, is_level = _search(self.level, key)
            product += self.far[np.where(is_level, level, len(self.level))]
        row, is_row = _search(self.configuration, keys[:, -1])
        near = np.flatnonzero(is_row)
        for member in self.member[row[near]].T:
            at = near[member >= 0]
            point = member[member >= 0]
            kernel = workload_kernel(workload[at] - self.workload[point])
            product[at] += (self.near_variance[0] + self.near_variance[1] * kernel)[:, None] * self.matrix[point]
        return product


def build_projection(
    points: GroupKeys, covariance: FloatArray, near_variance: tuple[float, float], matrix: FloatArray
) -> Projection:
    """Return the projection by a matrix, shape (n, k); the other parameters are as of `build_lookup_tables`."""
    level, of_point = np.unique(keys_by_term(points.keys[:, :-1]), return_inverse=True)
    far = np.zeros((len(level) + 1, matrix.shape[1]))
    for at, size in zip(of_point.reshape(covariance[:, :-1].shape).T, covariance.T, strict=False):
        np.add.at(far, at, size[:, None] * matrix)
    return Projection(level, far, *_members(points.keys[:, -1]), points.workload, matrix, near_variance)


def _members(keys: HashArray) -> tuple[HashArray, IndexArray]:
    distinct, of_row, size = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(of_row, kind="stable")
    rank = np.arange(len(keys)) - (np.cumsum(size) - size)[of_row[order]]
    members = np.full((len(distinct), size.max(initial=0)), -1, dtype=np.intp)
    members[of_row[order], rank] = order
    return distinct, members


def keys_by_term(keys: HashArray) -> HashArray:
    """Return the keys, shape (n, n_term), made distinct between terms."""
    return keys ^ np.arange(keys.shape[1], dtype=np.uint64)


def key_signatures(keys: HashArray) -> HashArray:
    """Return one hash of all keys of a row: the keys times odd numbers, added modulo 2 ** 64."""
    return np.asarray(keys @ np.arange(1, 2 * keys.shape[1], 2, dtype=np.uint64), dtype=np.uint64)


def _search(values: HashArray, wanted: HashArray) -> tuple[IndexArray, BoolArray]:
    if not len(values):
        return np.zeros(wanted.shape, dtype=np.intp), np.zeros(wanted.shape, dtype=bool)
    index = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return index, values[index] == wanted
