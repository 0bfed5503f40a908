"""What is known of every replica at every load: the estimate everywhere, the learner's word where it was asked."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError
from roofcast.features.arrays import take_rows
from roofcast.features.engine.estimate import Estimate
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import Limit
from roofcast.serving.recommend.search.confidence import chance_of_all
from roofcast.serving.recommend.search.evaluation import THROUGHPUT, Evaluator, Medians

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Quantity = tuple[str, str]
"""A metric and its statistic."""

TYPICAL_SD: Final = 0.3
"""Standard deviation of the logarithm where the learner has not been asked; it steers the search alone."""

SLACK: Final = 2.0
"""How far throughput at a load that was not asked about may exceed what is told by the nearest load that was."""

MOST_EXCESS: Final = 1e12
"""What is told of a limit that nothing can meet."""

RATE: Final[Quantity] = (THROUGHPUT, "mean")
LATENCY: Final[Quantity] = ("e2e_s", "p50")


class LoadGrid:
    """Replicas by levels of load; every array has shape (n_replica, n_level) unless it says otherwise.

    Parameters
    ----------
    forecaster
        Of the replicas.
    demand
        Its limits are what is to be met.
    loads
        Of one replica, rising: requests in flight, or requests a second if the demand is a rate.
    top : shape (n_replica,)
        Place of the greatest level that a replica may be loaded to; -1 for one that is not to be used. Rates that the
        estimate finds to be more than a replica can serve are not used either.

    Attributes
    ----------
    needed
        What all replicas together must be able to serve: users, or requests a second.
    known
        Where the learner was asked.
    chance
        Probability that all limits are met; a guess where the learner was not asked.
    served, most_served
        What one replica serves of the demand, users or requests a second; and what it serves at most with so many
        requests in flight or fewer. Guesses where the learner was not asked.
    log_latency
        Logarithm of the estimated mean of the end-to-end latency.
    """

    def __init__(self, forecaster: Evaluator, demand: Demand, loads: FloatArray, top: IndexArray) -> None:
        self.forecaster, self.demand, self.loads = forecaster, demand, loads
        self.limits = limits_of_replicas(demand)
        self.needed = demand.required_load
        limited = [(limit.metric, limit.statistic) for limit in self.limits]
        self.needs_rate = demand.think_time_s > 0
        quantities = dict.fromkeys([*limited, *([RATE] if self.needs_rate else [])])
        self.asked: dict[str, list[str]] = {}
        for metric, statistic in quantities:
            self.asked.setdefault(statistic, []).append(metric)
        self._estimates, self.log_latency, n_served, self._whole = _estimates(forecaster, loads, top, self.asked)
        self._first = (np.cumsum(top >= 0) - 1) * loads.shape[1]
        self.top = np.minimum(top, n_served - 1)
        shape = len(top), loads.shape[1]
        self.known = np.zeros(shape, dtype=bool)
        self._offset = {quantity: np.zeros(shape) for quantity in quantities}
        self._sd = {quantity: np.full(shape, TYPICAL_SD) for quantity in quantities}
        self._errors = {limit.metric: forecaster.errors(limit.metric) for limit in self.limits}
        self.chance = np.empty(shape)
        self.served = self.most_served = loads
        if self.needs_rate:
            self.served, self.most_served = np.empty(shape), np.empty(shape)
        self._renew(np.arange(len(top)))

    def ask(self, wanted: BoolArray) -> None:
        """Ask the learner at some points, and learn from it what lies near them."""
        rows, places = np.nonzero(wanted & ~self.known)
        if len(rows):
            self.learn(rows, places)

    def learn(self, rows: IndexArray, places: IndexArray, also: Collection[Quantity] = ()) -> dict[Quantity, Medians]:
        """Ask the learner at points, learn from it what lies near them, and return what it said.

        Parameters
        ----------
        rows, places : shape (n_point,)
            Of replicas and levels.
        also
            What else to ask, which is not learnt from.
        """
        asked = {statistic: list(metrics) for statistic, metrics in self.asked.items()}
        for metric, statistic in also:
            asked[statistic] = [*dict.fromkeys([*asked.get(statistic, []), metric])]
        whole = take_rows(self._whole, self._first[rows] + places)
        found = self.forecaster.predict(rows, self.loads[rows, places], asked, whole)
        for quantity in self._offset:
            estimate = self._estimates[quantity]
            self._offset[quantity][rows, places] = found[quantity].log_value - estimate[rows, places]
            self._sd[quantity][rows, places] = found[quantity].sd
        self.known[rows, places] = True
        self._renew(np.unique(rows))
        return found

    def chance_of(self, found: Mapping[Quantity, Medians], load: FloatArray) -> FloatArray:
        """Return the probability that all limits are met where the learner said so much, shape (n_point,)."""
        chances = [np.ones_like(load)]
        for limit in self.limits:
            told = found[limit.metric, limit.statistic]
            z = -self._over(limit, told.log_value, load) / told.sd
            chances.append(self._errors[limit.metric].p_below(z))
        return chance_of_all(chances, ["", *(limit.metric for limit in self.limits)])

    def in_flight(self, rows: IndexArray, places: IndexArray) -> FloatArray:
        """Return the requests in flight on replicas at levels; at a rate the estimated ones, by Little's law."""
        load = self.loads[rows, places]
        return load * np.exp(self.log_latency[rows, places]) if self.forecaster.is_open else load

    def excess_at_least(self, rows: IndexArray, confidence: float) -> FloatArray:
        """Return what stays below with some confidence over each limit, at the least load: shape (n_row, n_limit)."""
        every = []
        for limit in self.limits:
            sd = self._sd[limit.metric, limit.statistic][rows, 0]
            every.append(self._log_over(limit, rows)[:, 0] + sd * self._errors[limit.metric].z_at(confidence))
        return np.asarray(np.exp(np.minimum(np.stack(every, axis=1), math.log(MOST_EXCESS))), dtype=np.float64)

    def reached_at_least(self, limit: Limit, rows: IndexArray, confidence: float) -> FloatArray:
        """Return what the metric of a floor is with some confidence at least, at the least load: shape (n_row,)."""
        quantity = limit.metric, limit.statistic
        log_value = self._estimates[quantity][rows, 0] + self._offset[quantity][rows, 0]
        sd = self._sd[quantity][rows, 0]
        return np.asarray(np.exp(log_value - sd * self._errors[limit.metric].z_at(confidence)), dtype=np.float64)

    def _renew(self, rows: IndexArray) -> None:
        """Spread what was learnt along the loads of some replicas, and compute what follows from it."""
        left, right, share = _neighbours(self.known[rows])
        at = np.arange(len(rows))[:, None]
        for values in (*self._offset.values(), *self._sd.values()):
            mine = values[rows]
            values[rows] = mine[at, left] * (1 - share) + mine[at, right] * share
        chances = [np.ones_like(share)]
        for limit in self.limits:
            z = -self._log_over(limit, rows) / self._sd[limit.metric, limit.statistic][rows]
            chances.append(self._errors[limit.metric].p_below(z))
        self.chance[rows] = chance_of_all(chances, ["", *(limit.metric for limit in self.limits)])
        if self.needs_rate:
            rate = np.exp(self._estimates[RATE][rows] + self._offset[RATE][rows]) / self.demand.n_output_token
            users = self.loads[rows]
            self.served[rows] = self.demand.served_load(users, rate)
            most = self.demand.served_load(users, rate * np.where(self.known[rows], 1.0, SLACK))
            self.most_served[rows] = np.maximum.accumulate(most, axis=1)

    def _log_over(self, limit: Limit, rows: IndexArray) -> FloatArray:
        """Return the logarithm of the median over the limit, of a floor of the limit over the median."""
        quantity = limit.metric, limit.statistic
        return self._over(limit, self._estimates[quantity][rows] + self._offset[quantity][rows], self.loads[rows])

    def _over(self, limit: Limit, log_value: FloatArray, load: FloatArray) -> FloatArray:
        if not limit.is_floor:
            return np.asarray(log_value - math.log(limit.value))
        return np.asarray(np.log(floor_per_replica(limit, self.demand, load)) - log_value)


