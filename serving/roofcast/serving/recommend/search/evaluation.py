"""Evaluation of replicas at loads: the analytic estimate and the model's predictions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from roofcast.features.descriptors.descriptor_table import QUANTILE
from roofcast.features.engine.estimate import Estimate, estimate_at_loads, load_independent
from roofcast.features.engine.kept_prefixes import kept_ratio
from roofcast.features.engine.memory import Memory
from roofcast.features.pipeline import estimate_statistics
from roofcast.features.queries import FloatArray, IndexArray, Queries, put_rows, take_rows
from roofcast.serving.abandonment import stop_if_abandoned
from roofcast.serving.recommend.search.confidence import Medians, Quantity
from roofcast.training.learner.errors.group_keys import build_group_keys, workload_coordinates
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

STEP: Final = 0.5
"""Distance of two numbers of users, as a power of two."""

RATE_SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Request rates of the grid, over the rate that saturates a replica."""

N_KEPT: Final = 3
KEPT_TOLERANCE: Final = 0.01
"""Estimates of what the prefix cache keeps of users who think, and the change of the share below which they end."""

VARYING: Final = ("workload.concurrency", "workload.request_rate_per_s", "workload.is_mean", "workload.quantile")
"""Descriptors that vary with load and statistic."""


def max_users_per_accelerator(bundle: ModelBundle) -> float:
    """Return the most users per accelerator in the training data."""
    rows = bundle.anchors.rows
    is_closed = (rows["load"] == "closed_loop").to_numpy()
    users, n_accelerator = (rows[name].to_numpy()[is_closed] for name in ("concurrency", "n_accelerator"))
    return float(np.nanmax(users / n_accelerator))


def user_levels(highest: float) -> FloatArray:
    """Return the numbers of users of the grid, up to `highest` in steps of about 1.4."""
    steps = np.unique(np.round(2.0 ** np.arange(0, np.log2(max(highest, 1.0)) + STEP / 2, STEP)))
    return np.asarray(steps[steps <= highest + 0.5], dtype=np.float64)


