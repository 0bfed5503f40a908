"""The cheapest mixture of instances that serves a demand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError

FloatArray = npt.NDArray[np.float64]

TOLERANCE: Final = 1e-6
"""Share of the demand that may stay unserved for the solver's rounding."""

ALIKE: Final = 1e-4
"""Costs that differ by less than this share count as equal, and fewer instances are preferred."""

MOST_TRIED: Final = 10_000
"""Mixtures that are tried one and all; of more the solver finds the cheapest."""

_MAX_NODE: Final = 2_000
"""Longest search; the best fleet found by then is taken."""


@dataclass(frozen=True, slots=True)
class FleetType:
    """One kind of instance that a fleet may have any number of.

    Parameters
    ----------
    cost
        Of one instance, in any unit.
    served
        What one instance serves, in the unit of the demand.
    most
        Instances that there are.
    pool
        Name of the accelerators that it shares with other types; empty if none.
    n_accelerator
        How many of the pool one instance takes.
    """

    cost: float
    served: float
    most: float = math.inf
    pool: str = ""
    n_accelerator: float = 0.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """Instances of each type, in the order given.

    `missing` is what the demand needs beyond `served`; if there is any, no fleet serves more than this one.
    """

    counts: tuple[int, ...]
    cost: float
    served: float
    missing: float


def cheapest_fleet(types: Sequence[FleetType], needed: float, pools: Mapping[str, float] | None = None) -> Fleet:
    """Return the fleet of least cost that serves a demand; where costs are `ALIKE`, one of fewer instances.

    Parameters
    ----------
    types
        Kinds of instances. Their order decides between types that are alike, and nothing else.
    needed
        The demand.
    pools
        How many accelerators each pool holds; a pool that is not named holds any number.

    Returns
    -------
    Fleet
        If there is not enough for the demand, the cheapest of those that serve most, with what is `missing`.

    Raises
    ------
    InputError
        If a cost, a capacity or the demand is negative or no number.

    Notes
    -----
    An integer programme, which HiGHS solves by branch and cut to `ALIKE`, unless there are so few fleets that all
    are tried. Every instance costs a little more than asked, so that of costs that are alike the fewer instances win.
    Types that some number of another one is better than in every respect are left out first; no optimum changes.

    References
    ----------
    Q. Huangfu and J. A. J. Hall, "Parallelizing the dual revised simplex method", Mathematical Programming
    Computation 10, 2018.

    Examples
    --------
    An instance for 10 users at 3 and one for 4 users at 1.5; 12 users are cheaper by three small ones or one of each:

    >>> cheapest_fleet([FleetType(3.0, 10.0), FleetType(1.5, 4.0)], 12)
    Fleet(counts=(1, 1), cost=4.5, served=14.0, missing=0.0)
    >>> cheapest_fleet([FleetType(3.0, 10.0, most=1)], 12).missing
    2.0
    """
    _check(types, needed)
    counts = np.zeros(len(types))
    kept = _undominated(types) if needed > 0 else []
    if kept:
        counts[kept] = _Programme([types[i] for i in kept], float(needed), pools or {}).counts()
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
    """Return which types can be needed, from the best value downward: a sorted order, whatever the one given."""

    def key(i: int) -> tuple[float, ...]:
        return types[i].cost / types[i].served, types[i].cost, types[i].n_accelerator, -types[i].most, i

    kept, endless = [], list[FleetType]()
    for i in sorted((i for i, one in enumerate(types) if one.served > 0 and one.most >= 1), key=key):
        if any(_is_better(one, types[i]) for one in endless):
            continue
        kept.append(i)
        if types[i].most == math.inf:
            endless.append(types[i])
    return kept


def _is_better(one: FleetType, other: FleetType) -> bool:
    """Return whether some number of one, of which there is no end, can stand in for each of the other."""
    n = math.ceil(other.served / one.served * (1 - TOLERANCE))
    is_free = not one.pool or (one.pool == other.pool and n * one.n_accelerator <= other.n_accelerator)
    return is_free and n * one.cost * (1.0 if n == 1 else 1 + ALIKE) <= other.cost


class _Programme:
    """What a fleet must keep to: `coverage` is the share of the demand that one instance of each type serves."""

    def __init__(self, types: Sequence[FleetType], needed: float, pools: Mapping[str, float]) -> None:
        cost = np.array([t.cost for t in types])
        self.coverage = np.array([t.served for t in types]) / needed
        self.most = np.minimum(np.floor([t.most for t in types]), np.ceil(1 / self.coverage))
        names = sorted(pools.keys() & {t.pool for t in types})
        self.takes = [np.array([t.n_accelerator if t.pool == name else 0.0 for t in types]) for name in names]
        self.holds = [float(pools[name]) for name in names]
        fee = ALIKE * float(cost[cost > 0].min(initial=math.inf)) if cost.any() else 1.0
        self.price = (cost + fee) / float(cost.max() or 1.0)

    def counts(self) -> FloatArray:
        """Return the cheapest counts that serve the demand, or the cheapest of those that serve most."""
        counts = self._tried() if self._n_way() <= MOST_TRIED else self._least(self.price, 1.0)
        if counts is not None:
            return counts
        greatest = self._least(-self.coverage, 0.0)
        if greatest is None:
            return np.zeros(len(self.price))
        counts = self._least(self.price, float(self.coverage @ greatest) * (1 - TOLERANCE))
        return greatest if counts is None else counts

    def _n_way(self) -> float:
        """Return how many fleets there are of all kinds but the most numerous one; no end where pools are shared."""
        return math.inf if self.takes else float(np.prod(self.most + 1) / (self.most.max() + 1))

    def _tried(self) -> FloatArray | None:
        """Return the cheapest counts that serve the demand by trying all, which is soonest where there are few."""
        last = int(self.most.argmax())
        others = np.delete(np.arange(len(self.price)), last)
        sizes = tuple((self.most[others] + 1).astype(int).tolist())
        counts = np.zeros((len(self.price), math.prod(sizes)))
        counts[others] = np.indices(sizes).reshape(len(sizes), -1) if sizes else counts[others]
        left = 1 - TOLERANCE - self.coverage @ counts
        counts[last] = np.maximum(np.ceil(left / self.coverage[last]), 0.0)
        cost = np.where(counts[last] <= self.most[last], self.price @ counts, math.inf)
        best = int(cost.argmin())
        return counts[:, best] if cost[best] < math.inf else None

    def _least(self, objective: FloatArray, coverage: float) -> FloatArray | None:
        """Return the counts that make an objective least; None if no counts serve so much of the demand."""
        from scipy import optimize  # noqa: PLC0415  (only fleets of several instance types need it)

        found = optimize.milp(
            objective,
            integrality=np.ones(len(objective), dtype=np.int64),
            bounds=optimize.Bounds(0, self.most),
            constraints=optimize.LinearConstraint(
                np.vstack([self.coverage, *self.takes]),
                [coverage, *(-math.inf for _ in self.holds)],
                [math.inf, *self.holds],
            ),
            options={"mip_rel_gap": ALIKE, "node_limit": _MAX_NODE, "presolve": False},  # presolving may print
        )
        return None if found.x is None else np.asarray(np.round(found.x), dtype=np.float64)