def limits_of_replicas(demand: Demand) -> list[Limit]:
    """Return the limits that a replica may miss: who serves a rate meets the floors that `check_floors` admits."""
    return [limit for limit in demand.limits if not (limit.is_floor and demand.users is None)]


def check_floors(demand: Demand) -> None:
    """Raise if a floor on throughput is above what requests at a rate can bring, however many replicas there are.

    Raises
    ------
    InputError
        If it is above requests a second at the peak times output tokens of each.
    """
    if demand.users is not None:
        return
    most = demand.peak_load * demand.n_output_token
    for limit in demand.limits:
        if limit.is_floor and limit.value > most * (1 + 1e-9):
            rate = limit.value / (demand.n_output_token * demand.peak_factor)
            raise InputError(
                "limits",
                f"{limit.text} is more than the requests bring: a peak of {demand.peak_load:.10g} a second times "
                f"{demand.n_output_token:.10g} output tokens is {most:.10g} tokens/s; lower the floor to that, or "
                f"raise request_rate_per_s to {rate:.10g}",
            )


def floor_per_replica(limit: Limit, demand: Demand, users: FloatArray) -> FloatArray:
    """Return the throughput that each replica needs for a floor on that of the whole deployment.

    Notes
    -----
    Of ``U`` users at the peak a replica with ``n`` requests in flight and a throughput of ``x`` tokens a second has
    ``n + x Z / O``, where they think for ``Z`` and answers have ``O`` tokens. The replicas that hold all of them make
    ``x U / (n + x Z / O)``, which reaches the floor ``F`` if ``x >= F n / (U - F Z / O)``.
    """
    peak = demand.required_load * (1.0 - demand.headroom)
    left = peak - limit.value * demand.think_time_s / demand.n_output_token
    return limit.value * users / left if left > 0 else np.full_like(users, np.inf)


