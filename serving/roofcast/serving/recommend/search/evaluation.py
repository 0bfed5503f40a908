"""What one replica does at a load: the estimate for every load at once, the learner where it is asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.arrays import descriptor_arrays
from roofcast.features.descriptors.descriptor_table import QUANTILE
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.features.engine.memory import Memory, estimate_memory
from roofcast.features.pipeline import estimate_statistics
from roofcast.training.learner.error_distribution import GroupedConformal
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundle import ModelBundle

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

THROUGHPUT = "output_throughput_token_per_s"

STEP = 0.5
"""Distance of two levels of load, as a power of two."""

SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Rates to try, over the rate that a replica serves with every place taken; near that one the queue has no end."""

ASKED: Final = (
    "workload.concurrency",
    "workload.request_rate_per_s",
    "workload.is_mean",
    "workload.quantile",
)
"""Descriptors that differ from load to load and from statistic to statistic."""


def most_users(bundle: ModelBundle) -> float:
    """Return the most users that any replica was measured with, for each of its accelerators."""
    rows = bundle.anchors.rows
    is_closed = (rows["load"] == "closed_loop").to_numpy()
    n_user, n_accelerator = (rows[name].to_numpy()[is_closed] for name in ("concurrency", "n_accelerator"))
    return float(np.nanmax(n_user / n_accelerator))


def user_levels(most: float) -> FloatArray:
    """Return the numbers of users to try: up to `most`, in steps of about 1.4."""
    steps = np.unique(np.round(2.0 ** np.arange(0, np.log2(max(most, 1.0)) + STEP / 2, STEP)))
    return np.asarray(steps[steps <= most + 0.5], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Medians:
    """Predicted medians of one metric and the standard deviations of their logarithms, each of shape (n_point,)."""

    log_value: FloatArray
    sd: FloatArray


class Evaluator:
    """Predicts replicas at loads.

    Parameters
    ----------
    predictor
        That knows the reference measurements, if there are any.
    descriptors : shape (n_replica, n_descriptor)
        Of the replicas.
    is_open
        Whether loads are requests that come at a rate, in requests a second; else they are requests in flight.

    Attributes
    ----------
    n_predicted
        Rows that the learner has answered.
    """

    def __init__(self, predictor: RoofcastPredictor, descriptors: pd.DataFrame, *, is_open: bool = False) -> None:
        self.predictor, self.is_open = predictor, is_open
        self.columns = descriptors.columns
        self.d = descriptor_arrays(descriptors)
        self._block = np.ascontiguousarray(descriptors.to_numpy(dtype=float).T)
        self._asked = self.columns.get_indexer(pd.Index(ASKED))
        self.n_predicted = 0

    def errors(self, metric: str) -> GroupedConformal:
        """Return the conformal distribution of a metric's standardised errors."""
        return self.predictor.error_distributions_[metric].conformal

    def at(self, rows: IndexArray, load: FloatArray, statistic: str) -> dict[str, FloatArray]:
        """Return the descriptors of replicas at loads, as arrays of the shape of `rows` and `load`."""
        return self._at(rows, load, statistic, is_open=self.is_open)

    def _at(self, rows: IndexArray, load: FloatArray, statistic: str, *, is_open: bool) -> dict[str, FloatArray]:
        d = {name: values[rows] for name, values in self.d.items()}
        none = np.full(len(rows), np.nan)
        d["workload.concurrency"], d["workload.request_rate_per_s"] = (none, load) if is_open else (load, none)
        return d | _asking(statistic, len(rows))

    def table(self, rows: IndexArray, load: FloatArray, statistic: str) -> pd.DataFrame:
        """Return the same as a table, columns in the order of `roofcast.features.columns.DESCRIPTORS`."""
        block = self._block[:, rows]
        none = np.full(len(rows), np.nan)
        loads = (none, load) if self.is_open else (load, none)
        block[self._asked] = [*loads, *_asking(statistic, len(rows)).values()]
        return pd.DataFrame(block.T, columns=self.columns, copy=False)

    @property
    def memory(self) -> Memory:
        """What fits of a single request, in each replica."""
        return estimate_memory(self.d, self.predictor.coefficients_.by_row(self.d["config.engine"]))

    def rate_levels(self, most: FloatArray) -> FloatArray:
        """Return the requests a second to try on each replica: shares of what it serves with every place taken.

        Parameters
        ----------
        most : shape (n_replica,)
            Requests in flight beyond which no replica is loaded.

        Returns
        -------
        shape (n_replica, n_level), rising
        """
        full = np.minimum(np.maximum(self.memory.capacity, 1.0), most)
        d = self._at(np.arange(len(full)), full, "mean", is_open=False)
        served = estimate(d, self.predictor.coefficients_).request_throughput_per_s
        return np.asarray(served[:, None] * np.array(SHARES), dtype=np.float64)

    def estimate(
        self, rows: IndexArray, load: FloatArray, asked: Mapping[str, Collection[str]]
    ) -> tuple[dict[str, dict[str, FloatArray]], Estimate]:
        """Return the estimates of metrics by statistic, and the estimate whole."""
        coefficients = self.predictor.coefficients_
        d = self.at(rows, load, "mean")
        e = estimate(d, coefficients)
        found = {
            statistic: estimate_statistics(d | _asking(statistic, len(rows)), coefficients, e, metrics)
            for statistic, metrics in asked.items()
        }
        return found, e

    def predict(
        self, rows: IndexArray, load: FloatArray, asked: Mapping[str, Collection[str]], whole: Estimate
    ) -> dict[tuple[str, str], Medians]:
        """Return predictions of replicas at loads, by metric and statistic.

        Parameters
        ----------
        rows, load : shape (n_point,)
        asked
            Metrics by statistic.
        whole
            The estimate of these points.
        """
        found = {}
        for statistic, metrics in asked.items():
            table = self.table(rows, load, statistic)
            prediction = self.predictor.predict_distribution(table, metrics=metrics, estimate=whole)
            self.n_predicted += len(rows)
            for metric, median in prediction.median.items():
                sd = prediction.log_sd[metric].to_numpy()
                found[str(metric), statistic] = Medians(np.log(median.to_numpy()), sd)
        return found


def _asking(statistic: str, n: int) -> dict[str, FloatArray]:
    """Return the descriptors that ask for a statistic, the last of `ASKED`."""
    return {
        "workload.is_mean": np.full(n, float(statistic == "mean")),
        "workload.quantile": np.full(n, QUANTILE[statistic]),
    }
