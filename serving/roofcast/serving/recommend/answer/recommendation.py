"""What a recommendation is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from roofcast.data.specs import Offer

REASONS: Final = (
    "same_cost",
    "dearer",
    "over_budget",
    "too_few_nodes",
    "misses_limit",
    "no_offer",
    "does_not_fit",
    "no_engine",
)
"""Why a way to run a model is not recommended, the nearest miss first."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One way to run a model: which accelerators share it how, under which engine, in which precision.

    Parameters
    ----------
    accelerator
        Catalogue id.
    tp, pp, dp, ep
        Degrees of parallelism; `dp` is of attention, with the experts spread over `ep` accelerators.
    engine
        That serves.
    weight_precision
        As served.
    """

    accelerator: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    engine: str = ""
    weight_precision: str = ""

    @property
    def n_accelerator(self) -> int:
        """Accelerators of the replica."""
        return self.tp * self.pp * self.dp

    @property
    def split(self) -> str:
        """The split in words that people use.

        Examples
        --------
        >>> Replica("nvidia-l4-24gb", tp=2, pp=2).split, Replica("nvidia-l4-24gb").split
        ('tp2 pp2', 'tp1')
        """
        degrees = {"tp": self.tp, "pp": self.pp, "dp": self.dp, "ep": self.ep}
        return " ".join(f"{name}{n}" for name, n in degrees.items() if n > 1 or name == "tp")


@dataclass(frozen=True, slots=True)
class PredictedMetric:
    """A prediction for one replica under its share of the load, with its interval; in the metric's SI unit.

    `uncalibrated` is the value without the reference measurements, None if there are none.
    """

    metric: str
    statistic: str
    value: float
    low: float
    high: float
    limit: float | None
    uncalibrated: float | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One way to meet the demand; names say the units, costs are of the whole deployment.

    Its replicas are the demand at the peak, headroom left, over what one of them serves, rounded up.

    Parameters
    ----------
    offer, replica
        What is rented, and what runs on it.
    users_per_replica
        Users whom a replica serves at most within the limits, at the confidence asked: those who wait and those who
        think; None at a rate.
    in_flight_per_replica, request_rate_per_replica
        Requests in flight on it then, and those that it finishes in a second. At a rate, or where users think, the
        former is a mean.
    capacity_per_replica
        Requests of the mean length that fit in its memory by the estimate.
    load_per_replica
        Requests in flight on a replica under its share of the peak.
    p_limits_met
        Probability that an unseen LLM meets all limits under that load.
    p_runs
        Probability that a replica's memory suffices, as deployments that ran and failed tell; None if not known.
    power_w
        Mean draw of all accelerators that serve, without the servers around them.
    memory_used_byte, memory_usable_byte
        Of one replica.
    nearest
        The measurements that tell most about it.
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


@dataclass(frozen=True, slots=True)
class Rejection:
    """A way to run the model that does not do, and why; `excess` is what it needs over what it may."""

    replica: Replica
    reason: str
    detail: str
    excess: float


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A deployment that no other beats in cost and end-to-end latency together.

    `e2e_s` is the median latency predicted, and `p_limits_met` the probability that all limits are met, where each
    replica carries its share of the peak: `load_per_replica` requests in flight.
    """

    cost_usd_per_h: float
    e2e_s: float
    p_limits_met: float
    offer: Offer
    replica: Replica
    load_per_replica: float
    n_replica: int
    n_instance: int


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Entries by rising cost, and what stands around them.

    Parameters
    ----------
    entries
        The best replica for each of the cheapest offers.
    fleet
        The parts of a mixture of instances that costs less than the first entry, or serves what none of them does
        alone; empty if there is none. Each part meets the limits at the confidence asked, and its tokens' costs are
        its share of all that tokens cost.
    rejections, n_rejected
        Replicas that are in no entry, the nearest miss first, and how many there are in all.
    families
        Of nodes of one's own, and of each accelerator without an entry, the nearest miss.
    pareto
        Non-dominated deployments, by rising cost.
    runner_up_usd_per_h
        Least cost on another accelerator than the first entry's; None if there is none.
    cost_of_confidence
        Least cost by probability that the limits are met, as far as it can be promised; None where nothing will do.
    n_configuration, n_candidate, n_offer
        Ways to run the model that were looked at, these with every load, and offers within the bounds.
    n_predicted
        Rows that the learner was asked for.
    warnings
        Which limits are out of reach, and what the best would be.
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

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Whatever is rented in an entry, the mixture or the front, once each."""
        shown = [
            *(entry.offer for entry in self.entries),
            *(part.offer for part in self.fleet),
            *(point.offer for point in self.pareto),
        ]
        return tuple({offer.id: offer for offer in shown}.values())
