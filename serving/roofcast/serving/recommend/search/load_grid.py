"""Grid of replica x load: the analytic estimate of every cell, and the model's prediction where it was evaluated.

Points are evaluated between the levels of the grid, where a capacity is bisected.
"""

from copy import copy
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import BoolArray, FloatArray, IndexArray, take_rows
from roofcast.serving.recommend.search.confidence import MAX_EXCESS_RATIO, LimitModel, Medians, Quantity
from roofcast.serving.recommend.search.evaluation import Evaluator
from roofcast.training.learner.derived_metrics import THROUGHPUT

TYPICAL_SD: Final = 0.3
"""Standard deviation of the logarithm at cells that were not evaluated; it only steers the search."""

MAX_RATE_RATIO: Final = 2.0
"""Upper bound on the throughput at a cell that was not evaluated, relative to the interpolated value."""

RATE: Final[Quantity] = (THROUGHPUT, "mean")


@dataclass(frozen=True, slots=True)
class Points:
    """Evaluated loads between the levels, arrays of shape (n_point,).

    - `row`: Index of the replica.
    - `p_met`: Probability that all limits are met; 0 where the load overloads the replica.
    - `served`: Load that the replica serves.
    """

    row: IndexArray
    load: FloatArray
    p_met: FloatArray
    served: FloatArray


class LoadGrid:
    """Replicas by load levels; arrays have shape (n_replica, n_level) unless stated otherwise.

    `loads`: of one replica, rising: requests in flight, or requests per second. `top`: shape (n_replica,): index of
    the highest level of each replica; -1 to exclude it. Levels that overload the replica by the estimate are excluded
    too (`LimitModel.is_overload`).

    - `is_cut`: shape (n_replica,). Whether such levels are excluded.
    - `quantities`: Quantities that the search depends on.
    - `is_known`: Cells that the model was evaluated at.
    - `medians`: Log medians and standard deviations by quantity: the prediction at known cells, elsewhere the
      estimate corrected by interpolation.
    - `p_met`: Probability that all limits are met.
    - `served`, `max_served`: Load that one replica serves at this level or a lower one, and an upper bound for it.
    - `points`: Evaluated between the levels.
    - `log_latency`: Log of the estimated mean end-to-end latency.
    """

    def __init__(self, evaluator: Evaluator, limits: LimitModel, loads: FloatArray, top: IndexArray) -> None:
        self.evaluator, self.limits, self.demand, self.loads = evaluator, limits, limits.demand, loads
        self.has_think_time = self.demand.think_time_s > 0
        limited = [limit.quantity for limit in limits.limits]
        self.quantities = [*dict.fromkeys([*limited, *([RATE] if self.has_think_time else [])])]
        self._log_estimates, self._means = self._estimate(top)
        self._first_cell = (np.cumsum(top >= 0) - 1) * loads.shape[1]
        shape = loads.shape
        self.is_known: BoolArray = np.zeros(shape, dtype=bool)
        self._changes: list[IndexArray] = []
        self._point_parts: list[tuple[IndexArray, FloatArray, dict[Quantity, Medians], BoolArray]] = []
        self._offsets = {quantity: np.zeros(shape) for quantity in self.quantities}
        self._sds = {quantity: np.full(shape, TYPICAL_SD) for quantity in self.quantities}
        self._physicals = {quantity: np.full(shape, np.nan) for quantity in self.quantities}
        self.p_met: FloatArray = np.empty(shape)
        self.served = self.max_served = loads
        if self.has_think_time:
            self.served, self.max_served = np.empty(shape), np.empty(shape)
        self._n_seen = 0
        self._judge(np.arange(len(top)))
        self.points = self._judge_points()

    def evaluate(self, wanted: BoolArray) -> None:
        """Evaluate the model at the wanted cells that are not known yet, and interpolate between known cells."""
        rows, levels = np.nonzero(wanted & ~self.is_known)
        if not len(rows):
            return
        means = take_rows(self._means, self._first_cell[rows] + levels)
        medians = self.evaluator.predict(rows, self.loads[rows, levels], self.quantities, means)
        for quantity in self.quantities:
            log_estimate = self._log_estimates[quantity][rows, levels]
            self._offsets[quantity][rows, levels] = medians[quantity].log_value - log_estimate
            self._sds[quantity][rows, levels] = medians[quantity].sd
            self._physicals[quantity][rows, levels] = medians[quantity].log_physical
        self.is_known[rows, levels] = True
        changed = np.unique(rows)
        self._interpolate(changed)
        self._changes.append(changed)
        self.refresh()

    def evaluate_points(self, rows: IndexArray, loads: FloatArray) -> None:
        """Evaluate the model at loads between the levels."""
        means = self.evaluator.estimate_means(rows, loads)
        medians = self.evaluator.predict(rows, loads, self.quantities, means)
        self._point_parts.append((rows, loads, medians, self.limits.is_overload(means)))
        self._changes.append(np.empty(0, dtype=np.intp))
        self.refresh()

    def refresh(self) -> int:
        """Judge what copies have evaluated since the last call; return the number of evaluations so far."""
        if changes := self._changes[self._n_seen :]:
            self._n_seen = len(self._changes)
            self._judge(np.unique(np.concatenate(changes)))
            self.points = self._judge_points()
        return self._n_seen

    def with_limits(self, limits: LimitModel) -> Self:
        """Return a copy with other values of the limits on the same quantities; the two share what is evaluated."""
        grid = copy(self)
        grid.limits, grid.demand, grid._n_seen = limits, limits.demand, len(self._changes)
        grid.p_met = np.empty_like(self.p_met)
        if self.has_think_time:
            grid.served, grid.max_served = np.empty_like(self.served), np.empty_like(self.served)
        grid._judge(np.arange(len(self.top)))
        grid.points = grid._judge_points()
        return grid

    def medians(self, rows: IndexArray) -> dict[Quantity, Medians]:
        """Return the log medians, standard deviations and bounds of some replicas at every level."""
        return {
            quantity: Medians(
                self._log_estimates[quantity][rows] + self._offsets[quantity][rows],
                sd[rows],
                self._physicals[quantity][rows],
            )
            for quantity, sd in self._sds.items()
        }

    def excess_ratios(self, rows: IndexArray, confidence: float) -> FloatArray:
        """Return the excess over each limit at the lowest level with a confidence: shape (n_row, n_limit)."""
        medians, load, log_ratios = self.medians(rows), self.loads[rows, 0], []
        for limit in self.limits.limits:
            log_value, sd = medians[limit.quantity].log_value[:, 0], medians[limit.quantity].sd[:, 0]
            z = self.limits.errors[limit.metric].z_at(confidence)
            log_ratios.append(self.limits.log_excess(limit, log_value, load) + sd * z)
        if not log_ratios:
            return np.ones((len(rows), 1))
        cap = np.log(MAX_EXCESS_RATIO)
        return np.asarray(np.exp(np.minimum(np.stack(log_ratios, axis=1), cap)), dtype=np.float64)

    def _estimate(self, top: IndexArray) -> tuple[dict[Quantity, FloatArray], Estimate]:
        rows, n_level = np.flatnonzero(top >= 0), self.loads.shape[1]
        values, means = self.evaluator.estimate(np.repeat(rows, n_level), self.loads[rows].ravel(), self.quantities)

        def fill(cells: FloatArray) -> FloatArray:
            grid = np.zeros(self.loads.shape)
            grid[rows] = cells.reshape(len(rows), n_level)
            return grid

        is_overload = fill(self.limits.is_overload(means).astype(float))
        last = (np.cumsum(is_overload, axis=1) == 0).sum(axis=1) - 1
        self.is_cut, self.top = last < top, np.asarray(np.minimum(top, last), dtype=np.intp)
        self.log_latency = fill(np.log(means.e2e_s))
        return {quantity: fill(np.log(cells)) for quantity, cells in values.items()}, means

    def _interpolate(self, rows: IndexArray) -> None:
        left, right, share = _known_neighbours(self.is_known[rows])
        at = np.arange(len(rows))[:, None]
        for values in (*self._offsets.values(), *self._sds.values(), *self._physicals.values()):
            own = values[rows]
            values[rows] = own[at, left] * (1 - share) + own[at, right] * share

    def _judge(self, rows: IndexArray) -> None:
        medians, loads = self.medians(rows), self.loads[rows]
        self.p_met[rows] = self.limits.p_met(medians, loads)
        if self.has_think_time:
            rate = self.limits.request_rate(medians[RATE])
            self.served[rows] = np.maximum.accumulate(self.demand.served_load(loads, rate), axis=1)
            is_certain = self.is_known[rows] | (np.arange(loads.shape[1]) > self.top[rows][:, None])
            bound = self.demand.served_load(loads, rate * np.where(is_certain, 1.0, MAX_RATE_RATIO))
            self.max_served[rows] = np.maximum.accumulate(bound, axis=1)

    def _judge_points(self) -> Points:
        parts = []
        for row, load, medians, is_overload in self._point_parts:
            served = load
            if self.has_think_time:
                rate = self.limits.request_rate(medians[RATE])
                served = self.demand.served_load(load, rate)
            parts.append((row, load, np.where(is_overload, 0.0, self.limits.p_met(medians, load)), served))
        if not parts:
            nothing = np.empty(0)
            return Points(np.empty(0, dtype=np.intp), nothing, nothing, nothing)
        return Points(*map(np.concatenate, zip(*parts, strict=True)))


