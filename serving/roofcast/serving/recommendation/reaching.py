"""How near to the limits anything comes, where nothing meets them."""

from __future__ import annotations

import numpy as np

from roofcast.data.units import ms_from_s
from roofcast.features.memory import Memory
from roofcast.serving.recommendation.case import Case
from roofcast.serving.recommendation.loads import MOST_EXCESS
from roofcast.serving.recommendation.search import Search
from roofcast.serving.slo import Limit


def out_of_reach(search: Search, case: Case, memory: Memory) -> tuple[str, ...]:
    """Return, for each limit that nothing meets, the best that is predicted at the least load, and on what.

    Nothing is said where some replica that fits may meet the limits; a budget or a lack of nodes stands against it.

    Parameters
    ----------
    search
        That has ended, and found nothing.
    case
        What was asked.
    memory
        Of each replica.
    """
    grid, standing = search.grid, search.standing(case.confidence)
    on_offer = np.isin(np.arange(len(case.replicas)), search.pairs.row)
    rows = np.flatnonzero(memory.fits & on_offer)
    if not len(rows) or (standing.bound[rows] >= 0).any():
        return ()
    over = grid.excess_at_least(rows, case.confidence)
    least = "with a single user on each replica" if case.demand.users is not None else "at the least rate looked at"
    promise = f"{least}, at a confidence of {case.confidence:g}"
    best = over.argmin(axis=0)
    told = [
        f"{limit.text} is out of reach{_best(limit, float(over[i, j]), case, int(rows[i]), promise)}"
        for j, (limit, i) in enumerate(zip(grid.limits, best.tolist(), strict=True))
        if over[i, j] > 1
    ]
    return tuple(told) or (f"each limit is within reach by itself, but not all of them together {promise}",)


def _best(limit: Limit, excess: float, case: Case, row: int, promise: str) -> str:
    if excess >= MOST_EXCESS or (limit.is_floor and case.demand.think_time_s):
        return f" {promise}"
    replica = case.replicas[row]
    where = f"on {replica.accelerator} {replica.split} ({replica.engine}, {replica.weight_precision}) {promise}"
    if limit.is_floor:
        return f": the best is {float(f'{limit.value / excess:.3g}'):g} {limit.unit} {where}"
    unit = limit.unit.replace("s", "ms", 1)
    return f": the best is {ms_from_s(limit.value * excess):.3g} {unit} {where}"
