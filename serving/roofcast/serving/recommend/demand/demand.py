"""What a deployment must serve, and within what bounds it may be chosen."""

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
    """Load of a deployment; either `users` or `request_rate_per_s` is given.

    Parameters
    ----------
    n_input_token, n_output_token
        Mean lengths of a request.
    users
        People or programs who send a request, wait for the answer, think, and send the next one.
    request_rate_per_s
        Arrivals that do not wait for answers.
    limits
        What every request class must meet.
    think_time_s
        Mean time of a user between an answer and the next request; 0 keeps every user's request in flight.
    headroom
        Share of the capacity that is kept free at the peak.
    peak_factor
        Load at the peak over the load given; 1 if what is given is the peak.
    length_variation
        Standard deviation of the output lengths over their mean; NaN if unknown.
    prefix_cache_ratio
        Share of the input that is found in the prefix cache; NaN if unknown.
    input_variation
        Standard deviation of the input lengths over their mean; NaN if unknown. No forecast knows of it: prompts are
        taken to be of the mean length.

    Raises
    ------
    InputError
        If neither or both loads are given, or a part is out of its range.
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
            raise InputError("think_time_s", "goes with users; arrivals at a rate do not wait for answers")

    @property
    def peak(self) -> float:
        """The load at the peak, in users or in requests per second."""
        load = self.users if self.users is not None else self.request_rate_per_s
        return float(load or 0.0) * self.peak_factor

    @property
    def lengths(self) -> tuple[Lengths, Lengths]:
        """Lengths of prompts and of answers; the variation is NaN where it is not known."""
        return (
            Lengths(self.n_input_token, self.input_variation),
            Lengths(self.n_output_token, self.length_variation),
        )

    @property
    def needed(self) -> float:
        """The load that all replicas together must be able to serve: that of the peak, with headroom left.

        Examples
        --------
        80 users, half as many again at the peak, a quarter of the capacity free:

        >>> Demand(500, 100, 80, None, (), peak_factor=1.5, headroom=0.25).needed
        160.0
        """
        return self.peak / (1.0 - self.headroom)

    @overload
    def served(self, in_flight: float, rate_per_s: float) -> float: ...
    @overload
    def served(self, in_flight: FloatArray, rate_per_s: FloatArray) -> FloatArray: ...
    def served(self, in_flight: float | FloatArray, rate_per_s: float | FloatArray) -> float | FloatArray:
        """Return the share of `needed` that a replica serves with so many requests in flight: users, or a rate.

        Parameters
        ----------
        in_flight
            Requests in the replica, any shape.
        rate_per_s
            Requests that it finishes then, of the same shape.

        Notes
        -----
        Users are those who wait and those who think, and by Little's law ``rate x think time`` of them think. That is
        the interactive response-time law, ``N = X (R + Z)``, with ``X R`` requests in flight.

        References
        ----------
        P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing
        Surveys 10(3), 1978.

        Examples
        --------
        Eight requests in flight and two finished a second, 10 s of thought: 20 users think while 8 wait.

        >>> Demand(500, 100, 80, None, (), think_time_s=10).served(8.0, 2.0)
        28.0
        """
        return rate_per_s if self.users is None else in_flight + rate_per_s * self.think_time_s


@dataclass(frozen=True, slots=True)
class Constraints:
    """Bounds on the choice; empty means any.

    Parameters
    ----------
    providers, regions, accelerators, pricing
        Admitted values; accelerators by id.
    max_usd_per_h
        Budget of the whole deployment.
    engine, weight_precision
        The only one admitted, if there is one.
    kv_precision
        Fixed if given.
    engines, weight_precisions
        Admitted values.
    max_nodes
        Most nodes that one replica may span.
    inventory
        Nodes of one's own, admitted whatever the providers, regions and pricing.
    """

    providers: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    accelerators: frozenset[str] = frozenset()
    pricing: frozenset[str] = field(default_factory=lambda: frozenset({"on_demand"}))
    max_usd_per_h: float | None = None
    engine: str = ""
    weight_precision: str = ""
    kv_precision: str = ""
    engines: frozenset[str] = frozenset()
    weight_precisions: frozenset[str] = frozenset()
    max_nodes: int = 1
    inventory: tuple[OwnedNodes, ...] = ()

    def __post_init__(self) -> None:
        for one, many in (("engine", "engines"), ("weight_precision", "weight_precisions")):
            single, admitted = getattr(self, one), getattr(self, many)
            if single and not admitted:
                object.__setattr__(self, many, frozenset({single}))
            elif not single and len(admitted) == 1:
                object.__setattr__(self, one, next(iter(admitted)))
        if self.max_nodes < 1:
            raise InputError("max_nodes", f"must be at least 1, got {self.max_nodes}")

    def admits(self, offer: Offer) -> bool:
        """Return whether an offer is within the bounds; of owned nodes only the accelerator counts."""
        if self.accelerators and offer.accelerator not in self.accelerators:
            return False
        return isinstance(offer, OwnedNodes) or (
            (not self.pricing or offer.pricing in self.pricing)
            and (not self.providers or offer.provider in self.providers)
            and (not self.regions or offer.region in self.regions)
        )

    def supply(self, offers: Iterable[Offer]) -> list[Offer]:
        """Return what may be chosen: one's own nodes, then the offers that are within the bounds."""
        return [offer for offer in (*self.inventory, *offers) if self.admits(offer)]
