"""Mixed fleet: instances of several kinds, where it costs less than any one kind."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.queries import FloatArray, IndexArray
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
    if cost >= MIN_SAVING * single_cost or cost > search.pairs.budget or (counts > 0).sum() < 2:
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
    load = search.share_load(row, served / capacities.served[row], capacities.busiest[row])
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


TOLERANCE: Final = 1e-6
"""Share of the demand that may stay unserved, for rounding of the solver."""

ALIKE: Final = 1e-4
"""Relative difference of costs that count as equal; among equal costs fewer instances are preferred."""

MAX_ENUMERATED: Final = 10_000
"""Number of fleets up to which all are enumerated instead of solved."""

_MAX_NODE: Final = 2_000
"""Node limit of the branch and cut; the best fleet up to then is returned."""


@dataclass(frozen=True, slots=True)
class FleetType:
    """Instance type of a fleet.

    - `cost`: Of one instance, in any unit.
    - `served`: Load that one instance serves, in the unit of the demand.
    - `most`: Number of instances available.
    """

    cost: float
    served: float
    most: float = math.inf


def cheapest_fleet(types: Sequence[FleetType], needed: float, max_kinds: int) -> tuple[int, ...] | None:
    """Return the numbers of instances of the cheapest fleet that serves a demand; None if the supply is insufficient.

    Among costs within `ALIKE` it is one of the fewest instances; the order of types decides between identical ones.

    - `types`: Each serves something.
    - `needed`: Above 0.
    - `max_kinds`: Most types in a fleet.

    Notes
    -----
    HiGHS solves the integer programme by branch and cut to `ALIKE`, unless all fleets can be enumerated. Every
    instance has a small fee added, so that among equal costs fewer instances win. Dominated types are dropped first.

    References
    ----------
    Q. Huangfu and J. A. J. Hall, "Parallelizing the dual revised simplex method", Mathematical Programming
    Computation 10, 2018.

    Examples
    --------
    An instance for 10 users costs 3, one for 4 users 1.5. For 12 users three small ones cost as much as one of each:

    >>> cheapest_fleet([FleetType(3.0, 10.0), FleetType(1.5, 4.0)], 12, max_kinds=2)
    (1, 1)
    >>> cheapest_fleet([FleetType(3.0, 10.0, most=1)], 12, max_kinds=2)
    """
    used = _undominated(types)
    if not used:
        return None
    cost, served = (np.array([getattr(types[i], name) for i in used]) for name in ("cost", "served"))
    coverage = served / needed
    most = np.minimum(np.floor([types[i].most for i in used]), np.ceil(1 / coverage))
    fee = ALIKE * float(cost[cost > 0].min(initial=math.inf)) if cost.any() else 1.0
    price = (cost + fee) / float(cost.max() or 1.0)
    is_small = float(np.prod(most + 1) / (most.max() + 1)) <= MAX_ENUMERATED
    found = (_enumerate if is_small else _solve)(price, coverage, most, max_kinds)
    if found is None:
        return None
    counts = np.zeros(len(types), dtype=int)
    counts[used] = found
    return tuple(counts.tolist())


def _undominated(types: Sequence[FleetType]) -> list[int]:
    def key(i: int) -> tuple[float, ...]:
        return types[i].cost / types[i].served, types[i].cost, -types[i].most, i

    undominated, unlimited = [], list[FleetType]()
    for i in sorted((i for i, one in enumerate(types) if one.most >= 1), key=key):
        if any(_dominates(one, types[i]) for one in unlimited):
            continue
        undominated.append(i)
        if types[i].most == math.inf:
            unlimited.append(types[i])
    return undominated


def _dominates(one: FleetType, other: FleetType) -> bool:
    n = math.ceil(other.served / one.served * (1 - TOLERANCE))
    return n * one.cost * (1.0 if n == 1 else 1 + ALIKE) <= other.cost


def _enumerate(price: FloatArray, coverage: FloatArray, most: FloatArray, max_kinds: int) -> FloatArray | None:
    last = int(most.argmax())
    others = np.delete(np.arange(len(price)), last)
    sizes = tuple((most[others] + 1).astype(int).tolist())
    counts = np.zeros((len(price), math.prod(sizes)))
    counts[others] = np.indices(sizes).reshape(len(sizes), -1) if sizes else counts[others]
    counts[last] = np.maximum(np.ceil((1 - TOLERANCE - coverage @ counts) / coverage[last]), 0.0)
    is_admitted = (counts[last] <= most[last]) & ((counts > 0).sum(axis=0) <= max_kinds)
    cost = np.where(is_admitted, price @ counts, math.inf)
    best = int(cost.argmin())
    return counts[:, best] if cost[best] < math.inf else None


def _solve(price: FloatArray, coverage: FloatArray, most: FloatArray, max_kinds: int) -> FloatArray | None:
    from scipy import optimize  # noqa: PLC0415  (only fleets of several instance types need it)

    n, none = len(price), np.zeros(len(price))  # a second variable for each type: 1 if the fleet has any of it
    links = np.hstack([np.eye(n), -np.diag(most)])
    rows = np.vstack([np.concatenate([coverage, none]), links, np.concatenate([none, np.ones(n)])])
    low, high = np.full(n + 2, -math.inf), np.zeros(n + 2)
    low[0], high[0], high[-1] = 1.0, math.inf, max_kinds
    solution = optimize.milp(
        np.concatenate([price, none]),
        integrality=np.ones(2 * n, dtype=np.int64),
        bounds=optimize.Bounds(0, np.concatenate([most, np.ones(n)])),
        constraints=optimize.LinearConstraint(rows, low, high),
        options={"mip_rel_gap": ALIKE, "node_limit": _MAX_NODE, "presolve": False},  # presolving may print
    )
    return None if solution.x is None else np.asarray(np.round(solution.x[:n]), dtype=np.float64)