def _known_neighbours(is_known: BoolArray) -> tuple[IndexArray, IndexArray, FloatArray]:
    n = is_known.shape[1]
    level = np.broadcast_to(np.arange(n), is_known.shape)
    left = np.maximum.accumulate(np.where(is_known, level, -1), axis=1)
    right = np.minimum.accumulate(np.where(is_known, level, n)[:, ::-1], axis=1)[:, ::-1]
    has_left, has_right = left >= 0, right < n
    first = np.where(has_left, left, np.where(has_right, right, level))
    second = np.where(has_right, right, first)
    width = np.maximum(second - first, 1)
    return first, second, (level - first) / width


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
    - `load`, `served`: Highest load that meets the limits, and the most that a replica serves up to there; or 0.
    - `busiest`: Load at which it serves that, where it lies between the levels; else `load`.
    - `missed_load`: Lowest load that is known to miss them; infinite for none.
    - `max_served`: Upper bound of the load that a replica serves at its capacity.
    """

    level: IndexArray
    bound: IndexArray
    is_known: BoolArray
    load: FloatArray
    served: FloatArray
    busiest: FloatArray
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
    busiest, is_most = load.copy(), below & (points.served == served[points.row])
    busiest[points.row[is_most]] = points.load[is_most]
    is_bracket = np.isfinite(missed_load)
    if grid.demand.users is None or grid.has_think_time:
        tolerance = THINK_ROUNDING if grid.has_think_time else ROUNDING
        max_served = np.where(is_bracket, max_served * (1.0 - tolerance), max_served)
    else:
        max_served = np.where(is_bracket & (bound >= 0), missed_load - 1.0, max_served)
    is_narrow = missed_load - load <= NARROW * load
    max_served = np.where(is_narrow, served, np.maximum(max_served, served))
    return Capacities(level, bound, is_known, load, served, busiest, missed_load, max_served)


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
