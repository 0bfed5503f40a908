"""Why replicas are not recommended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.units import BYTE_PER_GB
from roofcast.features.engine.memory import Memory
from roofcast.serving.recommend.answer.recommendation import REASONS, Rejection
from roofcast.serving.recommend.answer.unmet_limits import DOWN
from roofcast.serving.recommend.demand.inventory import OwnedNodes
from roofcast.serving.recommend.search.load_grid import MOST_EXCESS
from roofcast.serving.recommend.search.problem import SearchProblem
from roofcast.serving.recommend.search.search import Search, SearchTarget

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_TIE: Final = (
    "of the same cost, what meets the limits with the higher probability comes first (to two digits), then what has "
    "fewer accelerators, then what was looked at first"
)

_RANK = {reason: i for i, reason in enumerate(REASONS)}


@dataclass(frozen=True, slots=True)
class Misses:
    """What stood in the way of each replica; arrays have shape (n_replica,).

    Parameters
    ----------
    reason
        Place in `REASONS`; -1 for a replica of an entry.
    excess
        What it needs over what it may; infinite beside a deployment that costs nothing, or far beyond.
    cost
        Cost, in US dollars an hour; infinite if there is none.
    is_known
        Whether the learner was asked where the cost was decided; else it is the least possible.
    limit
        Place of the limit that is missed by most.
    cheapest
        Cost of the first entry, in US dollars an hour; infinite if there is none.
    """

    reason: IndexArray
    excess: FloatArray
    cost: FloatArray
    is_known: BoolArray
    limit: IndexArray
    cheapest: float

    @property
    def order(self) -> IndexArray:
        """Indices of the replicas that are rejected, the nearest miss first."""
        rows = np.lexsort((self.cost, self.excess, self.reason))
        return np.asarray(rows[self.reason[rows] >= 0], dtype=np.intp)


def find_misses(
    search: Search,
    goal: SearchTarget,
    chosen: IndexArray,
    case: SearchProblem,
    memory: Memory,
    *,
    offer: int | None = None,
) -> Misses:
    """Return what stood in the way of each replica, as far as the search went.

    Parameters
    ----------
    search
        That has ended.
    goal, chosen
        What was wanted, and the pairs found.
    case
        What was asked.
    memory
        Of each replica.
    offer
        Place of the only offer that is looked at; None for all.
    """
    standing, pairs, n = search.standing(goal.confidence), search.pairs, len(case.replicas)
    some = np.arange(len(pairs.row)) if offer is None else np.flatnonzero(pairs.offer == offer)
    least = np.full(n, np.inf)
    np.minimum.at(least, pairs.row[some], standing.least[some])
    has_offer = np.isin(np.arange(n), pairs.row[some])
    cheapest = float(standing.cost[chosen].min(initial=np.inf))
    reason = np.full(n, _RANK["dearer"])
    reason[least.round(9) <= np.round(cheapest, 9)] = _RANK["same_cost"]
    excess = _over_cheapest(least, cheapest)
    is_over = least > case.budget
    reason[is_over], excess[is_over] = _RANK["over_budget"], least[is_over] / case.budget
    is_short = ~np.isfinite(least)
    reason[is_short], excess[is_short] = _RANK["too_few_nodes"], 1.0
    limit = np.zeros(n, dtype=np.intp)
    missed = np.flatnonzero((standing.bound < 0) & memory.fits)
    if len(missed):
        over = search.grid.excess_at_least(missed, case.confidence)
        limit[missed] = over.argmax(axis=1)
        reason[missed] = _RANK["misses_limit"]
        most = over.max(axis=1)
        found = np.maximum(most, case.confidence / search.grid.chance[missed, 0])
        excess[missed] = np.where(most >= MOST_EXCESS, np.inf, found)
    reason[~has_offer], excess[~has_offer] = _RANK["no_offer"], 1.0
    reason[~memory.fits] = _RANK["does_not_fit"]
    excess[~memory.fits] = (memory.needed_byte / np.maximum(memory.usable_byte, 1.0))[~memory.fits]
    reason[pairs.row[np.intersect1d(chosen, some)]] = -1
    return Misses(reason, excess, least, standing.is_known, limit, cheapest)


def _over_cheapest(cost: FloatArray, cheapest: float) -> FloatArray:
    """Return costs over the cheapest, at least 1; infinite beside one that costs nothing.

    Examples
    --------
    >>> _over_cheapest(np.array([4.0, 1.0, 0.0]), 2.0).tolist(), _over_cheapest(np.array([4.0, 0.0]), 0.0).tolist()
    ([2.0, 1.0, 1.0], [inf, 1.0])
    """
    if not np.isfinite(cheapest):
        return np.ones_like(cost)
    if cheapest == 0:
        return np.where(cost > 0, np.inf, 1.0)
    return np.maximum(cost / cheapest, 1.0)


def tell(
    misses: Misses, rows: Sequence[int] | IndexArray, search: Search, case: SearchProblem, memory: Memory
) -> list[Rejection]:
    """Return some of the rejections in words."""
    return [
        Rejection(
            case.replicas[i],
            REASONS[misses.reason[i]],
            _detail(int(i), misses, search, case, memory),
            float(misses.excess[i]),
        )
        for i in rows
    ]


def families(
    misses: Misses, case: SearchProblem, with_entry: Collection[str], search: Search, memory: Memory
) -> list[Rejection]:
    """Return the nearest miss of each accelerator that is in no entry, the nearest first."""
    first: dict[str, int] = {}
    for i in misses.order.tolist():
        name = case.replicas[i].accelerator
        if name not in with_entry:
            first.setdefault(name, i)
    return tell(misses, list(first.values()), search, case, memory)


def owned(
    search: Search, goal: SearchTarget, chosen: IndexArray, case: SearchProblem, memory: Memory
) -> list[Rejection]:
    """Return the nearest miss on each kind of one's own nodes that is in no entry."""
    names = np.array([replica.accelerator for replica in case.replicas])
    found = []
    for k, nodes in enumerate(case.offers):
        if isinstance(nodes, OwnedNodes) and k not in search.pairs.offer[chosen]:
            misses = find_misses(search, goal, chosen, case, memory, offer=k)
            rows = misses.order[names[misses.order] == nodes.accelerator][:1]
            told = tell(misses, rows, search, case, memory)
            found += [replace(one, detail=f"owned {nodes.instance_type}: {one.detail}") for one in told]
    return found


