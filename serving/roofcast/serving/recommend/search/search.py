"""The cheapest ways to serve a demand, found by asking the learner about few of them.

A replica on an offer is loaded up to its *capacity*: the greatest level of load below the first at which the limits
are met with less than the confidence asked. What was never asked about could be met for all that is known, so that a
replica's capacity is bounded from above by its first known miss, and its cost from below. Asking goes on until no
bound is below what the cheapest cost; so the answer is the one that asking about every load would have given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.serving.recommend.search.load_grid import LoadGrid
from roofcast.serving.recommend.search.market import Pairs

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

N_AROUND: Final = 1
"""Levels to either side of a guess that are asked about with it: a further call costs as much as hundreds of rows."""


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """So many of the cheapest, at most one of each group.

    Parameters
    ----------
    confidence
        Least probability that all limits are met.
    group : shape (n_pair,)
        What each pair of replica and offer belongs to.
    n
        Groups wanted.
    """

    confidence: float
    group: IndexArray
    n: int


@dataclass(frozen=True, slots=True)
class SearchState:
    """Where the search stands at one confidence.

    Parameters
    ----------
    capacity, bound : shape (n_replica,)
        Place of the greatest level within the limits as far as is guessed, and as far as is known; -1 for none.
    cost, least : shape (n_pair,)
        Cost of the deployment at either, in US dollars an hour; the same where the capacity is known.
    is_known : shape (n_replica,)
        Whether the learner was asked about the capacity and the level above it.
    """

    capacity: IndexArray
    bound: IndexArray
    cost: FloatArray
    least: FloatArray
    is_known: BoolArray


class Search:
    """Finds the cheapest pairs of replica and offer.

    Parameters
    ----------
    grid
        Replicas by levels.
    pairs
        Replicas on offers.
    budget
        Most that a deployment may cost, in US dollars an hour.
    """

    def __init__(self, grid: LoadGrid, pairs: Pairs, budget: float) -> None:
        self.grid, self.pairs, self.budget = grid, pairs, budget
        self.n_accelerator = grid.forecaster.d["config.n_accelerator"]
        self._standings: dict[float, SearchState] = {}

    def run(self, goals: list[SearchTarget]) -> None:
        """Ask the learner until every goal is met."""
        while True:
            wanted = np.zeros_like(self.grid.known)
            for goal in goals:
                wanted |= self._wanted(goal)
            wanted &= ~self.grid.known
            if not wanted.any():
                return
            self.grid.ask(wanted)
            self._standings.clear()

    def look_around(self, rows: IndexArray, confidence: float) -> None:
        """Ask about some replicas around their capacities, as far as these are not known."""
        self.grid.ask(self._around(rows, self.standing(confidence).capacity[rows]))
        self._standings.clear()

    def standing(self, confidence: float) -> SearchState:
        """Return capacities and costs at a confidence, as known when the search last asked."""
        if confidence not in self._standings:
            self._standings[confidence] = self._standing(confidence)
        return self._standings[confidence]

    def _standing(self, confidence: float) -> SearchState:
        grid = self.grid
        met = grid.chance >= confidence
        capacity = np.minimum(_first(~met) - 1, grid.top)
        bound = np.minimum(_first(~met & grid.known) - 1, grid.top)
        cost = self.pairs.cost(self.n_replica(capacity, grid.served)[self.pairs.row])
        least = self.pairs.cost(self.n_replica(bound, grid.most_served)[self.pairs.row])
        is_known = self._is_known(np.arange(len(capacity)), capacity)
        least = np.where(is_known[self.pairs.row], cost, np.minimum(least, cost))
        return SearchState(capacity, bound, cost, least, is_known)

    def n_replica(self, place: IndexArray, served: FloatArray) -> FloatArray:
        """Return how many replicas serve the demand at a level each; infinitely many where the level is none."""
        most = served[np.arange(len(place)), np.maximum(place, 0)]
        needed = np.maximum(np.ceil(self.grid.needed / most - 1e-9), 1.0)
        return np.where(place >= 0, needed, np.inf)

    def winners(self, goal: SearchTarget) -> IndexArray:
        """Return the cheapest pair of each of the cheapest groups, by rising cost.

        Of pairs that cost the same the one comes first that rather meets the limits, then that of fewer accelerators.
        """
        standing = self.standing(goal.confidence)
        return self._winners(goal, standing, self._limit(goal, standing))

    def _winners(self, goal: SearchTarget, standing: SearchState, limit: float) -> IndexArray:
        some = np.flatnonzero(standing.cost <= limit)
        row = self.pairs.row[some]
        n_replica = self.n_replica(standing.capacity, self.grid.served)[row]
        chance = self.grid.chance[row, self.own_place(row, n_replica, standing.capacity[row])]
        size = self.n_accelerator[row] * n_replica
        order = np.lexsort((some, size, -chance.round(2), standing.cost[some].round(9)))
        _, first = np.unique(goal.group[some][order], return_index=True)
        return np.asarray(some[order][np.sort(first)][: goal.n], dtype=np.intp)

    def costs(self, goal: SearchTarget) -> list[float]:
        """Return the costs of the cheapest groups, rising."""
        return [float(cost) for cost in self.standing(goal.confidence).cost[self.winners(goal)]]

    def own_place(self, row: IndexArray, n_replica: FloatArray, capacity: IndexArray) -> IndexArray:
        """Return the place of the least level at which each replica serves its share of the peak.

        Parameters
        ----------
        row, n_replica, capacity : shape (n,)
            Indices of the replicas, how many of each there are, and the places of their capacities.
        """
        demand = self.grid.demand
        share = demand.required_load * (1 - demand.headroom) / n_replica
        is_enough = self.grid.served[row] >= share[:, None] - 1e-9
        return np.minimum(np.where(is_enough.any(axis=1), is_enough.argmax(axis=1), capacity), capacity)

    def own_load(self, row: IndexArray, n_replica: FloatArray, capacity: IndexArray) -> FloatArray:
        """Return the load of each replica at the peak: its share of the users or of the rate, none of it invented.

        Of users who think, those who wait are found between the levels that serve less and more than the share; there
        is no load of less than one request.

        Parameters
        ----------
        row, n_replica, capacity : shape (n,)
            As of `own_place`.
        """
        grid, demand = self.grid, self.grid.demand
        share = demand.peak_load / n_replica
        if demand.users is None:
            return np.asarray(share, dtype=np.float64)
        if not demand.think_time_s:
            return np.asarray(np.ceil(share - 1e-9), dtype=np.float64)
        place, none = self.own_place(row, n_replica, capacity), np.zeros_like(share)
        low, few = (
            np.where(place > 0, values[row, np.maximum(place - 1, 0)], none) for values in (grid.loads, grid.served)
        )
        high, many = grid.loads[row, place], grid.served[row, place]
        part = np.clip((share - few) / np.maximum(many - few, np.finfo(float).tiny), 0.0, 1.0)
        return np.asarray(np.maximum(low + part * (high - low), 1.0), dtype=np.float64)

    def _limit(self, goal: SearchTarget, standing: SearchState) -> float:
        """Return the cost of the last group that is wanted, as far as is guessed."""
        least = np.full(int(goal.group.max(initial=-1)) + 1, np.inf)
        np.minimum.at(least, goal.group, standing.cost)
        least = np.sort(least[np.isfinite(least)])
        last = least[goal.n - 1] if len(least) >= goal.n else np.inf
        return float(min(last + 1e-9, self.budget, np.finfo(float).max))

    def _wanted(self, goal: SearchTarget) -> BoolArray:
        """Return where to ask next: around the capacities guessed of what might be among the cheapest.

        Of the cheapest themselves every level is asked about, as the first miss may come early.
        """
        standing = self.standing(goal.confidence)
        limit = self._limit(goal, standing)
        rows = self._rows_of(standing.least <= limit)
        wanted = self._around(rows, standing.capacity[rows])
        best = self._rows_of(self._winners(goal, standing, limit))
        wanted[best] |= np.arange(wanted.shape[1]) <= self.grid.top[best][:, None]
        return wanted

    def _rows_of(self, pairs: IndexArray | BoolArray) -> IndexArray:
        """Return the places of the replicas of some pairs, each once."""
        is_one = np.zeros(len(self.grid.top), dtype=bool)
        is_one[self.pairs.row[pairs]] = True
        return np.flatnonzero(is_one)

    def _around(self, rows: IndexArray, place: IndexArray) -> BoolArray:
        """Return the levels around some places of some replicas, where those and the next are not known."""
        known, top = self.grid.known, self.grid.top
        is_known = self._is_known(rows, place)
        rows, place = rows[~is_known], place[~is_known]
        levels = np.arange(known.shape[1])
        wanted = np.zeros_like(known)
        wanted[rows] = (levels >= place[:, None] - N_AROUND) & (levels <= place[:, None] + 1 + N_AROUND)
        return np.asarray(wanted & (levels <= top[:, None]), dtype=np.bool_)

    def _is_known(self, rows: IndexArray, place: IndexArray) -> BoolArray:
        """Return whether some places of some replicas are known, and the levels above them."""
        known = self.grid.known
        above = np.minimum(place + 1, self.grid.top[rows])
        return np.asarray(known[rows, np.maximum(place, 0)] & known[rows, above], dtype=np.bool_)


def _first(is_so: BoolArray) -> IndexArray:
    """Return the place of the first true value of each row; the number of columns where there is none."""
    return np.asarray(np.where(is_so.any(axis=1), is_so.argmax(axis=1), is_so.shape[1]), dtype=np.intp)
