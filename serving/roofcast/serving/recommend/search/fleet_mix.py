"""Cheapest mix of instance types that serves a demand: an integer programme."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.data.errors import InputError
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
    - `pool`: Name of the accelerator pool that it shares with other types; empty if none.
    - `n_accelerator`: Accelerators of the pool that one instance takes.
    """

    cost: float
    served: float
    most: float = math.inf
    pool: str = ""
    n_accelerator: float = 0.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """Numbers of instances in the order of the types.

    `missing` is the part of the demand that is not served; if there is any, no fleet serves more than this one.
    """

    counts: tuple[int, ...]
    cost: float
    served: float
    missing: float


def cheapest_fleet(
    types: Sequence[FleetType],
    needed: float,
    pools: Mapping[str, float] | None = None,
    max_kinds: int | None = None,
) -> Fleet:
    """Return the cheapest fleet that serves a demand; among costs within `ALIKE` one of the fewest instances.

    Raises `InputError` if a cost, a load or the demand is negative or not a number.

    - `types`: Their order only decides between identical types.
    - `pools`: Accelerators of each pool; a pool that is not named is unlimited.
    - `max_kinds`: Most types in a fleet; None for any number.

    Returns
    -------
    Fleet
        If the supply is insufficient, the cheapest of those that serve most, with what is `missing`.

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

    >>> cheapest_fleet([FleetType(3.0, 10.0), FleetType(1.5, 4.0)], 12)
    Fleet(counts=(1, 1), cost=4.5, served=14.0, missing=0.0)
    >>> cheapest_fleet([FleetType(3.0, 10.0, most=1)], 12).missing
    2.0
    """
    _check(types, needed)
    counts = np.zeros(len(types))
    used = _undominated(types) if needed > 0 else []
    if used:
        programme = _Programme([types[i] for i in used], float(needed), pools or {}, max_kinds or len(used))
        counts[used] = programme.counts()
    cost, served = (np.array([getattr(t, name) for t in types], dtype=float) for name in ("cost", "served"))
    total = float(counts @ served)
    missing = needed - total
    return Fleet(
        counts=tuple(int(n) for n in counts),
        cost=float(counts @ cost),
        served=total,
        missing=float(missing) if missing > TOLERANCE * needed else 0.0,
    )


def _check(types: Sequence[FleetType], needed: float) -> None:
    for i, one in enumerate(types):
        for name in ("cost", "served", "n_accelerator"):
            value = getattr(one, name)
            if not 0 <= value < math.inf:
                raise InputError(f"types.{i}.{name}", f"must be a number of at least 0, got {value}")
        if not one.most >= 0:
            raise InputError(f"types.{i}.most", f"must be at least 0, got {one.most}")
    if not 0 <= needed < math.inf:
        raise InputError("needed", f"must be a number of at least 0, got {needed}")


def _undominated(types: Sequence[FleetType]) -> list[int]:
    def key(i: int) -> tuple[float, ...]:
        return types[i].cost / types[i].served, types[i].cost, types[i].n_accelerator, -types[i].most, i

    undominated, unlimited = [], list[FleetType]()
    for i in sorted((i for i, one in enumerate(types) if one.served > 0 and one.most >= 1), key=key):
        if any(_dominates(one, types[i]) for one in unlimited):
            continue
        undominated.append(i)
        if types[i].most == math.inf:
            unlimited.append(types[i])
    return undominated


def _dominates(one: FleetType, other: FleetType) -> bool:
    n = math.ceil(other.served / one.served * (1 - TOLERANCE))
    is_free = not one.pool or (one.pool == other.pool and n * one.n_accelerator <= other.n_accelerator)
    return is_free and n * one.cost * (1.0 if n == 1 else 1 + ALIKE) <= other.cost


class _Programme:
    def __init__(self, types: Sequence[FleetType], needed: float, pools: Mapping[str, float], max_kinds: int) -> None:
        self.max_kinds = max_kinds
        cost = np.array([t.cost for t in types])
        self.coverage = np.array([t.served for t in types]) / needed
        self.most = np.minimum(np.floor([t.most for t in types]), np.ceil(1 / self.coverage))
        names = sorted(pools.keys() & {t.pool for t in types})
        self.takes = [np.array([t.n_accelerator if t.pool == name else 0.0 for t in types]) for name in names]
        self.holds = [float(pools[name]) for name in names]
        fee = ALIKE * float(cost[cost > 0].min(initial=math.inf)) if cost.any() else 1.0
        self.price = (cost + fee) / float(cost.max() or 1.0)

    def counts(self) -> FloatArray:
        counts = self._enumerate() if self._n_fleet() <= MAX_ENUMERATED else self._minimise(self.price, 1.0)
        if counts is not None:
            return counts
        greatest = self._minimise(-self.coverage, 0.0)
        if greatest is None:
            return np.zeros(len(self.price))
        counts = self._minimise(self.price, float(self.coverage @ greatest) * (1 - TOLERANCE))
        return greatest if counts is None else counts

    def _n_fleet(self) -> float:
        return math.inf if self.takes else float(np.prod(self.most + 1) / (self.most.max() + 1))

    def _enumerate(self) -> FloatArray | None:
        last = int(self.most.argmax())
        others = np.delete(np.arange(len(self.price)), last)
        sizes = tuple((self.most[others] + 1).astype(int).tolist())
        counts = np.zeros((len(self.price), math.prod(sizes)))
        counts[others] = np.indices(sizes).reshape(len(sizes), -1) if sizes else counts[others]
        left = 1 - TOLERANCE - self.coverage @ counts
        counts[last] = np.maximum(np.ceil(left / self.coverage[last]), 0.0)
        is_admitted = (counts[last] <= self.most[last]) & ((counts > 0).sum(axis=0) <= self.max_kinds)
        cost = np.where(is_admitted, self.price @ counts, math.inf)
        best = int(cost.argmin())
        return counts[:, best] if cost[best] < math.inf else None

    def _minimise(self, objective: FloatArray, coverage: float) -> FloatArray | None:
        from scipy import optimize  # noqa: PLC0415  (only fleets of several instance types need it)

        n = len(objective)
        if self.max_kinds >= n:
            rows = np.vstack([self.coverage, *self.takes])
            low, high, most = [coverage, *(-math.inf for _ in self.holds)], [math.inf, *self.holds], self.most
        else:  # a second variable for each type: 1 if the fleet has any of it
            none = np.zeros((1 + len(self.takes), n))
            of_counts = np.hstack([np.vstack([self.coverage, *self.takes]), none])
            links = np.hstack([np.eye(n), -np.diag(self.most)])
            kinds = np.concatenate([np.zeros(n), np.ones(n)])
            rows = np.vstack([of_counts, links, kinds])
            low = [coverage, *(-math.inf for _ in range(len(rows) - 1))]
            high = [math.inf, *self.holds, *(0.0 for _ in range(n)), float(self.max_kinds)]
            objective, most = np.concatenate([objective, np.zeros(n)]), np.concatenate([self.most, np.ones(n)])
        solution = optimize.milp(
            objective,
            integrality=np.ones(len(objective), dtype=np.int64),
            bounds=optimize.Bounds(0, most),
            constraints=optimize.LinearConstraint(rows, low, high),
            options={"mip_rel_gap": ALIKE, "node_limit": _MAX_NODE, "presolve": False},  # presolving may print
        )
        return None if solution.x is None else np.asarray(np.round(solution.x[:n]), dtype=np.float64)
