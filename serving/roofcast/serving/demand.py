"""What a deployment must serve, and within what bounds it may be chosen."""

from __future__ import annotations

from dataclasses import dataclass, field

from roofcast.data.specs import Offer
from roofcast.serving.slo import Limit


@dataclass(frozen=True, slots=True)
class Demand:
    """Load of a deployment; either `users` or `request_rate_per_s` is given.

    Parameters
    ----------
    n_input_token, n_output_token
        Mean lengths of a request.
    users
        Requests in flight at the peak: users who wait for an answer, without thinking time.
    request_rate_per_s
        Arrivals at the peak.
    limits
        What every request class must meet.
    """

    n_input_token: float
    n_output_token: float
    users: float | None
    request_rate_per_s: float | None
    limits: tuple[Limit, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Bounds on the choice; empty means any.

    Parameters
    ----------
    providers, regions, accelerators, pricing
        Admitted values; accelerators by id.
    max_usd_per_h
        Budget of the whole deployment.
    engine, weight_precision, kv_precision
        Fixed if given.
    """

    providers: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    accelerators: frozenset[str] = frozenset()
    pricing: frozenset[str] = field(default_factory=lambda: frozenset({"on_demand"}))
    max_usd_per_h: float | None = None
    engine: str = ""
    weight_precision: str = ""
    kv_precision: str = ""

    def admits(self, offer: Offer) -> bool:
        """Return whether an offer is within the bounds."""
        pairs = (
            (self.providers, offer.provider),
            (self.regions, offer.region),
            (self.accelerators, offer.accelerator),
            (self.pricing, offer.pricing),
        )
        return all(not admitted or value in admitted for admitted, value in pairs)
