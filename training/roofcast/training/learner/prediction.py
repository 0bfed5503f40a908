"""The predictive distribution of queries: medians, standard deviations and conformal intervals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import FloatArray, build_frame
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predictive distribution of each metric; arrays have shape (n_query,).

    The logarithm of a metric is symmetric about that of its median, up to the bound of physics, where all that lies
    beyond is gathered. Its error in standard deviations has the conformal distribution of held-out errors.

    - `medians`: By metric, in SI units.
    - `log_sds`: Standard deviations of the logarithms by metric; 0 where the metric is certain.
    - `errors`: Conformal distribution of standardised errors, by metric.
    - `physical`: Least latency, or greatest throughput, that physics allows, by metric; a median that measurements
      move beyond it is its own bound.
    - `estimate`: The analytic estimate.
    - `features`: shape (n_query, n_feature). Columns of the learner.
    - `index`: Of the queries.
    """

    medians: Mapping[str, FloatArray]
    log_sds: Mapping[str, FloatArray]
    errors: Mapping[str, GroupedConformal]
    physical: Mapping[str, FloatArray]
    estimate: Estimate
    features: FloatArray
    index: pd.Index

    @property
    def median(self) -> pd.DataFrame:
        """Table of the medians: shape (n_query, n_metric)."""
        return self._table(self.medians)

    @property
    def log_sd(self) -> pd.DataFrame:
        """Table of the standard deviations: shape (n_query, n_metric)."""
        return self._table(self.log_sds)

    def interval(self, level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the tables of `bounds`: shapes (n_query, n_metric)."""
        low, high = self.bounds(level)
        return self._table(low), self._table(high)

    def bounds(self, level: float) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
        """Return the bounds, by metric, that hold a measurement of an unseen LLM or stack with probability `level`.

        Raises `OutOfRangeError` if there are too few measured lineages for `level`.
        """
        half = {metric: sd * self.errors[metric].quantile(level) for metric, sd in self.log_sds.items()}
        low = {metric: median * np.exp(-half[metric]) for metric, median in self.medians.items()}
        high = {metric: median * np.exp(half[metric]) for metric, median in self.medians.items()}
        for metric, median in self.medians.items():
            if metric == THROUGHPUT:
                high[metric] = np.minimum(high[metric], np.maximum(self.physical[metric], median))
            else:
                low[metric] = np.maximum(low[metric], np.minimum(self.physical[metric], median))
        return low, high

    def _table(self, columns: Mapping[str, FloatArray]) -> pd.DataFrame:
        return build_frame(columns, tuple(columns), self.index)

    def p_below(self, metric: str, limit: FloatArray | float, rows: slice = slice(None)) -> FloatArray:
        """Return the probability that a metric of some queries is at most a limit, in its SI unit: shape (n_row,)."""
        median, sd = self.medians[metric][rows], self.log_sds[metric][rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.log(limit / median) / sd
        p, physical = self.errors[metric].p_below(z), self.physical[metric][rows]
        if metric == THROUGHPUT:
            p = np.where(limit >= np.maximum(physical, median), 1.0, p)
        else:
            p = np.where(limit < np.minimum(physical, median), 0.0, p)
        return np.where(sd > 0, p, np.asarray(median <= limit, dtype=float))
