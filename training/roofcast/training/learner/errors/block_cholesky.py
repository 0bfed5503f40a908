"""Cholesky factors of a covariance that is zero between blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from roofcast.features.queries import BoolArray, FloatArray, IndexArray
from roofcast.training.learner.errors.lazy_scipy import linalg


class Points(Protocol):
    """What a covariance reads of n rows."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def take(self, rows: IndexArray | BoolArray) -> Self:
        """Return some rows."""

    def append(self, other: Self) -> Self:
        """Return these rows, then the others."""


P = TypeVar("P", bound=Points)


@dataclass(frozen=True, slots=True)
class BlockCholesky:
    """Lower Cholesky factors of the blocks of a covariance of n points, each with the rows that it is of."""

    blocks: tuple[tuple[IndexArray, FloatArray], ...]

    @classmethod
    def factorise(
        cls, points: P, code: IndexArray, covariance: Callable[[P, P], FloatArray], noise: FloatArray
    ) -> Self:
        """Return the factors of the covariance of points plus variances of noise; `code` is the block of each."""
        blocks = []
        for rows in (np.flatnonzero(code == i) for i in range(code.max(initial=-1) + 1)):
            block = covariance(points.take(rows), points.take(rows))
            block[np.diag_indices(len(rows))] += noise[rows]
            blocks.append((rows, np.asarray(np.linalg.cholesky(block), dtype=np.float64)))
        return cls(tuple(blocks))

    def solve(self, values: FloatArray) -> FloatArray:
        """Return the inverse covariance times values: shape (n,) or (n, k)."""
        result = np.empty_like(values)
        for rows, factor in self.blocks:
            result[rows] = linalg.cho_solve((factor, True), values[rows], check_finite=False)
        return result

    def squared_norms(self, values: FloatArray) -> FloatArray:
        """Return ``v K ** -1 v`` of each column v, K the covariance: shape (n, k) to shape (k,)."""
        total = np.zeros(values.shape[1])
        for rows, factor in self.blocks:
            columns = np.flatnonzero(values[rows].any(axis=0))
            if not len(columns):
                continue
            half = linalg.solve_triangular(factor, values[np.ix_(rows, columns)], lower=True, check_finite=False)
            total[columns] += (half**2).sum(axis=0)
        return total

    def inverse(self) -> FloatArray:
        """Return the inverse covariance: shape (n, n)."""
        n = sum(len(rows) for rows, _ in self.blocks)
        result = np.zeros((n, n))
        for rows, factor in self.blocks:
            half = linalg.lapack.dpotri(factor, lower=1)[0]
            block = half + half.T
            block[np.diag_indices(len(rows))] *= 0.5
            result[np.ix_(rows, rows)] = block
        return result
