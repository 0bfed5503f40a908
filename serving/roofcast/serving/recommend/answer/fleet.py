"""Mixed fleets: instances of several kinds, where they cost less than any one kind."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.serving.recommend.search.fleet_mix import FleetType, cheapest_fleet
from roofcast.serving.recommend.search.problem import Plan, SearchProblem
from roofcast.serving.recommend.search.search import Search, SearchTarget

IndexArray = npt.NDArray[np.intp]

MOST_TYPES: Final = 30
"""Kinds of instances that are mixed: those that serve most for their price."""

WORTH: Final = 0.995
"""Share of the cost of one kind that a mixture must stay below to be worth its trouble."""


def mixed_fleet(search: Search, goal: SearchTarget, alone: float, case: SearchProblem) -> list[Plan]:
    """Return the parts of a mixture that costs less than one kind of instance alone; empty if there is none.

    Each replica carries as much of the peak as it serves of all that they serve together.

    Parameters
    ----------
    search, goal
        The search that has ended, and what for. Only what serves most for its price is mixed.
    alone
        Least cost of one kind, in US dollars an hour; infinite if none does.
    case
        What was asked.
    """
    likely = _types(search, goal)
    if len(likely) < 2 or _least(search, goal, likely) >= WORTH * alone:
        return []
    search.look_around(np.unique(search.pairs.row[likely]), goal.confidence)
    types = _types(search, goal)
    types = types[_is_known(search, goal, types)]
    served = _served(search, goal, types)
    price, most = search.pairs.price[types], search.pairs.n_node[types]
    kinds = [FleetType(float(p), float(s), float(n)) for p, s, n in zip(price, served, most, strict=True)]
    found = cheapest_fleet(kinds, search.grid.needed)
    if found.missing or found.cost >= WORTH * alone or found.cost > case.budget or _n_kind(found.counts) < 2:
        return []
    counts = np.array(found.counts)
    used = np.flatnonzero(counts)
    return _parts(types[used], counts[used], float(served @ counts), search, goal)


def _least(search: Search, goal: SearchTarget, types: IndexArray) -> float:
    """Return what no mixture costs less than: two kinds, or all that is needed of the best value."""
    price = search.pairs.price[types]
    value = float((price / _served(search, goal, types)).min())
    return max(value * search.grid.needed, float(np.sort(price)[:2].sum()))


def _is_known(search: Search, goal: SearchTarget, types: IndexArray) -> npt.NDArray[np.bool_]:
    """Return whether the learner was asked about the capacity of each pair."""
    row = search.pairs.row[types]
    place = search.standing(goal.confidence).capacity[row]
    return np.asarray((place >= 0) & search.grid.known[row, np.maximum(place, 0)], dtype=np.bool_)


def _n_kind(counts: tuple[int, ...]) -> int:
    return sum(n > 0 for n in counts)


def _types(search: Search, goal: SearchTarget) -> IndexArray:
    """Return the pairs to mix, of each offer the one that serves most, the most for its price first."""
    standing, pairs = search.standing(goal.confidence), search.pairs
    some = np.flatnonzero((standing.capacity[pairs.row] >= 0) & (pairs.per_instance >= 1))
    served = _served(search, goal, some)
    order = np.lexsort((some, -served))
    _, first = np.unique(pairs.offer[some][order], return_index=True)
    best = order[first]
    value = pairs.price[some][best] / served[best]
    return np.asarray(some[best][np.lexsort((some[best], value))][:MOST_TYPES], dtype=np.intp)


def _served(search: Search, goal: SearchTarget, pair: IndexArray) -> npt.NDArray[np.float64]:
    """Return what one instance of each pair serves of the demand."""
    row = search.pairs.row[pair]
    place = np.maximum(search.standing(goal.confidence).capacity[row], 0)
    return np.asarray(search.grid.served[row, place] * np.floor(search.pairs.per_instance[pair]), dtype=np.float64)


def _parts(
    pair: IndexArray, n_instance: npt.NDArray[np.intp], served: float, search: Search, goal: SearchTarget
) -> list[Plan]:
    """Return what each kind of instance does of what they serve together."""
    pairs, grid = search.pairs, search.grid
    row, per_instance = pairs.row[pair], np.floor(pairs.per_instance[pair])
    capacity = search.standing(goal.confidence).capacity[row]
    load = search.own_load(row, served / grid.served[row, capacity], capacity)
    return [
        Plan(
            row=int(row[k]),
            offer=int(pairs.offer[pair[k]]),
            load=float(load[k]),
            capacity=float(grid.loads[row[k], capacity[k]]),
            more=(),
            n_replica=int(per_instance[k] * n_instance[k]),
            n_instance=int(n_instance[k]),
            cost=float(pairs.price[pair[k]] * n_instance[k]),
        )
        for k in range(len(pair))
    ]
