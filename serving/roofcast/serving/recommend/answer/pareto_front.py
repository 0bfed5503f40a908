"""The Pareto front: deployments that no other beats in cost and latency together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.serving.recommend.answer.recommendation import Entry, FrontPoint
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.load_grid import LATENCY
from roofcast.serving.recommend.search.market import Pairs
from roofcast.serving.recommend.search.problem import SearchProblem
from roofcast.serving.recommend.search.search import Search

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

NEAR: Final = 1.3
"""How far above the estimated front a latency may lie for the learner to be asked about it."""

MOST_ASKED: Final = 150
"""Points that the learner is asked about."""

MEAN_LATENCY: Final = ("e2e_s", "mean")
"""Which tells how many requests are in flight, by Little's law."""


def pareto_front(search: Search, case: SearchProblem, entries: Sequence[Entry]) -> tuple[FrontPoint, ...]:
    """Return non-dominated deployments within the limits, the cheapest first.

    All replicas, offers and sizes are compared by the estimate; what comes near its front is predicted under its own
    share of the peak, and the predictions are compared again, together with those of the entries.

    Parameters
    ----------
    search
        That has ended.
    case
        What was asked.
    entries
        Of the same answer.
    """
    every = [*_near_points(search, case), *map(_point_of, entries)]
    points = [*{(point.offer.id, point.replica, point.n_replica): point for point in every}.values()]
    cost = np.array([point.cost_usd_per_h for point in points])
    latency = np.array([point.e2e_s for point in points])
    return tuple(points[k] for k in non_dominated(cost.round(9), latency))


def _point_of(entry: Entry) -> FrontPoint:
    """Return an entry as a point: both are forecast under the same load."""
    (e2e_s,) = (one.value for one in entry.predictions if (one.metric, one.statistic) == LATENCY)
    return FrontPoint(
        cost_usd_per_h=entry.cost_usd_per_h,
        e2e_s=e2e_s,
        p_limits_met=entry.p_limits_met,
        offer=entry.offer,
        replica=entry.replica,
        load_per_replica=entry.load_per_replica,
        n_replica=entry.n_replica,
        n_instance=entry.n_instance,
    )


def _near_points(search: Search, case: SearchProblem) -> list[FrontPoint]:
    """Return deployments within the limits that are on the front of all that was predicted."""
    grid = search.grid
    pair, place = _points(search, _cheapest_pairs(search.pairs), case)
    near = _near_front(_sizes(search, pair, place, case)[2], grid.log_latency[search.pairs.row[pair], place])
    if not len(near):
        return []
    pair, place = pair[near], place[near]
    row = search.pairs.row[pair]
    is_sized_by_level = grid.needs_rate or grid.demand.headroom > 0
    if is_sized_by_level:
        wanted = np.zeros_like(grid.known)
        wanted[row, place] = True
        grid.ask(wanted)
    n_replica, n_instance, cost = _sizes(search, pair, place, case)  # of what the learner just said
    carried = _carried(search, row, n_replica, place)
    is_met = carried.chance >= case.confidence
    if is_sized_by_level:
        is_met &= grid.chance[row, place] >= case.confidence
    return [
        FrontPoint(
            cost_usd_per_h=float(cost[k]),
            e2e_s=float(carried.latency_s[k]),
            p_limits_met=float(carried.chance[k]),
            offer=case.offers[search.pairs.offer[pair[k]]],
            replica=case.replicas[row[k]],
            load_per_replica=float(carried.in_flight[k]),
            n_replica=int(n_replica[k]),
            n_instance=int(n_instance[k]),
        )
        for k in non_dominated(np.where(is_met, cost, np.inf), carried.latency_s)
    ]


@dataclass(frozen=True, slots=True)
class _Carried:
    """What is predicted of replicas under their own share of the peak; arrays have shape (n_point,)."""

    latency_s: FloatArray
    chance: FloatArray
    in_flight: FloatArray


