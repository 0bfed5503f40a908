"""Search for the cheapest deployments with few model evaluations.

The *capacity* of a replica is the highest load below the first that misses the limits at the confidence. Levels of
the grid bracket it; then numbers of instances are bisected, as far as fewer would cost less. Unevaluated loads may
meet the limits, so the first known miss bounds the capacity from above and the cost from below. The search evaluates
until no lower bound is below the cheapest known costs, so its costs are those of an evaluation of every number of
replicas.
"""

from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from roofcast.data.specs import Offer
from roofcast.features.queries import BoolArray, FloatArray, IndexArray
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.confidence import LimitModel
from roofcast.serving.recommend.search.deployment_sizes import Pairs, Sizes
from roofcast.serving.recommend.search.evaluation import Evaluator, max_users_per_accelerator, user_levels
from roofcast.serving.recommend.search.load_grid import (
    Capacities,
    LoadGrid,
    are_known,
    find_capacities,
    section_loads,
    unique_points,
)
from roofcast.serving.recommend.search.problem import SearchProblem

N_AROUND: Final = 1
"""Levels evaluated to either side of an estimated capacity: one call costs as much as hundreds of rows."""

N_TRIED: Final = 8
"""Numbers of instances tried at once."""

MARGIN: Final = 0.02
"""Share of the interval of a capacity by which a load differs from its ends."""


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """The cheapest pairs of `n` groups, one of each group.

    `confidence`: least probability that all limits are met. `group`: shape (n_pair,).
    """

    confidence: float
    group: IndexArray
    n: int


