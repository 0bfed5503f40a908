"""Pareto front of cost and end-to-end latency."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from roofcast.features.queries import FloatArray, IndexArray
from roofcast.serving.recommend.answer.parts import Entry, FrontPoint, deployment_fields
from roofcast.serving.recommend.search.deployment_sizes import Pairs, Sizes
from roofcast.serving.recommend.search.search import Search

LATENCY: Final = ("e2e_s", "p50")
MEAN_LATENCY: Final = ("e2e_s", "mean")
"""Gives the requests in flight by Little's law."""

NEAR_RATIO: Final = 1.3
"""Latency over the estimated front up to which a deployment is predicted."""

MAX_PREDICTED: Final = 150


def pareto_front(search: Search, entries: Sequence[Entry]) -> tuple[FrontPoint, ...]:
    """Return the non-dominated deployments within the limits, the cheapest first; none without a load.

    All replicas, offers and sizes are compared by the estimate. Those near its front are predicted at their own share
    of the peak, and compared again together with the entries.
    """
    if search.demand.is_endless:
        return ()
    points = {(one.offer.id, one.replica, one.n_replica): one for one in [*_predicted(search), *map(_of, entries)]}
    front = [*points.values()]
    cost = np.array([point.cost_usd_per_h for point in front])
    latency = np.array([point.e2e_s for point in front])
    return tuple(front[k] for k in non_dominated(cost.round(9), latency))


def _of(entry: Entry) -> FrontPoint:
    (e2e_s,) = (one.value for one in entry.predictions if (one.metric, one.statistic) == LATENCY)
    return FrontPoint(**{name: value for name, value in entry if name in FrontPoint.model_fields}, e2e_s=e2e_s)


def _predicted(search: Search) -> list[FrontPoint]:
    grid, problem = search.grid, search.problem
    pair, level = _sized_pairs(search)
    sizes = _sizes(search, pair, level)
    near = _near_front(sizes.cost, grid.log_latency[search.pairs.row[pair], level])
    if not len(near):
        return []
    pair, level = pair[near], level[near]
    row = search.pairs.row[pair]
    is_sized_by_level = grid.has_think_time or search.demand.headroom > 0
    if is_sized_by_level:
        wanted = np.zeros_like(grid.is_known)
        wanted[row, level] = True
        grid.evaluate(wanted)
    sizes = _sizes(search, pair, level)
    latency_s, p_met, in_flight = _predict_share(search, row, sizes.n_replica, level)
    is_met = p_met >= problem.confidence
    if is_sized_by_level:
        is_met &= grid.p_met[row, level] >= problem.confidence
    return [
        FrontPoint(
            **deployment_fields(
                problem.replicas[row[k]],
                problem.offers[search.pairs.offer[pair[k]]],
                int(sizes.n_replica[k]),
                int(sizes.n_instance[k]),
                float(sizes.cost[k]),
            ),
            e2e_s=float(latency_s[k]),
            p_limits_met=float(p_met[k]),
            load_per_replica=float(in_flight[k]),
        )
        for k in non_dominated(np.where(is_met, sizes.cost, np.inf), latency_s)
    ]


def _predict_share(
    search: Search, row: IndexArray, n_replica: FloatArray, level: IndexArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    grid, evaluator, demand = search.grid, search.evaluator, search.demand
    load = search.share_load(row, n_replica, grid.loads[row, level])
    (rows, loads), back = np.unique(np.stack([row, load]), axis=1, return_inverse=True)
    rows, back = rows.astype(np.intp), back.ravel()
    needs_mean = evaluator.is_open or demand.think_time_s > 0
    quantities = [*grid.quantities, LATENCY, *([MEAN_LATENCY] if needs_mean else [])]
    medians = evaluator.predict(rows, loads, quantities, evaluator.estimate_means(rows, loads))
    in_flight = load
    if needs_mean:
        mean_s = np.exp(medians[MEAN_LATENCY].log_value)[back]
        users = demand.peak_load / n_replica
        in_flight = load * mean_s if evaluator.is_open else demand.requests_in_flight(load, users, mean_s)
    return np.exp(medians[LATENCY].log_value)[back], grid.limits.p_met(medians, loads)[back], in_flight


def non_dominated(cost: FloatArray, latency: FloatArray) -> IndexArray:
    """Return the indices of the non-dominated points of finite cost, by rising cost; of equal points the first.

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
    order = np.lexsort((pairs.price, pairs.per_instance, pairs.row))
    row, per = pairs.row[order], pairs.per_instance[order]
    is_first = np.concatenate([[True], (np.diff(row) != 0) | (np.diff(per) != 0)])[: len(order)]
    return np.sort(order[is_first | np.isfinite(pairs.n_node[order])])


def _sized_pairs(search: Search) -> tuple[IndexArray, IndexArray]:
    pairs = _cheapest_pairs(search.pairs)
    capacity = search.state(search.problem.confidence).capacities.level[search.pairs.row[pairs]]
    which, level = np.nonzero(np.arange(search.grid.loads.shape[1]) <= capacity[:, None])
    n_replica = _sizes(search, pairs[which], level).n_replica
    is_first = np.concatenate([[True], (np.diff(which) != 0) | (np.diff(n_replica) != 0)])[: len(which)]
    return pairs[which[is_first]], np.asarray(level[is_first], dtype=np.intp)


def _sizes(search: Search, pair: IndexArray, level: IndexArray) -> Sizes:
    served = search.grid.served[search.pairs.row[pair], level]
    sizes = search.pairs.size(pair, search.demand.required_load, served)
    return replace(sizes, cost=np.where(sizes.cost <= search.pairs.budget, sizes.cost, np.inf))


def _near_front(cost: FloatArray, log_latency: FloatArray) -> IndexArray:
    order = np.lexsort((log_latency, cost))
    order = order[np.isfinite(cost[order])]
    above = log_latency[order] - np.minimum.accumulate(log_latency[order])
    near = np.flatnonzero(above <= np.log(NEAR_RATIO))
    if len(near) > MAX_PREDICTED:
        near = near[np.sort(np.argsort(above[near], kind="stable")[:MAX_PREDICTED])]
    return np.asarray(order[near], dtype=np.intp)
