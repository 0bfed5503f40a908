"""Parts of a recommendation: entries, Pareto front, levers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from roofcast.data.specs import Offer
from roofcast.serving.recommend.search.replica import Rejection, Replica

LEVERS: Final = ("precision", "users", "limit", "pricing", "region", "provider")
"""Kinds of changes that may lower the cost."""


@dataclass(frozen=True, slots=True)
class PredictedMetric:
    """Prediction for one replica at its share of the load, with its interval, in SI units.

    `uncalibrated` is the value without the reference measurements and the stack; None without either.
    """

    metric: str
    statistic: str
    value: float
    low: float
    high: float
    limit: float | None
    uncalibrated: float | None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another offer of the same configuration, and the deployment on it; the cost is in US dollars per hour."""

    offer: Offer
    n_instance: int
    cost_usd_per_h: float


@dataclass(frozen=True, slots=True)
class Entry:
    """Deployment that meets the demand; costs are of the whole deployment.

    `n_replica` is the required load over the load that one replica serves, rounded up.

    Parameters
    ----------
    users_per_replica
        Most users, waiting and thinking, that a replica serves within the limits; None at a rate.
    in_flight_per_replica, request_rate_per_replica
        Requests in flight and completed per second at that load; with think time or at a rate the former is a mean.
    capacity_per_replica
        Requests of the mean length that fit in its memory by the estimate.
    load_per_replica
        Requests in flight on a replica at its share of the peak.
    p_limits_met
        Probability that an unseen LLM meets all limits at that load.
    p_runs
        Probability that a replica fits in memory, from deployments that ran and failed; None if unknown.
    power_w
        Mean power of all accelerators, without their servers.
    memory_used_byte, memory_usable_byte
        Of one replica.
    nearest
        The most informative measurements.
    outside, outside_columns
        Whether the entry extrapolates, and in which columns.
    needs_quantised_copy
        Whether the engine needs a copy of the checkpoint that is published in the weight precision.
    also_at
        Other offers of the same configuration, by rising cost.
    """

    offer: Offer
    replica: Replica
    users_per_replica: float | None
    in_flight_per_replica: float
    request_rate_per_replica: float
    capacity_per_replica: float
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    cost_usd_per_month: float
    cost_usd_per_million_input_token: float
    cost_usd_per_million_output_token: float
    cost_usd_per_million_token: float
    load_per_replica: float
    predictions: tuple[PredictedMetric, ...]
    p_limits_met: float
    p_runs: float | None
    power_w: float
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    nearest: tuple[Mapping[str, Any], ...]
    outside: bool
    outside_columns: tuple[str, ...]
    needs_quantised_copy: bool
    also_at: tuple[Elsewhere, ...] = ()

    @property
    def n_accelerator(self) -> int:
        """Accelerators of all instances."""
        return self.n_instance * self.offer.n_accelerator


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """Deployment on the Pareto front of cost and median end-to-end latency, at its share of the peak load."""

    cost_usd_per_h: float
    e2e_s: float
    p_limits_met: float
    offer: Offer
    replica: Replica
    load_per_replica: float
    n_replica: int
    n_instance: int


@dataclass(frozen=True, slots=True)
class Lever:
    """A change of the question, and the cheapest deployment found with it.

    Parameters
    ----------
    kind
        One of `LEVERS`.
    change
        In words.
    saving_ratio
        Saving over the cost of the first entry; None if there is none.
    """

    kind: str
    change: str
    offer: Offer
    replica: Replica
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    saving_ratio: float | None
    needs_quantised_copy: bool


@dataclass(frozen=True, slots=True)
class CalibrationEffect:
    """Cheapest deployment without references and stack, predicted without and with them; None if there is none."""

    without: Entry | None
    calibrated: Entry | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Entries by rising cost, with rejections, fleet and Pareto front.

    Parameters
    ----------
    entries
        The cheapest deployment of each of the cheapest groups of offers.
    fleet
        Parts of a mixed fleet that costs less than the first entry, or serves what no single kind serves; empty if
        there is none. Each part meets the limits with the confidence. Token costs of a part are its share.
    rejections, n_rejected
        Replicas without an entry, the nearest miss first, and how many there are in total.
    families
        The nearest miss of each kind of owned nodes, and of each accelerator, without an entry.
    pareto
        Non-dominated deployments, by rising cost.
    runner_up_usd_per_h
        Least cost on another accelerator than the first entry's; None if there is none.
    cost_of_confidence
        Least cost of one kind of instance by confidence, for those that the measurements guarantee; None where
        nothing meets the limits.
    n_configuration, n_candidate, n_offer
        Configurations, configurations times load levels, and offers within the constraints.
    n_predicted
        Rows predicted.
    warnings
        Limits out of reach, with the best prediction.
    levers
        What would change the cost, by rising cost.
    calibration_effect
        None without references and stack, or if the confidence cannot be guaranteed without them.
    """

    entries: tuple[Entry, ...]
    fleet: tuple[Entry, ...]
    rejections: tuple[Rejection, ...]
    n_rejected: int
    families: tuple[Rejection, ...]
    pareto: tuple[FrontPoint, ...]
    runner_up_usd_per_h: float | None
    cost_of_confidence: Mapping[float, float | None]
    n_configuration: int
    n_candidate: int
    n_offer: int
    n_predicted: int
    warnings: tuple[str, ...] = ()
    levers: tuple[Lever, ...] = ()
    calibration_effect: CalibrationEffect | None = None