@dataclass(frozen=True, slots=True)
class SearchState:
    """State of the search at one confidence.

    `sizes` and `min_sizes`: of the deployments at the capacities and at their upper bounds, by pair.
    """

    capacities: Capacities
    sizes: Sizes
    min_sizes: Sizes

    @property
    def is_decided(self) -> BoolArray:
        """Whether score and cost of each pair are known and not lower bounds, shape (n_pair,)."""
        low, sizes = self.min_sizes, self.sizes
        return np.asarray((low.score >= sizes.score) & (low.cost >= sizes.cost), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Deployment:
    """Replicas of one kind on instances of one kind.

    - `row`, `offer`: Indices of the replica and of the offer.
    - `load`: Of a replica at its share of the peak: requests in flight, or requests per second.
    - `capacity`: Highest load that is known to meet the limits; without an end of requests that of most throughput.
    - `share`: That share of the peak: users, requests of a batch, or requests per second.
    - `cost`: In US dollars per hour.
    """

    row: int
    offer: int
    load: float
    capacity: float
    share: float
    n_replica: int
    n_instance: int
    cost: float


class Search:
    """Search space and state: grid of replica x load, and pairs of replica and offer.

    - `loads`, `top`: Levels of each replica, shape (n_replica, n_level), and the index of the highest; -1 if it does
      not fit. The grid has those that distinguish costs.
    """

    def __init__(self, problem: SearchProblem, limits: LimitModel) -> None:
        self.problem, self.demand = problem, problem.demand
        self.evaluator = Evaluator(
            problem.bundle.predictor,
            problem.descriptors,
            is_open=self.demand.users is None,
            think_time_s=self.demand.think_time_s,
        )
        self.memory = self.evaluator.memory
        self.loads, self.top = self._load_levels()
        n_level = int(self.loads.shape[1])
        if self.demand.users is not None and not self.demand.think_time_s:  # no replica need hold more than all users
            n_level = min(int(np.searchsorted(self.loads[0], self.demand.required_load)) + 1, n_level)
        self.grid = LoadGrid(self.evaluator, limits, self.loads[:, :n_level], np.minimum(self.top, n_level - 1))
        self.pairs = Pairs.build(problem.replicas, problem.offers, problem.market.accelerators, problem.constraints)
        self._states: dict[tuple[float, int], SearchState] = {}

    def with_limits(self, limits: LimitModel) -> Self:
        """Return a search with other values of the limits on the same quantities; the two share what is evaluated."""
        return self._share(self.grid.with_limits(limits))

    def with_demand(self, demand: Demand) -> Self:
        """Return a search of another load under the same limits; the two share what is evaluated."""
        search = self.with_limits(LimitModel(demand, self.problem.bundle.predictor, self.problem.confidence))
        search.problem, search.demand = replace(self.problem, demand=demand), demand
        return search

    def with_offers(self, offers: list[Offer]) -> Self:
        """Return a search of the same replicas on other offers; the two share what is evaluated."""
        search, problem = self._share(copy(self.grid)), replace(self.problem, offers=offers)
        search.problem = problem
        search.pairs = Pairs.build(problem.replicas, offers, problem.market.accelerators, problem.constraints)
        return search

    def without_budget(self) -> Self:
        """Return a search of deployments of any cost; the two share what is evaluated."""
        search = self._share(copy(self.grid))
        search.pairs = replace(self.pairs, budget=np.inf)
        return search

    def _share(self, grid: LoadGrid) -> Self:
        search = copy(self)
        search.grid, search._states = grid, {}
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

    def around_capacity(self, rows: IndexArray, confidence: float) -> BoolArray:
        """Return the cells around the capacities of some replicas, where these or the next levels are unknown."""
        grid, level = self.grid, self.state(confidence).capacities.level[rows]
        is_open = ~are_known(grid, rows, level)
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
            capacities = find_capacities(grid, confidence)
            sizes, min_sizes = (self._sizes(one) for one in (capacities.served, capacities.max_served))
            self._states[key] = SearchState(capacities, sizes, min_sizes)
        return self._states[key]

    def _sizes(self, served: FloatArray) -> Sizes:
        return self.pairs.size(slice(None), self.demand.required_load, served[self.pairs.row])

    def winners(self, target: SearchTarget) -> IndexArray:
        """Return the cheapest pair of each of the cheapest groups, by rising cost.

        Ties are broken by the probability that the limits are met, then by fewer accelerators.
        """
        return self._winners(target, self._max_scores(target)[1])

    def _winners(self, target: SearchTarget, max_score: float) -> IndexArray:
        state = self.state(target.confidence)
        pair = np.flatnonzero(state.sizes.score <= max_score)
        row, n_replica = self.pairs.row[pair], state.sizes.n_replica[pair]
        level = np.minimum(self.share_level(row, n_replica), state.capacities.level[row])
        p_met = self.grid.p_met[row, level]
        n_accelerator = self.evaluator.d["config.n_accelerator"][row] * n_replica
        order = np.lexsort((pair, n_accelerator, -p_met.round(2), state.sizes.score[pair].round(12)))
        _, first = np.unique(target.group[pair][order], return_index=True)
        return np.asarray(pair[order][np.sort(first)][: target.n], dtype=np.intp)

    def costs(self, target: SearchTarget) -> list[float]:
        """Return the costs of the cheapest groups, rising."""
        return [float(cost) for cost in self.state(target.confidence).sizes.cost[self.winners(target)]]

    def share_level(self, row: IndexArray, n_replica: FloatArray) -> IndexArray:
        """Return the lowest level at which each replica serves its share of the peak, or the highest of the grid.

        `row` and `n_replica`: shape (n,): indices of the replicas, and numbers of replicas.
        """
        return self._level_of(row, self.demand.peak_load / n_replica)

    def _level_of(self, row: IndexArray, served: FloatArray) -> IndexArray:
        is_enough = self.grid.served[row] >= served[:, None] - 1e-9
        level = np.where(is_enough.any(axis=1), is_enough.argmax(axis=1), is_enough.shape[1] - 1)
        return np.asarray(level, dtype=np.intp)

    def share_load(
        self, row: IndexArray, n_replica: FloatArray, highest: FloatArray, served: FloatArray | float = np.inf
    ) -> FloatArray:
        """Return the load of each replica at its share of the peak.

        `row`, `n_replica`, `highest` and `served`: shape (n,): indices of the replicas, numbers of replicas, their
        highest loads and what they serve at most.
        """
        return np.minimum(self._load_of(row, np.minimum(self.demand.peak_load / n_replica, served)), highest)

    def _load_of(self, row: IndexArray, served: FloatArray) -> FloatArray:
        # Requests in flight of users who think are interpolated between the levels that serve less and more.
        grid = self.grid
        if self.demand.users is None:
            return served
        if not self.demand.think_time_s:
            return np.asarray(np.ceil(served - 1e-9), dtype=np.float64)
        level = self._level_of(row, served)
        below = np.maximum(level - 1, 0)
        low_load, low_served = (np.where(level > 0, values[row, below], 0.0) for values in (grid.loads, grid.served))
        high_load, high_served = grid.loads[row, level], grid.served[row, level]
        weight = (served - low_served) / np.maximum(high_served - low_served, np.finfo(float).tiny)
        return np.maximum(low_load + np.clip(weight, 0.0, 1.0) * (high_load - low_load), 1.0)

    def deployments(self, pair: IndexArray, confidence: float) -> list[Deployment]:
        """Return the deployments of some pairs, each replica up to its capacity."""
        state, row = self.state(confidence), self.pairs.row[pair]
        n_replica = state.sizes.n_replica[pair]
        load = self.share_load(row, n_replica, state.capacities.busiest[row], state.capacities.served[row])
        capacity = load if self.demand.is_endless else state.capacities.load[row]
        return [
            Deployment(
                row=int(row[k]),
                offer=int(self.pairs.offer[index]),
                load=float(load[k]),
                capacity=float(capacity[k]),
                share=float(self.demand.peak_load / n_replica[k]),
                n_replica=int(n_replica[k]),
                n_instance=int(state.sizes.n_instance[index]),
                cost=float(state.sizes.cost[index]),
            )
            for k, index in enumerate(pair.tolist())
        ]

    def _max_scores(self, target: SearchTarget) -> tuple[FloatArray, float]:
        # Of each group and of the target: what scores worse than the best of its group or the last group is not in.
        by_group = np.full(int(target.group.max(initial=-1)) + 1, np.inf)
        np.minimum.at(by_group, target.group, self.state(target.confidence).sizes.score)
        least = np.sort(by_group[np.isfinite(by_group)])
        last = least[target.n - 1] if len(least) >= target.n else np.inf
        return by_group, float(min(last * (1.0 + 1e-9), np.finfo(float).max))

    def undecided_cells(self, target: SearchTarget) -> BoolArray:
        """Return the cells that may decide a target; some may be known."""
        by_group, max_score = self._max_scores(target)
        is_near = self.state(target.confidence).min_sizes.score <= np.minimum(by_group[target.group], max_score)
        cells = self.around_capacity(np.unique(self.pairs.row[is_near]), target.confidence)
        best = self.pairs.row[self._winners(target, max_score)]
        cells[best] |= np.arange(cells.shape[1]) <= self.grid.top[best][:, None]
        return cells

    def undecided_points(self, target: SearchTarget) -> tuple[IndexArray, FloatArray]:
        """Return rows and loads between the levels at which fewer instances might do, where these decide a target."""
        state, capacities = self.state(target.confidence), self.state(target.confidence).capacities
        by_group, max_score = self._max_scores(target)
        is_near = state.min_sizes.score < np.minimum(by_group[target.group], max_score) * (1.0 - 1e-9)
        is_near &= capacities.is_known[self.pairs.row] & (capacities.load[self.pairs.row] > 0)
        pair = np.flatnonzero(is_near)
        if self.demand.is_endless:
            return section_loads(self.grid, capacities, np.unique(self.pairs.row[pair]))
        row, first = np.unique(self.pairs.row[pair], return_index=True)
        pair, row = pair[first, None], row[:, None]
        fewest, most = (sizes.n_instance[pair] for sizes in (state.min_sizes, state.sizes))
        n_instance = np.floor(fewest + (most - fewest) * np.arange(N_TRIED) / N_TRIED)
        n_replica = np.floor(n_instance * self.pairs.per_instance[pair] + 1e-9)
        n_replica = np.clip(n_replica, 1.0, state.sizes.n_replica[pair] - 1.0)
        rows = np.broadcast_to(row, n_replica.shape).ravel()
        load = self._load_of(rows, self.demand.required_load / n_replica.ravel())
        low, high = capacities.load[rows], capacities.missed_load[rows]
        return unique_points(rows, np.clip(load, low + MARGIN * (high - low), high - MARGIN * (high - low)))

    def pin_capacities(self, pair: IndexArray, confidence: float) -> None:
        """Evaluate the model until the capacities of some pairs are exact, also beyond what the demand needs."""
        rows, n_level = np.unique(self.pairs.row[pair]), self.grid.loads.shape[1]
        is_at_end = self.state(confidence).capacities.level[rows] == n_level - 1
        levels = np.arange(self.loads.shape[1])
        is_further = is_at_end[:, None] & (levels >= n_level) & (levels <= self.top[rows][:, None])
        which, level = np.nonzero(is_further)
        points = rows[which], self.loads[rows[which], level]
        while True:
            sections = section_loads(self.grid, self.state(confidence).capacities, rows)
            points = unique_points(*(np.concatenate(parts) for parts in zip(points, sections, strict=True)))
            if not len(points[0]):
                return
            self.grid.evaluate_points(*points)
            points = points[0][:0], points[1][:0]


def run_together(goals: Collection[tuple[Search, SearchTarget]]) -> None:
    """Evaluate the model until the target of each search is decided; the searches share one grid."""
    while goals:
        wanted = np.logical_or.reduce([search.undecided_cells(target) for search, target in goals])
        first, _ = next(iter(goals))
        if (wanted & ~first.grid.is_known).any():
            first.grid.evaluate(wanted)
            continue
        rows, loads = map(
            np.concatenate, zip(*(search.undecided_points(target) for search, target in goals), strict=True)
        )
        if not len(rows):
            return
        first.grid.evaluate_points(*unique_points(rows, loads))
