"""Group keys and workload coordinates: the inputs of the random-effects covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.descriptors.config_hash import HashArray, config_hashes, joint_hashes
from roofcast.features.queries import Queries, QueryTable, descriptor_arrays, query_index

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.intp]

TERMS: Final[dict[tuple[str, ...], float]] = {
    ("accelerator",): 0.2,
    ("accelerator", "engine", "load"): 0.4,
    ("accelerator", "engine", "precision"): 0.3,
    ("kind", "engine", "accelerator", "precision"): 0.3,
    ("model", "engine", "accelerator"): 0.3,
    ("model", "engine", "accelerator", "precision", "load"): 0.3,
    ("model", "engine", "accelerator", "precision", "load", "split"): 0.3,
}
"""Terms of the crossed random effects, each a grouping, and the prior median of its standard deviation.

All are within one accelerator: what was measured on a generation says little about errors on another, see P8. So the
covariance has a block for each accelerator; the first term is its key.
"""

STACK_TERMS: Final[dict[tuple[str, ...], float]] = {
    ("accelerator",): 0.3,
    ("accelerator", "engine", "load"): 0.3,
    ("model", "engine", "accelerator", "precision", "load"): 0.3,
}
"""Terms, some of `TERMS`, that have a further effect within one stack (engine build, settings, way of measuring)."""

STACK_TERM_INDEX: Final = tuple(tuple(TERMS).index(term) for term in STACK_TERMS)

WORKLOAD_SD: Final = 0.5
NOISE_SD: Final = 0.4
"""Prior medians of the standard deviation of the workload's effect and of the noise."""

TARGET_STACK: Final = 0
"""Key of the stack that queries are about: the user's own."""

STACK_FACTOR: Final = np.uint64(0x9E3779B1)
"""Odd number that mixes the key of a stack into other keys."""

CONFIGURATION: Final = tuple(TERMS)[-1]
"""Most specific grouping; the workload kernel applies only within it."""

MAX_TRAINING_POINT: Final = 3000
"""Training points of a process at most; its factor and its tables grow as their square, its fit as their cube."""

WORKLOAD_GRID: Final = 0.5 * float(np.log(2))
"""Grid of the workload coordinates, in natural logarithms: half an octave."""

DATE_RATE: Final = 2.8
"""Distance of workloads a year apart: in half a year software moves as much as a load times four."""

MEAN_DISTANCE: Final = 0.7
"""Distance of a mean from a percentile of the same workload."""

N_COORDINATE: Final = 5
LOAD: Final = 2
"""Workload coordinates, and the index of the load among them."""


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """Group keys and workload coordinates of n rows.

    - `keys`: shape (n, n_term). Hash of each row's level in each of `TERMS`.
    - `workload`: shape (n, N_COORDINATE). Natural logarithms of input length, output length and load, the date times
      `DATE_RATE`, and the statistic, all but the last rounded to `WORKLOAD_GRID`.
    - `stack`: shape (n,). Key of the stack that measured the row; `TARGET_STACK` for the user's own and for queries.
    """

    keys: HashArray
    workload: FloatArray
    stack: HashArray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: IndexArray | BoolArray) -> GroupKeys:
        """Return some rows."""
        return GroupKeys(self.keys[rows], self.workload[rows], self.stack[rows])

    def append(self, other: GroupKeys) -> GroupKeys:
        """Return these rows, then the others."""
        keys, workload = np.vstack([self.keys, other.keys]), np.vstack([self.workload, other.workload])
        return GroupKeys(keys, workload, np.append(self.stack, other.stack))

    def cells(self) -> HashArray:
        """Return the hash of each row's stack, configuration and workload: shape (n,)."""
        workload = (self.workload + 0.0).view(np.uint64)  # not -0.0
        table = np.hstack([self.stack[:, None], self.keys[:, -1:], workload])
        return np.asarray(pd.util.hash_pandas_object(pd.DataFrame(table), index=False))

    def within_stacks(self) -> GroupKeys:
        """Return the same rows with keys that rows of other stacks do not share; those of `TARGET_STACK` stay."""
        return GroupKeys(self.keys ^ (self.stack[:, None] * STACK_FACTOR), self.workload, self.stack)

    def on_target_stack(self) -> GroupKeys:
        """Return the same rows as queries about `TARGET_STACK`."""
        return GroupKeys(self.keys, self.workload, np.full_like(self.stack, TARGET_STACK))

    def on_stacks(self, stacks: pd.Series, index: pd.Index) -> GroupKeys:
        """Return the same rows, which have this index, about stacks; an empty or no name means `TARGET_STACK`."""
        names = stacks.reindex(index).fillna("").to_numpy(dtype=object)
        return GroupKeys(self.keys, self.workload, stack_keys(names))


