"""Search for the cheapest deployments with few model evaluations.

The *capacity* of a replica is the last load level before the first that misses the limits at the confidence.
Unevaluated levels may meet the limits, so the first known miss bounds the capacity from above and the cost from
below. The search evaluates until no lower bound is below the cheapest known costs, so its costs are those of an
exhaustive evaluation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import Offer
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.confidence import LimitModel
from roofcast.serving.recommend.search.deployment_sizes import Pairs, Sizes
from roofcast.serving.recommend.search.evaluation import Evaluator, max_users_per_accelerator, user_levels
from roofcast.serving.recommend.search.load_grid import LoadGrid
from roofcast.serving.recommend.search.problem import SearchProblem, replica_doubt

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

N_AROUND: Final = 1
"""Levels evaluated to either side of an estimated capacity: one call costs as much as hundreds of rows."""


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """The cheapest pairs of `n` groups, one of each group.

    Parameters
    ----------
    confidence
        Least probability that all limits are met.
    group : shape (n_pair,)
    """

    confidence: float
    group: IndexArray
    n: int


@dataclass(frozen=True, slots=True)
class SearchState:
    """State of the search at one confidence.

    Parameters
    ----------
    capacity, bound : shape (n_replica,)
        Level of the estimated capacity and of its upper bound; -1 for none.
    sizes
        Of the deployments at the estimated capacity, by pair.
    min_cost : shape (n_pair,)
        Lower bound of the cost, in US dollars per hour.
    is_known : shape (n_replica,)
        Whether the model was evaluated at the capacity and the level above it.
    """

    capacity: IndexArray
    bound: IndexArray
    sizes: Sizes
    min_cost: FloatArray
    is_known: BoolArray


@dataclass(frozen=True, slots=True)
class Deployment:
    """Replicas of one kind on instances of one kind.

    Parameters
    ----------
    row, offer
        Indices of the replica and of the offer.
    load
        Of a replica at its share of the peak: requests in flight, or requests per second.
    capacity, further_loads
        Highest load that is known to meet the limits, and higher ones that may meet them, rising.
    cost
        In US dollars per hour.
    """

    row: int
    offer: int
    load: float
    capacity: float
    further_loads: tuple[float, ...]
    n_replica: int
    n_instance: int
    cost: float


class Search:
    """Search space and state: grid of replica x load, and pairs of replica and offer.

    Attributes
    ----------
    loads, top
        Levels of each replica, shape (n_replica, n_level), and the index of the highest; -1 if it does not fit. The
        grid has those that distinguish costs.
    """

    def __init__(self, problem: SearchProblem, limits: LimitModel) -> None:
        self.problem, self.demand = problem, problem.demand
        self.evaluator = Evaluator(
            problem.bundle.predictor,
            problem.descriptors,
            is_open=self.demand.users is None,
            doubt=replica_doubt(
                problem.bundle, problem.table, problem.descriptors, problem.demand, problem.references
            ),
        )
        self.memory = self.evaluator.memory
        self.loads, self.top = self._load_levels()
        n_level = int(self.loads.shape[1])
        if self.demand.users is not None and not self.demand.think_time_s:  # no replica need hold more than all users
            n_level = min(int(np.searchsorted(self.loads[0], self.demand.required_load)) + 1, n_level)
        self.grid = LoadGrid(self.evaluator, limits, self.loads[:, :n_level], np.minimum(self.top, n_level - 1))
        self.pairs = Pairs.build(
            problem.replicas, problem.offers, problem.market.accelerators, problem.constraints.max_nodes
        )
        self.budget = problem.constraints.budget_usd_per_h
        self._states: dict[tuple[float, int], SearchState] = {}

    def with_limits(self, limits: LimitModel) -> Self:
        """Return a search with other values of the limits on the same quantities; the two share what is evaluated."""
        search = copy(self)
        search.grid, search._states = self.grid.with_limits(limits), {}
        return search

    def with_demand(self, demand: Demand) -> Self:
        """Return a search of another load under the same limits; the two share what is evaluated."""
        search = self.with_limits(LimitModel(demand, self.problem.bundle.predictor))
        search.problem, search.demand = replace(self.problem, demand=demand), demand
        return search

    def with_offers(self, offers: list[Offer]) -> Self:
        """Return a search of the same replicas on other offers; the two share what is evaluated."""
        search, problem = copy(self), replace(self.problem, offers=offers)
        search.problem, search.grid, search._states = problem, copy(self.grid), {}
        search.pairs = Pairs.build(
            problem.replicas, offers, problem.market.accelerators, problem.constraints.max_nodes
        )
        return search

    def _load_levels(self) -> tuple[FloatArray, IndexArray]:
        fits, n_accelerator = self.memory.fits, self.evaluator.d["config.n_accelerator"]
        highest = np.maximum(max_users_per_accelerator(self.problem.bundle) * n_accelerator, 1.0)
        if self.evaluator.is_open:
            loads = self.evaluator.rate_levels(highest)
            return loads, np.where(fits, loads.shape[1] - 1, -1).astype(np.intp)
        levels = user_levels(float(highest.max()))
        top = np.searchsorted(levels, highest + 0.5) - 1
        return np.broadcast_to(levels, (len(fits), len(levels))), np.where(fits, top, -1).astype(np.intp)

    def cheapest(self, confidence: float) -> SearchTarget:
        """Return the target of the cheapest deployment."""
        return SearchTarget(confidence, np.zeros_like(self.pairs.offer), 1)

    def run(self, targets: Iterable[SearchTarget]) -> None:
        """Evaluate the model until every target is decided."""
        run_together([(self, target) for target in targets])

    def evaluate(self, wanted: BoolArray) -> None:
        """Evaluate the model at cells of the grid."""
        self.grid.evaluate(wanted)

    def around_capacity(self, rows: IndexArray, confidence: float) -> BoolArray:
        """Return the cells around the capacities of some replicas, where these or the next levels are unknown."""
        grid, level = self.grid, self.state(confidence).capacity[rows]
        is_open = ~self._is_known(rows, level)
        rows, low = rows[is_open], level[is_open][:, None] - N_AROUND
        cells = np.zeros(grid.is_known.shape, dtype=bool)
        levels = np.arange(grid.loads.shape[1])
        cells[rows] = (levels >= low) & (levels <= low + 1 + 2 * N_AROUND)
        return np.asarray(cells & (levels <= grid.top[:, None]), dtype=np.bool_)

    def state(self, confidence: float) -> SearchState:
        """Return capacities and costs at a confidence after the last evaluation."""
        grid = self.grid
        key = confidence, grid.refresh()
        if key not in self._states:
            is_met = grid.p_met >= confidence
            capacity = np.minimum(_first_true(~is_met) - 1, grid.top)
            bound = np.minimum(_first_true(~is_met & grid.is_known) - 1, grid.top)
            sizes = self._sizes(capacity, grid.served)
            min_cost = np.minimum(self._sizes(bound, grid.max_served).cost, sizes.cost)
            is_known = self._is_known(np.arange(len(capacity)), capacity)
            min_cost = np.where(is_known[self.pairs.row], sizes.cost, min_cost)
            self._states[key] = SearchState(capacity, bound, sizes, min_cost, is_known)
        return self._states[key]

    def _sizes(self, level: IndexArray, served: FloatArray) -> Sizes:
        at_level = np.where(level >= 0, served[np.arange(len(level)), np.maximum(level, 0)], 0.0)
        return self.pairs.size(slice(None), self.demand.required_load, at_level[self.pairs.row])

    def winners(self, target: SearchTarget) -> IndexArray:
        """Return the cheapest pair of each of the cheapest groups, by rising cost.

        Ties are broken by the probability that the limits are met, then by fewer accelerators.
        """
        return self._winners(target, self._max_cost(target))

    def _winners(self, target: SearchTarget, max_cost: float) -> IndexArray:
        state = self.state(target.confidence)
        pair = np.flatnonzero(state.sizes.cost <= max_cost)
        row, n_replica = self.pairs.row[pair], state.sizes.n_replica[pair]
        p_met = self.grid.p_met[row, self.share_level(row, n_replica, state.capacity[row])]
        n_accelerator = self.evaluator.d["config.n_accelerator"][row] * n_replica
        order = np.lexsort((pair, n_accelerator, -p_met.round(2), state.sizes.cost[pair].round(9)))
        _, first = np.unique(target.group[pair][order], return_index=True)
        return np.asarray(pair[order][np.sort(first)][: target.n], dtype=np.intp)

    def costs(self, target: SearchTarget) -> list[float]:
        """Return the costs of the cheapest groups, rising."""
        return [float(cost) for cost in self.state(target.confidence).sizes.cost[self.winners(target)]]

    def share_level(self, row: IndexArray, n_replica: FloatArray, capacity: IndexArray) -> IndexArray:
        """Return the lowest level at which each replica serves its share of the peak.

        Parameters
        ----------
        row, n_replica, capacity : shape (n,)
            Indices of the replicas, numbers of replicas, and levels of their capacities.
        """
        share = self.demand.required_load * (1 - self.demand.headroom) / n_replica
        is_enough = self.grid.served[row] >= share[:, None] - 1e-9
        return np.minimum(np.where(is_enough.any(axis=1), is_enough.argmax(axis=1), capacity), capacity)

    def share_load(self, row: IndexArray, n_replica: FloatArray, capacity: IndexArray) -> FloatArray:
        """Return the load of each replica at its share of the peak.

        With think time the requests in flight are interpolated between the levels that serve less and more than the
        share, and are at least one. Parameters as of `share_level`.
        """
        grid, share = self.grid, self.demand.peak_load / n_replica
        if self.demand.users is None:
            return np.asarray(share, dtype=np.float64)
        if not self.demand.think_time_s:
            return np.asarray(np.ceil(share - 1e-9), dtype=np.float64)
        level = self.share_level(row, n_replica, capacity)
        below = np.maximum(level - 1, 0)
        low_load, low_served = (np.where(level > 0, values[row, below], 0.0) for values in (grid.loads, grid.served))
        high_load, high_served = grid.loads[row, level], grid.served[row, level]
        weight = (share - low_served) / np.maximum(high_served - low_served, np.finfo(float).tiny)
        return np.maximum(low_load + np.clip(weight, 0.0, 1.0) * (high_load - low_load), 1.0)

    def deployments(self, pair: IndexArray, confidence: float) -> list[Deployment]:
        """Return the deployments of some pairs, each replica up to its capacity."""
        state, row = self.state(confidence), self.pairs.row[pair]
        capacity, n_replica = state.capacity[row], state.sizes.n_replica[pair]
        load = self.share_load(row, n_replica, capacity)
        is_last_of_grid = capacity == self.grid.loads.shape[1] - 1
        last = np.where(is_last_of_grid, self.top[row], capacity)
        return [
            Deployment(
                row=int(row[k]),
                offer=int(self.pairs.offer[index]),
                load=float(load[k]),
                capacity=float(self.loads[row[k], capacity[k]]),
                further_loads=tuple(self.loads[row[k], capacity[k] + 1 : last[k] + 1].tolist()),
                n_replica=int(n_replica[k]),
                n_instance=int(state.sizes.n_instance[index]),
                cost=float(state.sizes.cost[index]),
            )
            for k, index in enumerate(pair.tolist())
        ]

    def _max_cost(self, target: SearchTarget) -> float:
        cost = self.state(target.confidence).sizes.cost
        by_group = np.full(int(target.group.max(initial=-1)) + 1, np.inf)
        np.minimum.at(by_group, target.group, cost)
        by_group = np.sort(by_group[np.isfinite(by_group)])
        last = by_group[target.n - 1] if len(by_group) >= target.n else np.inf
        return float(min(last + 1e-9, self.budget, np.finfo(float).max))

    def undecided(self, target: SearchTarget) -> BoolArray:
        """Return the cells that may decide a target; some may be known."""
        max_cost = self._max_cost(target)
        rows = self._rows_of(np.flatnonzero(self.state(target.confidence).min_cost <= max_cost))
        cells = self.around_capacity(rows, target.confidence)
        best = self._rows_of(self._winners(target, max_cost))
        cells[best] |= np.arange(cells.shape[1]) <= self.grid.top[best][:, None]
        return cells

    def _rows_of(self, pair: IndexArray) -> IndexArray:
        is_used = np.zeros(len(self.grid.top), dtype=bool)
        is_used[self.pairs.row[pair]] = True
        return np.flatnonzero(is_used)

    def _is_known(self, rows: IndexArray, level: IndexArray) -> BoolArray:
        is_known = self.grid.is_known
        above = np.minimum(level + 1, self.grid.top[rows])
        return np.asarray(is_known[rows, np.maximum(level, 0)] & is_known[rows, above], dtype=np.bool_)


def run_together(goals: Collection[tuple[Search, SearchTarget]]) -> None:
    """Evaluate the model until the target of each search is decided; the searches share one grid."""
    while goals:
        wanted = np.logical_or.reduce([search.undecided(target) for search, target in goals])
        first, _ = next(iter(goals))
        if not (wanted & ~first.grid.is_known).any():
            return
        first.evaluate(wanted)


def _first_true(mask: BoolArray) -> IndexArray:
    return np.asarray(np.where(mask.any(axis=1), mask.argmax(axis=1), mask.shape[1]), dtype=np.intp)
