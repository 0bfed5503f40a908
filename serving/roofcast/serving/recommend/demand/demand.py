"""Demand of a deployment and constraints on the choice."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError
from roofcast.data.specs import Offer
from roofcast.serving.recommend.demand.inventory import OwnedNodes
from roofcast.serving.recommend.demand.presets import Lengths
from roofcast.serving.recommend.demand.slo import Limit

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Demand:
    """Request lengths, load and limits; the load is either `users` or `request_rate_per_s`.

    Parameters
    ----------
    n_input_token, n_output_token
        Mean lengths of a request.
    users
        Clients of a closed loop: each sends a request, waits for the response, thinks, and sends the next one.
    request_rate_per_s
        Arrival rate of an open loop.
    think_time_s
        Mean time of a user between a response and the next request; 0 keeps every user's request in flight.
    headroom
        Share of the capacity that is kept free at the peak.
    peak_factor
        Peak load over the load given; 1 if the load given is the peak.
    length_variation, input_variation
        Coefficients of variation of the output and input lengths; NaN if unknown. Predictions ignore that of the
        input: all prompts have the mean length.
    prefix_cache_ratio
        Share of the input that is found in the prefix cache; NaN if unknown.

    Raises
    ------
    InputError
        If neither or both loads are given, or a value is out of its range.
    """

    n_input_token: float
    n_output_token: float
    users: float | None
    request_rate_per_s: float | None
    limits: tuple[Limit, ...]
    think_time_s: float = 0.0
    headroom: float = 0.0
    peak_factor: float = 1.0
    length_variation: float = math.nan
    prefix_cache_ratio: float = math.nan
    input_variation: float = math.nan

    def __post_init__(self) -> None:
        if (self.users is None) == (self.request_rate_per_s is None):
            raise InputError("workload", "give either users or request_rate_per_s")
        if not 0 <= self.headroom < 1:
            raise InputError("headroom", f"must be a share from 0 to below 1, got {self.headroom:g}")
        if not self.peak_factor >= 1:
            raise InputError("peak_factor", f"must be at least 1, the load given, got {self.peak_factor:g}")
        if not self.think_time_s >= 0:
            raise InputError("think_time_s", f"must be at least 0 s, got {self.think_time_s:g}")
        if self.users is None and self.think_time_s:
            raise InputError("think_time_s", "needs users; arrivals at a rate do not wait for responses")

    @property
    def peak_load(self) -> float:
        """Users, or requests per second, at the peak."""
        load = self.users if self.users is not None else self.request_rate_per_s
        return float(load or 0.0) * self.peak_factor

    @property
    def required_load(self) -> float:
        """Load that all replicas together must be able to serve: the peak with headroom.

        Examples
        --------
        80 users, 1.5 times as many at the peak, a quarter of the capacity free:

        >>> Demand(500, 100, 80, None, (), peak_factor=1.5, headroom=0.25).required_load
        160.0
        """
        return self.peak_load / (1.0 - self.headroom)

    @property
    def lengths(self) -> tuple[Lengths, Lengths]:
        """Lengths of prompts and of responses."""
        return (
            Lengths(self.n_input_token, self.input_variation),
            Lengths(self.n_output_token, self.length_variation),
        )

    @overload
    def served_load(self, in_flight: float, rate_per_s: float) -> float: ...
    @overload
    def served_load(self, in_flight: FloatArray, rate_per_s: FloatArray) -> FloatArray: ...
    def served_load(self, in_flight: float | FloatArray, rate_per_s: float | FloatArray) -> float | FloatArray:
        """Return the load that a replica serves, in users or requests per second.

        Parameters
        ----------
        in_flight
            Requests in flight on the replica, any shape.
        rate_per_s
            Requests that it completes per second, of the same shape.

        Notes
        -----
        By the interactive response-time law ``N = X (R + Z)``, ``X R`` users wait (the requests in flight) and
        ``X Z`` users think.

        References
        ----------
        P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing
        Surveys 10(3), 1978.

        Examples
        --------
        Eight requests in flight, two completed per second and 10 s of think time: 8 users wait, 20 think.

        >>> Demand(500, 100, 80, None, (), think_time_s=10).served_load(8.0, 2.0)
        28.0
        """
        return rate_per_s if self.users is None else in_flight + rate_per_s * self.think_time_s


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding of a replica.

    Parameters
    ----------
    kind
        Of `roofcast.data.measurements.schema.SPECULATIONS`.
    n_token
        Speculated tokens per step.
    acceptance_ratio
        Probability that a speculated token is accepted; None for the engine's coefficient.
    """

    kind: str
    n_token: int
    acceptance_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on the choice; an empty set admits everything.

    Parameters
    ----------
    accelerators
        Ids.
    max_usd_per_h
        Budget of the whole deployment.
    kv_precision
        Blank for the engine's default.
    weight_precisions
        Empty for the checkpoint's own.
    max_nodes
        Most nodes that one replica may span.
    speculations
        Kinds of speculative decoding to search; None is without.
    draft_model
        Checkpoint of the draft model or head, for artefacts.
    inventory
        Owned nodes; providers, regions and pricing do not apply to them.
    marketplaces
        Whether to admit instances of third-party hosts; those of a provider that is named are admitted anyway.
    """

    providers: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    accelerators: frozenset[str] = frozenset()
    pricing: frozenset[str] = field(default_factory=lambda: frozenset({"on_demand"}))
    max_usd_per_h: float | None = None
    kv_precision: str = ""
    engines: frozenset[str] = frozenset()
    weight_precisions: frozenset[str] = frozenset()
    max_nodes: int = 1
    speculations: tuple[Speculation | None, ...] = (None,)
    draft_model: str = ""
    inventory: tuple[OwnedNodes, ...] = ()
    marketplaces: bool = False

    def __post_init__(self) -> None:
        if self.max_nodes < 1:
            raise InputError("max_nodes", f"must be at least 1, got {self.max_nodes}")

    @property
    def engine(self) -> str:
        """The only engine admitted; blank if there are none or several."""
        return next(iter(self.engines)) if len(self.engines) == 1 else ""

    @property
    def weight_precision(self) -> str:
        """The only weight precision admitted; blank if there are none or several."""
        return next(iter(self.weight_precisions)) if len(self.weight_precisions) == 1 else ""

    @property
    def budget_usd_per_h(self) -> float:
        """Budget of the whole deployment; infinite if there is none."""
        return math.inf if self.max_usd_per_h is None else self.max_usd_per_h

    def admissible_offers(self, offers: Iterable[Offer]) -> list[Offer]:
        """Return owned nodes, then the offers within the constraints.

        Unless regions are named, the cheapest region of an instance represents all.
        """
        owned = [nodes for nodes in self.inventory if not self.accelerators or nodes.accelerator in self.accelerators]
        rented = [offer for offer in offers if self._admits(offer)]
        return [*owned, *(rented if self.regions else cheapest_regions(rented))]

    def _admits(self, offer: Offer) -> bool:
        return (
            (not self.accelerators or offer.accelerator in self.accelerators)
            and (not self.pricing or offer.pricing in self.pricing)
            and (not self.providers or offer.provider in self.providers)
            and (not self.regions or offer.region in self.regions)
            and (self.marketplaces or offer.market == "provider" or offer.provider in self.providers)
        )


def cheapest_regions(offers: Iterable[Offer]) -> list[Offer]:
    """Return the cheapest offer of each provider, instance type and pricing, in the order of the offers.

    Of regions of one price the first counts.
    """
    cheapest: dict[tuple[str, str, str], Offer] = {}
    for offer in offers:
        key = (offer.provider, offer.instance_type, offer.pricing)
        if key not in cheapest or offer.price_usd_per_h < cheapest[key].price_usd_per_h:
            cheapest[key] = offer
    return list(cheapest.values())