def build_group_keys(descriptors: QueryTable, stacks: pd.Series | None = None) -> GroupKeys:
    """Return the group keys of rows.

    `stacks` names each row's stack, aligned by index; empty or missing, or None for all, means `TARGET_STACK`.
    """
    d = descriptor_arrays(descriptors)
    keys = joint_hashes(config_hashes(d), tuple(TERMS))
    rows = GroupKeys(keys, workload_coordinates(d), np.full(len(keys), TARGET_STACK, dtype=np.uint64))
    return rows if stacks is None else rows.on_stacks(stacks, query_index(descriptors))


def workload_coordinates(d: Queries) -> FloatArray:
    """Return the workload of each row as in `GroupKeys`: shape (n_row, N_COORDINATE)."""
    load = np.where(np.isnan(d["workload.concurrency"]), d["workload.request_rate_per_s"], d["workload.concurrency"])
    sizes = [d["workload.n_input_token"], d["workload.n_output_token"], np.where(np.isnan(load), 1.0, load)]
    continuous = np.stack([*np.log(sizes), DATE_RATE * d["config.date"]], axis=1)
    gridded = np.rint(continuous / WORKLOAD_GRID) * WORKLOAD_GRID
    return np.column_stack([gridded, MEAN_DISTANCE * (d["workload.is_mean"] == 1)])


def stack_keys(names: npt.NDArray[np.object_]) -> HashArray:
    """Return the key of each stack; `TARGET_STACK` for an empty name."""
    return np.where(names == "", np.uint64(TARGET_STACK), pd.util.hash_array(names))


def select_training_points(X: GroupKeys, limit: int = MAX_TRAINING_POINT) -> IndexArray:
    """Return the rows that random effects are conditioned on: up to four of each configuration of each stack.

    They are the row of the least load, the row of the median load and the row after it, and the row of the greatest.
    The two neighbours separate noise from the effect that fades with distance. If they are more than `limit`,
    `select_informative_rows` chooses among them.
    """
    table = pd.DataFrame({"key": X.keys[:, -1], "stack": X.stack, "load": X.workload[:, LOAD]})
    table = table.sort_values(["key", "stack", "load"], kind="stable")
    groups = table.groupby(["key", "stack"])["load"]
    last, rank = groups.transform("size").to_numpy() - 1, groups.cumcount().to_numpy()
    is_selected = np.isin(rank - last // 2, (0, 1)) | (rank == 0) | (rank == last)
    rows = np.sort(table.index.to_numpy()[is_selected])
    return rows if len(rows) <= limit else np.sort(rows[select_informative_rows(X.take(rows), limit)])


def select_informative_rows(X: GroupKeys, n: int) -> IndexArray:
    """Return n rows, greedily those whose levels have the greatest variance left; `TARGET_STACK` comes first.

    Notes
    -----
    A level of prior variance v that has k of the rows keeps ``v / (1 + k v / noise)``, levels taken one by one. The
    sum over levels approximates the conditional variance by which a pivoted Cholesky decomposition picks. It takes n
    steps over the rows that share a level instead of n ** 2 products a row.

    References
    ----------
    A. Krause, A. Singh and C. Guestrin, "Near-optimal sensor placements in Gaussian processes", JMLR 9, 2008; M. L.
    Fisher, G. L. Nemhauser and L. A. Wolsey, "An analysis of approximations for maximizing submodular set functions",
    1978 (the greedy rule).
    """
    keys = [*X.keys.T, *(X.keys[:, i] ^ (X.stack * STACK_FACTOR) for i in STACK_TERM_INDEX)]
    variances = np.array([*TERMS.values(), *STACK_TERMS.values()]) ** 2
    score = np.where(X.stack == TARGET_STACK, 2.0, 1.0) * variances.sum()
    members, of_row = [], []
    for key in keys:
        _, code, size = np.unique(key, return_inverse=True, return_counts=True)
        members.append(np.split(np.argsort(code, kind="stable"), np.cumsum(size)[:-1]))
        of_row.append(code)
    counts = [np.zeros(len(rows)) for rows in members]
    selected = np.empty(n, dtype=np.intp)
    for i in range(n):
        selected[i] = row = int(score.argmax())
        score[row] = -np.inf
        for variance, rows, code, count in zip(variances, members, of_row, counts, strict=True):
            level = code[row]
            left = [variance / (1 + k * variance / NOISE_SD**2) for k in (count[level], count[level] + 1)]
            score[rows[level]] += left[1] - left[0]
            count[level] += 1
    return selected