def _detail(i: int, misses: Misses, search: Search, case: SearchProblem, memory: Memory) -> str:
    reason = REASONS[misses.reason[i]]
    if reason == "does_not_fit":
        needed, usable = memory.needed_byte[i] / BYTE_PER_GB, memory.usable_byte[i] / BYTE_PER_GB
        return f"weights and one request need {needed:.1f} GB of {usable:.1f} GB usable"
    if reason == "misses_limit":
        return _missed(i, misses, search, case)
    if reason == "too_few_nodes":
        return "needs more nodes than there are"
    if reason == "no_offer":
        return f"no instance has room for {case.replicas[i].n_accelerator} accelerators, nor a whole number of nodes"
    return _cost(i, misses, case)


def _cost(i: int, misses: Misses, case: SearchProblem) -> str:
    reason = REASONS[misses.reason[i]]
    bound = case.budget if reason == "over_budget" else misses.cheapest
    is_close = reason != "same_cost" and f"{misses.cost[i]:.2f}" == f"{bound:.2f}"
    n_digit = 6 if is_close else 2
    cost = f"costs {misses.cost[i]:.{n_digit}f} USD/h" + ("" if misses.is_known[i] else " at least")
    if reason == "over_budget":
        return f"{cost}, over the budget of {bound:.{n_digit}f}"
    if reason == "same_cost":
        return f"{cost}, as the cheapest does; {_TIE}"
    other = f"costs {bound:.{n_digit}f}" if bound else "is free"
    return f"{cost}; the cheapest that meets the limits {other}"


def _missed(i: int, misses: Misses, search: Search, case: SearchProblem) -> str:
    limits = search.grid.limits
    limit = limits[int(misses.limit[i])]
    chance = float(DOWN.create_decimal_from_float(search.grid.chance[i, 0]))
    least = "with a single user" if case.demand.users is not None else "at the least rate looked at"
    said = "is missed" if len(limits) == 1 else "is furthest off"
    met = "met" if len(limits) == 1 else "all limits are met together"
    return f"{limit.text} {said} {least}: {met} with probability {chance:g}, {case.confidence:g} is asked"