class Evaluator:
    """Estimates and predicts replicas at loads.

    - `predictor`: Conditioned on the reference measurements, if there are any.
    - `descriptors`: shape (n_replica, n_descriptor)
    - `is_open`: Whether loads are requests per second; otherwise they are requests in flight.
    - `think_time_s`: Mean time of a user between a response and the next request, while the prefix cache keeps the
      context.

    - `d`: Descriptors as arrays.
    - `n_predicted`: Rows predicted so far.
    """

    def __init__(
        self,
        predictor: RoofcastPredictor,
        descriptors: Queries,
        *,
        is_open: bool = False,
        think_time_s: float = 0.0,
    ) -> None:
        self.predictor, self.is_open, self.think_time_s = predictor, is_open, think_time_s
        self.coefficients = predictor.coefficients_
        self.d = descriptors
        self.n_predicted = 0
        self._block = np.array([*self.d.values()])
        self._fixed = load_independent(self.d, self.coefficients)
        n = self._block.shape[1]
        self._keys = build_group_keys(self.descriptors(np.arange(n), np.ones(n), "mean"))

    @property
    def memory(self) -> Memory:
        """Memory estimate of each replica with one request."""
        return self._fixed.memory

    def rate_levels(self, max_in_flight: FloatArray) -> FloatArray:
        """Return the request rates of the grid for each replica.

        `max_in_flight`: shape (n_replica,): most requests in flight.

        Returns
        -------
        shape (n_replica, n_level), rising
        """
        full = np.minimum(np.maximum(self.memory.capacity, 1.0), max_in_flight)
        rows = np.arange(len(full))
        closed = self._fixed.take(rows, {**self.d, **_varying(full, "mean", is_open=False)})
        rate = estimate_at_loads(closed).request_throughput_per_s
        return np.asarray(rate[:, None] * np.array(RATE_SHARES), dtype=np.float64)

    def descriptors(self, rows: IndexArray, load: FloatArray, *statistics: str) -> dict[str, FloatArray]:
        """Return the descriptors of replicas at loads, one statistic after the other."""
        d = dict(zip(self.d, self._block[:, np.tile(rows, len(statistics))], strict=True))
        varying = [_varying(load, statistic, is_open=self.is_open) for statistic in statistics]
        return d | {name: np.concatenate([values[name] for values in varying]) for name in VARYING}

    def estimate_means(self, rows: IndexArray, load: FloatArray) -> Estimate:
        """Return the estimate of means of replicas at loads."""
        return self.estimate(rows, load, ())[1]

    def estimate(
        self, rows: IndexArray, load: FloatArray, quantities: Collection[Quantity]
    ) -> tuple[dict[Quantity, FloatArray], Estimate]:
        """Return the estimates of quantities, and the estimate of means that they derive from."""
        d, means = self._means(rows, load)
        values: dict[Quantity, FloatArray] = {}
        for statistic, metrics in _metrics_by_statistic(quantities).items():
            varying = _varying(load, statistic, is_open=self.is_open)
            estimates = estimate_statistics(d | varying, self.coefficients, means, metrics)
            values |= {(metric, statistic): estimates[metric] for metric in metrics}
        return values, means

    def _means(self, rows: IndexArray, load: FloatArray) -> tuple[dict[str, FloatArray], Estimate]:
        d = self.descriptors(rows, load, "mean")
        means = estimate_at_loads(self._fixed.take(rows, d))
        given = d["workload.prefix_cache_ratio"]
        if not self.think_time_s or not given.any():
            return d, means
        for _ in range(N_KEPT):
            kept = kept_ratio({**d, "workload.prefix_cache_ratio": given}, means, self.think_time_s)
            lost = np.flatnonzero(kept * given < d["workload.prefix_cache_ratio"] - KEPT_TOLERANCE)
            if not len(lost):
                break
            d["workload.prefix_cache_ratio"] = np.minimum(d["workload.prefix_cache_ratio"], kept * given)
            again = load_independent(take_rows(d, lost), self.coefficients)
            means = put_rows(means, lost, estimate_at_loads(again))
        return d, means

    def predict(
        self, rows: IndexArray, load: FloatArray, quantities: Collection[Quantity], means: Estimate
    ) -> dict[Quantity, Medians]:
        """Return the predictions of quantities; `means` is the estimate of these rows and loads."""
        if not quantities:
            return {}
        predicted = self.predict_table(rows, load, quantities, means)
        return {quantity: predicted.medians(quantity) for quantity in quantities}

    def predict_table(
        self,
        rows: IndexArray,
        load: FloatArray,
        quantities: Collection[Quantity],
        means: Estimate,
        predictor: RoofcastPredictor | None = None,
    ) -> PredictedLoads:
        """Return the predictions of all metrics of quantities in all their statistics.

        `means` is the estimate of these rows and loads; `predictor` another than that of the search.
        """
        stop_if_abandoned()
        by_statistic, n = _metrics_by_statistic(quantities), len(rows)
        repeated = np.tile(np.arange(n), len(by_statistic))
        self.n_predicted += len(repeated)
        d = self.descriptors(rows, load, *by_statistic)
        prediction = (predictor or self.predictor).predict_distribution(
            d,
            metrics={metric for metric, _ in quantities},
            estimate=take_rows(means, repeated),
            keys=replace(self._keys.take(rows[repeated]), workload=workload_coordinates(d)),
        )
        rows_of = {statistic: slice(k * n, (k + 1) * n) for k, statistic in enumerate(by_statistic)}
        return PredictedLoads(prediction, rows_of)


@dataclass(frozen=True, slots=True)
class PredictedLoads:
    """Predictions of replicas at loads, one statistic after the other.

    `rows_of`: rows of each statistic.
    """

    prediction: Prediction
    rows_of: Mapping[str, slice]

    def medians(self, quantity: Quantity) -> Medians:
        """Return the predicted medians of a metric in a statistic."""
        metric, rows = quantity[0], self.rows_of[quantity[1]]
        value, physical = (np.log(one[metric][rows]) for one in (self.prediction.medians, self.prediction.physical))
        return Medians(value, self.prediction.log_sds[metric][rows], physical)


def _metrics_by_statistic(quantities: Iterable[Quantity]) -> dict[str, list[str]]:
    by_statistic: dict[str, list[str]] = {}
    for metric, statistic in dict.fromkeys(quantities):
        by_statistic.setdefault(statistic, []).append(metric)
    return by_statistic


def _varying(load: FloatArray, statistic: str, *, is_open: bool) -> dict[str, FloatArray]:
    missing = np.full(len(load), np.nan)
    loads = (missing, load) if is_open else (load, missing)
    is_mean, quantile = float(statistic == "mean"), QUANTILE[statistic]
    values = (*loads, np.full(len(load), is_mean), np.full(len(load), quantile))
    return dict(zip(VARYING, values, strict=True))