def throughput_of_all(demand: Demand, users: FloatArray, token_per_s: FloatArray) -> FloatArray:
    """Return the throughput of a whole deployment of such replicas at the peak; the inverse of `floor_per_replica`.

    Parameters
    ----------
    demand
        Of users.
    users, token_per_s : shape (n_replica,)
        Requests in flight on a replica, and what it makes then.

    Examples
    --------
    Ten users, each alone on a replica of 50 tokens/s, who think 2 s after an answer of 100 tokens that took 2 s:

    >>> demand = Demand(500, 100, 10, None, (), think_time_s=2.0)
    >>> throughput_of_all(demand, np.ones(1), np.array([50.0])).tolist()
    [250.0]
    """
    in_all = users + token_per_s * demand.think_time_s / demand.n_output_token
    return np.asarray(token_per_s * demand.peak_load / in_all, dtype=np.float64)


def _estimates(
    forecaster: Evaluator, loads: FloatArray, top: IndexArray, asked: Mapping[str, Collection[str]]
) -> tuple[dict[Quantity, FloatArray], FloatArray, IndexArray, Estimate]:
    """Return logarithms of the estimates and of the mean latency, how many levels can be served, and the estimate.

    The former are 0 for replicas that are not to be used; the last is of the others alone, level by level.
    """
    rows, n_level = np.flatnonzero(top >= 0), loads.shape[1]
    at = np.repeat(rows, n_level)
    values, e = forecaster.estimate(at, loads[rows].ravel(), asked)

    def whole(some: FloatArray) -> FloatArray:
        every = np.zeros(loads.shape)
        every[rows] = some.reshape(len(rows), n_level)
        return every

    found = {(m, statistic): whole(np.log(values[statistic][m])) for statistic, some in asked.items() for m in some}
    n_served = (np.cumsum(whole(e.is_saturated.astype(float)), axis=1) == 0).sum(axis=1)
    return found, whole(np.log(e.e2e_s)), np.asarray(n_served, dtype=np.intp), e


def _neighbours(known: BoolArray) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Return the nearest known places to either side of each, and how far it is from the first to the second.

    Where one side has none, it is the other twice; where there is none at all, each place is its own.
    """
    n = known.shape[1]
    place = np.broadcast_to(np.arange(n), known.shape)
    left = np.maximum.accumulate(np.where(known, place, -1), axis=1)
    right = np.minimum.accumulate(np.where(known, place, n)[:, ::-1], axis=1)[:, ::-1]
    has_left, has_right = left >= 0, right < n
    chosen_left = np.where(has_left, left, np.where(has_right, right, place))
    chosen_right = np.where(has_right, right, chosen_left)
    width = np.maximum(chosen_right - chosen_left, 1)
    return chosen_left, chosen_right, (place - chosen_left) / width
