"""The predictive distribution of queries: medians, standard deviations and conformal intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.engine.estimate import Estimate
from roofcast.training.learner.errors.error_distribution import GroupedConformal

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predictive distribution of each metric; frames have shape (n_query, n_metric), columns the metrics.

    The logarithm of a metric is symmetric about that of its median. Its error in standard deviations has the
    conformal distribution of held-out lineages.

    Parameters
    ----------
    median
        In SI units.
    log_sd
        Standard deviation of the logarithm; 0 where the metric is certain.
    errors
        Conformal distribution of standardised errors, by metric.
    estimate
        The analytic estimate.
    features : shape (n_query, n_feature)
        Columns of the learner.
    """

    median: pd.DataFrame
    log_sd: pd.DataFrame
    errors: Mapping[str, GroupedConformal]
    estimate: Estimate
    features: FloatArray

    def interval(self, level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the bounds that hold an unseen LLM's measurement with probability `level`.

        Raises
        ------
        OutOfRangeError
            If there are too few measured lineages for `level`.
        """
        half = self.log_sd.to_numpy() * [self.errors[str(metric)].quantile(level) for metric in self.log_sd]
        low, high = (self.median.to_numpy() * np.exp(sign * half) for sign in (-1.0, 1.0))
        return self._table(low), self._table(high)

    def widen(self, variance: Mapping[str, FloatArray]) -> Prediction:
        """Return the distribution with a variance added to that of each metric's logarithm, unless it is certain."""
        none = np.zeros(len(self.log_sd))
        added = np.stack([variance.get(str(metric), none) for metric in self.log_sd], axis=1)
        own = self.log_sd.to_numpy()
        return replace(self, log_sd=self._table(np.where(own > 0, np.sqrt(own**2 + added), own)))

    def _table(self, values: FloatArray) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.median.index, columns=self.median.columns, copy=False)

    def p_below(self, metric: str, limit: FloatArray | float, rows: slice = slice(None)) -> FloatArray:
        """Return the probability that a metric of some queries is at most a limit, in its SI unit: shape (n_row,)."""
        median, sd = (table[metric].to_numpy()[rows] for table in (self.median, self.log_sd))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.log(limit / median) / sd
        return np.where(sd > 0, self.errors[metric].p_below(z), np.asarray(median <= limit, dtype=float))
