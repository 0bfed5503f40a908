"""How near to the limits anything comes, where nothing meets them."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_UP, Context

import numpy as np
import numpy.typing as npt

from roofcast.data.units import ms_from_s
from roofcast.features.engine.memory import Memory
from roofcast.serving.recommend.demand.slo import Limit
from roofcast.serving.recommend.search.load_grid import MOST_EXCESS, throughput_of_all
from roofcast.serving.recommend.search.problem import SearchProblem
from roofcast.serving.recommend.search.search import Search

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

DOWN, _UP = (Context(prec=3, rounding=rounding) for rounding in (ROUND_DOWN, ROUND_UP))
"""Three digits that promise no more than was found: of what is wanted high, and of what is wanted low."""


def out_of_reach(search: Search, case: SearchProblem, memory: Memory) -> tuple[str, ...]:
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
    told = []
    for limit, excess in zip(grid.limits, over.T, strict=True):
        if excess.min() > 1:
            best = _best(limit, excess, rows, search, case)
            told.append(f"{limit.text} is out of reach{best} {promise}")
    return tuple(told) or (f"each limit is within reach by itself, but not all of them together {promise}",)


def _best(limit: Limit, excess: FloatArray, rows: IndexArray, search: Search, case: SearchProblem) -> str:
    """Return the best that any of some replicas reaches, and which; empty if that is as good as nothing."""
    if limit.is_floor:
        made = search.grid.reached_at_least(limit, rows, case.confidence)
        whole = throughput_of_all(case.demand, search.grid.loads[rows, 0], made)
        best = DOWN.create_decimal_from_float(whole.max())
        return f": the best is {float(best):.10g} {limit.unit} {_where(case, rows[whole.argmax()])}"
    if excess.min() >= MOST_EXCESS:
        return ""
    unit = limit.unit.replace("s", "ms", 1)
    best = _UP.create_decimal_from_float(ms_from_s(limit.value * excess.min()))
    return f": the best is {float(best):.10g} {unit} {_where(case, rows[excess.argmin()])}"


def _where(case: SearchProblem, row: int) -> str:
    replica = case.replicas[row]
    return f"on {replica.accelerator} {replica.split} ({replica.engine}, {replica.weight_precision})"
