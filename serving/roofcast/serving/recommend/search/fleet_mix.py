"""Cheapest mix of instance types that serves a demand: an integer programme."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.queries import FloatArray

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
