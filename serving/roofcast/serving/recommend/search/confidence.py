"""Probability that a replica meets the limits of a demand."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import BoolArray, FloatArray
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import PREFILL_METRICS, Limit
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.predictor import RoofcastPredictor

Quantity = tuple[str, str]
"""A metric and its statistic."""

ROUNDING: Final = 1e-9
"""Tolerance above the highest confidence, for confidences that were computed from it."""

MAX_EXCESS_RATIO: Final = 1e12
"""Cap on the reported excess over a limit."""


@dataclass(frozen=True, slots=True)
class Medians:
    """Logarithms of one metric, of one shape: medians, standard deviations and bounds of physics, NaN if unknown."""

    log_value: FloatArray
    sd: FloatArray
    log_physical: FloatArray

    def take(self, rows: slice) -> Self:
        """Return some of the rows."""
        return type(self)(self.log_value[rows], self.sd[rows], self.log_physical[rows])


class LimitModel:
    """Limits of a demand on each replica, and the probability of meeting them.

    - `limits`: Limits that a replica may miss. At a request rate, `check_floors` decides on the floors on throughput.
    - `errors`: Conformal distribution of the standardised errors of each limited metric; throughput is, by a
      deadline.
    - `p_deadline`: Probability with which replicas reach the rates of `request_rate`: with that of the other limits
      it makes the confidence. 1 without a deadline.
    """

    def __init__(self, demand: Demand, predictor: RoofcastPredictor, confidence: float) -> None:
        self.demand = demand
        self.limits = [limit for limit in demand.limits if not (limit.is_floor and demand.users is None)]
        has_deadline = math.isfinite(demand.deadline_s)
        metrics = [*(limit.metric for limit in self.limits), *([THROUGHPUT] if has_deadline else [])]
        known = predictor.error_distributions_
        self.errors = {metric: known[metric].conformal for metric in metrics}
        self.p_deadline = (math.sqrt(confidence) if self.limits else confidence) if has_deadline else 1.0

    def p_met(self, medians: Mapping[Quantity, Medians], load: FloatArray) -> FloatArray:
        """Return the probability that all limits are met, of the shape of `load` (of one replica).

        No limit beyond physics is met. Limits on one metric share its error, so the least probability counts. Errors
        of different metrics count as independent, which is conservative: they are positively correlated.
        """
        least: dict[str, FloatArray] = {}
        for limit in self.limits:
            prediction = medians[limit.quantity]
            excess = self.log_excess(limit, prediction.log_value, load)
            is_impossible = (excess > 0) & (self.log_excess(limit, prediction.log_physical, load) > 0)
            p = np.where(is_impossible, 0.0, self.errors[limit.metric].p_below(-excess / prediction.sd))
            least[limit.metric] = np.minimum(least.get(limit.metric, p), p)
        joint = np.full_like(load, self.p_deadline)
        for p in least.values():
            joint = joint * p
        return joint

    def request_rate(self, throughput: Medians) -> FloatArray:
        """Return the requests completed per second: the median, or for a deadline what is reached with confidence."""
        has_deadline = math.isfinite(self.demand.deadline_s)
        z = self.errors[THROUGHPUT].z_at(self.p_deadline) if has_deadline else 0.0
        return np.asarray(np.exp(throughput.log_value - z * throughput.sd) / self.demand.n_output_token)

    def p_in_time(self, throughput: Medians, load: FloatArray, n_request: FloatArray) -> FloatArray:
        """Return the probability that replicas complete their share of a batch by its deadline.

        `load` and `n_request`: requests in flight, and requests of the batch, on a replica.
        """
        if not math.isfinite(self.demand.deadline_s):
            return np.ones_like(load)
        needed = np.maximum(n_request - load, 1e-9) * self.demand.n_output_token / self.demand.deadline_s
        return self.errors[THROUGHPUT].p_below((throughput.log_value - np.log(needed)) / throughput.sd)

    def is_overload(self, estimate: Estimate) -> BoolArray:
        """Return whether loads exceed what a replica serves: no probability of the limits makes them a capacity.

        A rate does if it saturates the replica. Users do if their requests wait longer for a slot in the batch than
        they are served, unless a limit bounds the wait.
        """
        has_bound = any(limit.metric in PREFILL_METRICS for limit in self.demand.limits)
        if has_bound or self.demand.users is None:
            return estimate.is_saturated
        return np.asarray(estimate.queue_s > estimate.e2e_s - estimate.queue_s)

    def log_excess(self, limit: Limit, log_median: FloatArray, load: FloatArray) -> FloatArray:
        """Return the log ratio of median to limit, of limit to median for a floor: positive if the median misses."""
        if not limit.is_floor:
            return np.asarray(log_median - math.log(limit.value))
        return np.asarray(np.log(replica_floor(limit, self.demand, load)) - log_median)

    @property
    def highest_confidence(self) -> float:
        """Greatest probability of meeting all limits that the measurements can guarantee."""
        return float(np.prod([(1 + errors.highest_level) / 2 for errors in self.errors.values()]))

    def check_confidence(self, confidence: float) -> None:
        """Raise `OutOfRangeError` if a confidence is above what the measurements can guarantee."""
        if confidence > self.highest_confidence + ROUNDING:
            raise OutOfRangeError(
                f"a confidence of {confidence:g} is above what the measurements can guarantee for these limits; ask "
                f"for at most {math.floor(self.highest_confidence * 10**3) / 10**3:.3f}"
            )


def check_floors(demand: Demand) -> None:
    """Raise if a floor on throughput is above the output tokens of the requests that arrive at a rate.

    Raises `InputError` if it is above requests per second at the peak times output tokens per request.
    """
    if demand.users is not None:
        return
    arriving = demand.peak_load * demand.n_output_token
    for limit in demand.limits:
        if limit.is_floor and limit.value > arriving * (1 + 1e-9):
            rate = limit.value / (demand.n_output_token * demand.peak_factor)
            raise InputError(
                "limits",
                f"{limit.text} is above the output of the requests: a peak of {demand.peak_load:.10g} a second times "
                f"{demand.n_output_token:.10g} output tokens is {arriving:.10g} tokens/s; lower the floor to that, "
                f"or raise request_rate_per_s to {rate:.10g}",
            )


def replica_floor(limit: Limit, demand: Demand, in_flight: FloatArray) -> FloatArray:
    """Return the throughput that each replica needs for a floor on that of the deployment.

    Notes
    -----
    A replica with ``n`` requests in flight and a throughput of ``x`` tokens per second serves ``n + x Z / O`` users
    of think time ``Z`` and ``O`` output tokens. The replicas of ``U`` users make ``x U / (n + x Z / O)``, which
    reaches the floor ``F`` if ``x >= F n / (U - F Z / O)``.
    """
    peak = demand.required_load * (1.0 - demand.headroom)
    waiting = peak - limit.value * demand.think_time_s / demand.n_output_token
    return limit.value * in_flight / waiting if waiting > 0 else np.full_like(in_flight, np.inf)


def deployment_throughput(demand: Demand, in_flight: FloatArray, token_per_s: FloatArray) -> FloatArray:
    """Return the throughput of a deployment of such replicas at the peak; the inverse of `replica_floor`.

    `in_flight` and `token_per_s`: shape (n_replica,): requests in flight on a replica, and its throughput.

    Examples
    --------
    Ten users, each alone on a replica of 50 tokens/s, who think 2 s after a response of 100 tokens that took 2 s:

    >>> demand = Demand(500, 100, 10, None, (), think_time_s=2.0)
    >>> deployment_throughput(demand, np.ones(1), np.array([50.0])).tolist()
    [250.0]
    """
    users = in_flight + token_per_s * demand.think_time_s / demand.n_output_token
    return np.asarray(token_per_s * demand.peak_load / users, dtype=np.float64)
