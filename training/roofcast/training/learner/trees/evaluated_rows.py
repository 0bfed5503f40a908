"""Rows that the trees evaluate for a query: its own statistic, lower quantiles and the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.descriptors.descriptor_table import QUANTILE

FloatArray = npt.NDArray[np.float64]

_QUANTILES: Final = tuple(sorted(set(QUANTILE.values())))

QUANTILE_INDEX: Final = FEATURE_NAMES.index("workload.quantile")
IS_MEAN_INDEX: Final = FEATURE_NAMES.index("workload.is_mean")


def at_quantile(features: FloatArray, quantile: float) -> FloatArray:
    """Return the learner's columns, shape (n, n_feature), with another quantile; means stay means."""
    changed = features.copy()
    changed[features[:, IS_MEAN_INDEX] <= 0, QUANTILE_INDEX] = quantile
    return changed


@dataclass(frozen=True, slots=True)
class EvaluatedRows:
    """Rows that the trees evaluate: the queries, then their lower quantiles, then their means.

    `lower` holds the queries of each block of lower quantiles, `means` those of the block of means.
    """

    features: FloatArray
    lower: tuple[npt.NDArray[np.intp], ...]
    means: npt.NDArray[np.intp]

    @classmethod
    def from_features(cls, features: FloatArray, *, with_means: bool) -> Self:
        """Return the rows of queries, shape (n_query, n_feature), with their means or without."""
        quantile = features[:, QUANTILE_INDEX]
        lower = [(q, rows) for q in _QUANTILES if len(rows := np.flatnonzero(quantile > q))]
        means = np.flatnonzero((features[:, IS_MEAN_INDEX] < 0.5) & with_means)
        as_means = features[means]
        as_means[:, [IS_MEAN_INDEX, QUANTILE_INDEX]] = 1.0, 0.5
        parts = [features, *(at_quantile(features[rows], q) for q, rows in lower), as_means]
        return cls(np.concatenate(parts), tuple(rows for _, rows in lower), means)

    def repeat(self, values: FloatArray) -> FloatArray:
        """Return the values of queries, shape (n_query,), for each evaluated row."""
        return np.concatenate([values, *(values[rows] for rows in self.lower), values[self.means]])


def rearrange(log_correction: FloatArray, rows: EvaluatedRows, sign: int) -> FloatArray:
    """Return the queries' log corrections, no less for a quantile than for a lower one.

    Absolute loss refits leaves after the trees have grown, which breaks monotone constraints, so the correction of a
    quantile is the greatest of those up to it. The estimate rises with the quantile by itself.

    References
    ----------
    V. Chernozhukov, I. Fernandez-Val and A. Galichon, "Quantile and Probability Curves Without Crossing",
    Econometrica 2010.
    """
    signed = sign * log_correction
    start = len(signed) - sum(map(len, rows.lower)) - len(rows.means)  # the number of queries
    greatest = signed[:start]
    for queries in rows.lower:
        greatest[queries] = np.maximum(greatest[queries], signed[start : start + len(queries)])
        start += len(queries)
    return sign * greatest