def _carried(search: Search, row: IndexArray, n_replica: FloatArray, capacity: IndexArray) -> _Carried:
    """Return the predictions at the load that each replica carries, those of the same replica and load asked once."""
    grid = search.grid
    forecaster, demand = grid.forecaster, grid.demand
    load = search.own_load(row, n_replica, capacity)
    (rows, loads), back = np.unique(np.stack([row, load]), axis=1, return_inverse=True)
    rows = rows.astype(np.intp)
    asked = {statistic: list(metrics) for statistic, metrics in grid.asked.items()}
    needs_mean = forecaster.is_open or demand.think_time_s > 0
    for metric, statistic in (LATENCY, MEAN_LATENCY) if needs_mean else (LATENCY,):
        asked[statistic] = [*dict.fromkeys([*asked.get(statistic, []), metric])]
    _, whole = forecaster.estimate(rows, loads, {})
    found = forecaster.predict(rows, loads, asked, whole)
    back = back.ravel()
    in_flight = load
    if needs_mean:
        mean_s = np.exp(found[MEAN_LATENCY].log_value)[back]
        in_flight = (
            load * mean_s if forecaster.is_open else _waiting(load, demand.peak_load / n_replica, mean_s, demand)
        )
    return _Carried(np.exp(found[LATENCY].log_value)[back], grid.chance_of(found, loads)[back], in_flight)


def _waiting(load: FloatArray, users: FloatArray, mean_s: FloatArray, demand: Demand) -> FloatArray:
    """Return the requests in flight of users who think: no fewer than one are predicted, and few users send less."""
    waiting = users * mean_s / (mean_s + demand.think_time_s)
    return np.where(load > 1.0, load, np.minimum(load, waiting))


def non_dominated(cost: FloatArray, latency: FloatArray) -> IndexArray:
    """Return the places of points that no other is better than in one and as good in the other, by rising cost.

    Of several that are the same the first is kept; infinite costs are none.

    Examples
    --------
    >>> non_dominated(np.array([1.0, 2.0, 3.0, 2.0]), np.array([5.0, 4.0, 4.5, 6.0])).tolist()
    [0, 1]
    """
    order = np.lexsort((latency, cost))
    order = order[np.isfinite(cost[order])]
    best = np.minimum.accumulate(np.concatenate([[np.inf], latency[order]]))[:-1]
    return np.asarray(order[latency[order] < best], dtype=np.intp)


def _cheapest_pairs(pairs: Pairs) -> IndexArray:
    """Return the cheapest pair of each replica and room, and all of which there are only so many."""
    order = np.lexsort((pairs.price, pairs.per_instance, pairs.row))
    row, per = pairs.row[order], pairs.per_instance[order]
    is_first = np.concatenate([[True], (np.diff(row) != 0) | (np.diff(per) != 0)])[: len(order)]
    return np.sort(order[is_first | np.isfinite(pairs.n_node[order])])


def _points(search: Search, kept: IndexArray, case: SearchProblem) -> tuple[IndexArray, IndexArray]:
    """Return pair and level of every deployment that may meet the limits, of those of one size the least level."""
    capacity = search.standing(case.confidence).capacity[search.pairs.row[kept]]
    which, place = np.nonzero(np.arange(search.grid.loads.shape[1]) <= capacity[:, None])
    n_replica = _sizes(search, kept[which], place, case)[0]
    is_first = np.concatenate([[True], (np.diff(which) != 0) | (np.diff(n_replica) != 0)])[: len(which)]
    return kept[which[is_first]], np.asarray(place[is_first], dtype=np.intp)


def _sizes(
    search: Search, pair: IndexArray, place: IndexArray, case: SearchProblem
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return replicas, instances and cost of deployments; the cost is infinite beyond the nodes or the budget."""
    grid, pairs = search.grid, search.pairs
    n_replica = np.maximum(np.ceil(grid.needed / grid.served[pairs.row[pair], place] - 1e-9), 1.0)
    n_instance = np.ceil(n_replica / pairs.per_instance[pair] - 1e-9)
    cost = n_instance * pairs.price[pair]
    is_possible = (n_instance <= pairs.n_node[pair]) & (cost <= case.budget)
    return n_replica, n_instance, np.where(is_possible, cost, np.inf)


def _near_front(cost: FloatArray, log_latency: FloatArray) -> IndexArray:
    """Return the places of the points that come nearest to the estimated front, `MOST_ASKED` at most."""
    order = np.lexsort((log_latency, cost))
    order = order[np.isfinite(cost[order])]
    best = np.minimum.accumulate(log_latency[order])
    above = log_latency[order] - best
    near = np.flatnonzero(above <= np.log(NEAR))
    if len(near) > MOST_ASKED:
        near = near[np.sort(np.argsort(above[near], kind="stable")[:MOST_ASKED])]
    return np.asarray(order[near], dtype=np.intp)
