"""Demand of a deployment; users and think time by the interactive response-time law.

A batch is a closed loop too. `n` requests within a time `D` are `n` users who send one request each `D`: a replica
serves the requests that it completes within `D`. Without a time there is no end of them.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeVar

import numpy as np

from roofcast.features.queries import FloatArray
from roofcast.serving.recommend.demand.presets import Lengths
from roofcast.serving.recommend.demand.slo import Limit

Number = TypeVar("Number", float, FloatArray)

ENDLESS_S: Final = 1e7
"""Time over which the requests of an endless batch are counted: long next to any response time."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Request lengths, load and limits; the load is either `users` or `request_rate_per_s`.

    - `n_input_token`, `n_output_token`: Mean lengths of a request.
    - `users`: Clients of a closed loop: each sends a request, waits for the response, thinks, and sends the next one.
      Of a batch its requests, infinite without an end.
    - `request_rate_per_s`: Arrival rate of an open loop.
    - `think_time_s`: Mean time of a user between a response and the next request; 0 keeps every user's request in
      flight.
    - `headroom`: Share of the capacity that is kept free at the peak.
    - `peak_factor`: Peak load over the load given; 1 if the load given is the peak.
    - `length_variation`, `input_variation`: Coefficients of variation of the output and input lengths; NaN if
      unknown. Predictions ignore that of the input: all prompts have the mean length.
    - `prefix_cache_ratio`: Share of the input that is found in the prefix cache; NaN if unknown.
    - `n_batch_request`: Requests of a batch; None of another load.

    - `peak_load`: Users, or requests per second, at the peak.
    - `required_load`: Load that all replicas together must be able to serve: the peak with headroom.

    Examples
    --------
    80 users, 1.5 times as many at the peak, a quarter of the capacity free:

    >>> Demand(500, 100, 80, None, (), peak_factor=1.5, headroom=0.25).required_load
    160.0
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
    n_batch_request: float | None = None
    peak_load: float = field(init=False)
    required_load: float = field(init=False)

    def __post_init__(self) -> None:
        load = self.users if self.users is not None else self.request_rate_per_s
        object.__setattr__(self, "peak_load", float(load or 0.0) * self.peak_factor)
        object.__setattr__(self, "required_load", self.peak_load / (1.0 - self.headroom))

    @property
    def is_endless(self) -> bool:
        """Whether no load is given: replicas are as busy as the limits admit."""
        return math.isinf(self.peak_load)

    @property
    def is_batch(self) -> bool:
        """Whether all requests are there at the start, or there is no end of them."""
        return self.n_batch_request is not None or self.is_endless

    @property
    def deadline_s(self) -> float:
        """Time within which a batch is served; infinite without a deadline."""
        return self.think_time_s if self.is_batch and not self.is_endless else math.inf

    @property
    def unit(self) -> str:
        """Unit of the load."""
        if self.is_batch:
            return "requests"
        return "users" if self.users is not None else "requests a second"

    def at_peak(self, peak_load: float) -> Self:
        """Return the demand with another peak, in users, requests or requests per second."""
        load = peak_load / self.peak_factor
        if self.n_batch_request is not None:
            return replace(self, users=load, n_batch_request=load)
        return replace(self, users=load) if self.users is not None else replace(self, request_rate_per_s=load)

    @property
    def lengths(self) -> tuple[Lengths, Lengths]:
        """Lengths of prompts and of responses."""
        return (
            Lengths(self.n_input_token, self.input_variation),
            Lengths(self.n_output_token, self.length_variation),
        )

    def served_load(self, in_flight: Number, rate_per_s: Number) -> Number:
        """Return the load that a replica serves, in users or requests per second.

        `in_flight`: requests in flight on the replica, any shape. `rate_per_s`: requests that it completes per
        second, of the same shape.

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

    def requests_in_flight(self, load: FloatArray, users: FloatArray, e2e_s: FloatArray) -> FloatArray:
        """Return the mean requests in flight of a replica, shape (n,), from the load of its predictions.

        They are the load itself above one request. Predictions start at one request in flight; fewer users than that,
        who think most of the time, keep ``N R / (R + Z)`` in flight by the interactive response-time law.

        `load`: shape (n,): requests in flight of the prediction. `users` and `e2e_s`: shape (n,): users of the
        replica, and response time.
        """
        waiting = users * e2e_s / (e2e_s + self.think_time_s)
        return np.where(load > 1.0, load, np.minimum(load, waiting))
