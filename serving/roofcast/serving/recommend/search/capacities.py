"""Capacity of each replica: the highest load within the limits, between loads that meet and that miss them."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.features.queries import BoolArray, FloatArray, IndexArray
from roofcast.serving.recommend.search.load_grid import LoadGrid

ROUNDING: Final = 1e-6
"""Share of a missed rate by which a rate has to be lower to be another one."""

THINK_ROUNDING: Final = 2e-3
"""The same for users who think, whose number follows from a predicted throughput."""

RESOLUTION: Final = 0.02
"""Width of an interval of reported capacities over the load, of rates and above 50 requests in flight."""

NARROW: Final = 1e-3
"""Width of an interval over the load at which the search goes no further."""

N_SECTION: Final = 20
"""Parts of an interval that one evaluation tells apart: one call costs as much as hundreds of rows."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """Capacities at one confidence; arrays have shape (n_replica,).

    A load that is known to miss the limits bounds the capacity even if a higher one meets them, so a lower confidence
    never has a lower capacity.

    - `level`, `bound`: Last level of the grid before the first that misses the limits, and before the first that is
      known to; -1 for none.
    - `is_known`: Whether the model was evaluated at `level` and the level above it.
    - `load`, `served`: Highest load that meets the limits, and the load that a replica serves there; 0 for none.
    - `missed_load`: Lowest load that is known to miss them; infinite for none.
    - `max_served`: Upper bound of the load that a replica serves at its capacity.
    """

    level: IndexArray
    bound: IndexArray
    is_known: BoolArray
    load: FloatArray
    served: FloatArray
    missed_load: FloatArray
    max_served: FloatArray


def find_capacities(grid: LoadGrid, confidence: float) -> Capacities:
    """Return the capacities that follow from the levels of a grid and its points."""
    row = np.arange(len(grid.top))
    is_met = grid.p_met >= confidence
    level = np.minimum(_first_true(~is_met) - 1, grid.top)
    bound = np.minimum(_first_true(~is_met & grid.is_known) - 1, grid.top)
    is_known = are_known(grid, row, level)
    has_next = (bound < grid.top) | grid.is_cut
    next_level = np.maximum(bound + has_next, 0)
    missed_load = np.where(has_next, grid.loads[row, next_level], np.inf)
    max_served = np.where(is_known, grid.served[row, next_level], grid.max_served[row, next_level])
    max_served[bound < 0] = 0.0
    points = grid.points
    is_missed = points.p_met < confidence
    if is_missed.any():
        np.minimum.at(missed_load, points.row[is_missed], points.load[is_missed])
        first = is_missed & (points.load == missed_load[points.row])
        max_served[points.row[first]] = points.served[first]
        level = np.minimum(level, (grid.loads < missed_load[:, None]).sum(axis=1) - 1)
    load, served = (
        np.where(level >= 0, values[row, np.maximum(level, 0)], 0.0) for values in (grid.loads, grid.served)
    )
    below = ~is_missed & (points.load < missed_load[points.row])
    np.maximum.at(load, points.row[below], points.load[below])
    np.maximum.at(served, points.row[below], points.served[below])
    is_bracket = np.isfinite(missed_load)
    if grid.demand.users is None or grid.has_think_time:
        tolerance = THINK_ROUNDING if grid.has_think_time else ROUNDING
        max_served = np.where(is_bracket, max_served * (1.0 - tolerance), max_served)
    else:
        max_served = np.where(is_bracket & (bound >= 0), missed_load - 1.0, max_served)
    is_narrow = missed_load - load <= NARROW * load
    max_served = np.where(is_narrow, served, np.maximum(max_served, served))
    return Capacities(level, bound, is_known, load, served, missed_load, max_served)


def are_known(grid: LoadGrid, rows: IndexArray, level: IndexArray) -> BoolArray:
    """Return whether the model was evaluated at a level of each row and at the level above it."""
    above = np.minimum(level + 1, grid.top[rows])
    return np.asarray(grid.is_known[rows, np.maximum(level, 0)] & grid.is_known[rows, above], dtype=np.bool_)


def section_loads(grid: LoadGrid, capacities: Capacities, rows: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return rows and loads that divide the intervals in which the capacities of some rows lie.

    Intervals end at one request in flight, or at `RESOLUTION` of a rate.
    """
    low, high = capacities.load[rows], capacities.missed_load[rows]
    is_open = grid.demand.users is None
    is_wide = np.isfinite(high) & (low > 0) & (high - low > np.maximum(RESOLUTION * low, 0.0 if is_open else 1.0))
    rows, low, high = rows[is_wide, None], low[is_wide, None], high[is_wide, None]
    loads = low + (high - low) * np.arange(1, N_SECTION) / N_SECTION
    if not is_open:
        loads = np.clip(np.round(loads), np.floor(low) + 1.0, np.ceil(high) - 1.0)
    return unique_points(np.broadcast_to(rows, loads.shape).ravel(), loads.ravel())


def unique_points(rows: IndexArray, loads: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Return rows and loads without repetitions."""
    points = np.unique(np.stack([rows, loads]), axis=1)
    return points[0].astype(np.intp), points[1]


def _first_true(mask: BoolArray) -> IndexArray:
    return np.asarray(np.where(mask.any(axis=1), mask.argmax(axis=1), mask.shape[1]), dtype=np.intp)
