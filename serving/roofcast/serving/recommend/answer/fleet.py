"""Mixed fleet: instances of several kinds, where it costs less than any one kind."""

from typing import Final

import numpy as np

from roofcast.features.queries import FloatArray, IndexArray
from roofcast.serving.recommend.search.fleet_mix import FleetType, cheapest_fleet
from roofcast.serving.recommend.search.search import Deployment, Search, SearchTarget

MAX_TYPES: Final = 30
"""Kinds of instances in the mix: those that serve most for their price."""

MAX_KINDS: Final = 3
"""Most kinds of instances in a fleet: each is operated by itself."""

MIN_SAVING: Final = 0.995
"""Cost of a mixed fleet over that of one kind below which it is recommended."""


def mixed_fleet(search: Search, target: SearchTarget, single_cost: float) -> list[Deployment]:
    """Return the parts of a fleet that is cheaper than one kind of instance; empty if there is none.

    Each replica carries a share of the peak in proportion to its capacity.

    `single_cost`: least cost of one kind, in US dollars per hour; infinite if there is none.
    """
    pairs, required = search.pairs, search.demand.required_load
    types, served = _types(search, target)
    if len(types) < 2 or search.demand.is_endless or pairs.objective != "cost":
        return []
    price = pairs.price[types]
    if max(float((price / served).min()) * required, float(np.sort(price)[:2].sum())) >= MIN_SAVING * single_cost:
        return []
    search.grid.evaluate(search.around_capacity(np.unique(pairs.row[types]), target.confidence))
    types, served = _types(search, target)
    row = pairs.row[types]
    is_known = search.state(target.confidence).capacities.is_known[row]
    types, served = types[is_known], served[is_known]
    price, n_node = pairs.price[types], pairs.n_node[types]
    kinds = [FleetType(float(p), float(s), float(n)) for p, s, n in zip(price, served, n_node, strict=True)]
    fleet = cheapest_fleet(kinds, required, MAX_KINDS)
    counts = np.array(fleet or (), dtype=np.intp)
    cost = float(price @ counts) if fleet else np.inf
    if cost >= MIN_SAVING * single_cost or cost > search.budget or (counts > 0).sum() < 2:
        return []
    used = np.flatnonzero(counts)
    return _parts(types[used], counts[used], float(served @ counts), search, target)


def _types(search: Search, target: SearchTarget) -> tuple[IndexArray, FloatArray]:
    most, pairs = search.state(target.confidence).capacities.served, search.pairs
    pair = np.flatnonzero((most[pairs.row] > 0) & (pairs.per_instance >= 1))
    served = most[pairs.row[pair]] * np.floor(pairs.per_instance[pair])
    order = np.lexsort((pair, -served))
    _, first = np.unique(pairs.offer[pair][order], return_index=True)
    best = order[first]
    value = pairs.price[pair[best]] / served[best]
    best = best[np.lexsort((pair[best], value))][:MAX_TYPES]
    return np.asarray(pair[best], dtype=np.intp), np.asarray(served[best], dtype=np.float64)


def _parts(
    pair: IndexArray, n_instance: IndexArray, served: float, search: Search, target: SearchTarget
) -> list[Deployment]:
    pairs, capacities = search.pairs, search.state(target.confidence).capacities
    row, per_instance = pairs.row[pair], np.floor(pairs.per_instance[pair])
    load = search.share_load(row, served / capacities.served[row], capacities.load[row])
    return [
        Deployment(
            row=int(row[k]),
            offer=int(pairs.offer[pair[k]]),
            load=float(load[k]),
            capacity=float(capacities.load[row[k]]),
            share=float(search.demand.peak_load * capacities.served[row[k]] / served),
            n_replica=int(per_instance[k] * n_instance[k]),
            n_instance=int(n_instance[k]),
            cost=float(pairs.price[pair[k]] * n_instance[k]),
        )
        for k in range(len(pair))
    ]
