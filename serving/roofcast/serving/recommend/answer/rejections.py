"""Rejections: why replicas are not recommended, and how far the limits are out of reach."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context
from typing import Final

import numpy as np

from roofcast.data.units import BYTE_PER_GB, S_PER_H, TOKEN_PER_MTOKEN, ms_from_s
from roofcast.features.queries import BoolArray, FloatArray, IndexArray
from roofcast.serving.display_names import engine_name, precision_name
from roofcast.serving.recommend.answer.parts import Rejection, replica_fields
from roofcast.serving.recommend.demand.constraints import OwnedNodes
from roofcast.serving.recommend.demand.slo import Limit, describe_limit
from roofcast.serving.recommend.search.confidence import MAX_EXCESS_RATIO, deployment_throughput
from roofcast.serving.recommend.search.configurations import REASONS
from roofcast.serving.recommend.search.search import Search, SearchTarget

ROUND_DOWN_3, ROUND_UP_3 = (Context(prec=3, rounding=rounding) for rounding in (ROUND_DOWN, ROUND_UP))
"""Rounding to three digits in the conservative direction."""

_TIE: Final = (
    "among equal costs the order is by the probability of meeting the limits (to two digits), then by fewer "
    "accelerators, then by the order of search"
)

_WORDS: Final = {
    "cost": ("cheapest", "costs {0:.{1}f} USD/h"),
    "tokens": ("cheapest", "costs {0:.3g} USD per million tokens"),
    "accelerators": ("smallest", "has {0:.0f} accelerators"),
    "throughput": ("fastest", "serves {0:.3g} requests/s"),
}
"""What the first entry is by each objective, and the score of another in words."""

_RANK: Final = {reason: i for i, reason in enumerate(REASONS)}


@dataclass(frozen=True, slots=True)
class Rejections:
    """Why each replica is rejected; arrays have shape (n_replica,).

    - `reason`: Index in `REASONS`; -1 for a replica of an entry.
    - `excess`: Need over limit; infinite if far beyond, or next to an entry that costs nothing.
    - `cost`, `score`: In US dollars per hour, and what the objective minimises, or their lower bounds; infinite if
      there are none.
    - `is_known`: Whether the score is known and not a lower bound.
    - `limit`: Index of the limit with the largest excess.
    - `best`: Score of the first entry; infinite if there is none.
    """

    reason: IndexArray
    excess: FloatArray
    cost: FloatArray
    score: FloatArray
    is_known: BoolArray
    limit: IndexArray
    best: float

    @property
    def order(self) -> IndexArray:
        """Indices of the rejected replicas, the nearest miss first."""
        rows = np.lexsort((self.cost, self.excess, self.reason))
        return np.asarray(rows[self.reason[rows] >= 0], dtype=np.intp)

    def by_accelerator(self, search: Search, except_for: Collection[str]) -> IndexArray:
        """Return the nearest miss of each accelerator, the nearest first."""
        first: dict[str, int] = {}
        for i in self.order.tolist():
            first.setdefault(search.problem.replicas[i].accelerator, i)
        return np.array([i for name, i in first.items() if name not in except_for], dtype=np.intp)


def find_rejections(
    search: Search, target: SearchTarget, winners: IndexArray, offer: int | None = None
) -> Rejections:
    """Return why each replica is rejected after the search.

    `winners`: pairs of the entries. `offer`: index of the only offer considered; None for all.
    """
    state, pairs, memory, n = search.state(target.confidence), search.pairs, search.memory, len(search.top)
    pair = np.arange(len(pairs.row)) if offer is None else np.flatnonzero(pairs.offer == offer)
    cost, score = np.full((2, n), np.inf)
    np.minimum.at(cost, pairs.row[pair], state.min_sizes.cost[pair])
    np.minimum.at(score, pairs.row[pair], state.min_sizes.score[pair])
    is_known, is_best = np.zeros(n, dtype=bool), state.min_sizes.score[pair] <= score[pairs.row[pair]]
    is_known[pairs.row[pair][state.is_decided[pair] & is_best]] = True
    has_offer = np.isin(np.arange(n), pairs.row[pair])
    best = float(state.sizes.score[winners].min(initial=np.inf))
    reason = np.full(n, _RANK["dearer"])
    reason[score.round(9) <= np.round(best, 9)] = _RANK["same_cost"]
    excess = _cost_ratio(score, best)
    is_over_budget = cost > search.pairs.budget
    reason[is_over_budget], excess[is_over_budget] = _RANK["over_budget"], cost[is_over_budget] / search.pairs.budget
    lacks_nodes = ~np.isfinite(cost)
    reason[lacks_nodes], excess[lacks_nodes] = _RANK["too_few_nodes"], 1.0
    limit = np.zeros(n, dtype=np.intp)
    missed = np.flatnonzero((state.capacities.bound < 0) & memory.fits)
    if len(missed):
        ratios = search.grid.excess_ratios(missed, target.confidence)
        limit[missed] = ratios.argmax(axis=1)
        reason[missed] = _RANK["misses_limit"]
        highest = ratios.max(axis=1)
        p_met = search.grid.p_met[missed, 0]
        ratio = np.maximum(highest, target.confidence / np.where(p_met > 0, p_met, target.confidence))
        excess[missed] = np.where(highest >= MAX_EXCESS_RATIO, np.inf, ratio)
    reason[~has_offer], excess[~has_offer] = _RANK["no_offer"], 1.0
    reason[~memory.fits] = _RANK["does_not_fit"]
    excess[~memory.fits] = (memory.needed_byte / np.maximum(memory.usable_byte, 1.0))[~memory.fits]
    reason[pairs.row[np.intersect1d(winners, pair)]] = -1
    return Rejections(reason, excess, cost, score, is_known, limit, best)


def _cost_ratio(cost: FloatArray, cheapest: float) -> FloatArray:
    """Return costs over the cheapest, at least 1; infinite if the cheapest costs nothing and another does not.

    Examples
    --------
    >>> _cost_ratio(np.array([4.0, 1.0, 0.0]), 2.0).tolist(), _cost_ratio(np.array([4.0, 0.0]), 0.0).tolist()
    ([2.0, 1.0, 1.0], [inf, 1.0])
    """
    if not np.isfinite(cheapest):
        return np.ones_like(cost)
    if cheapest == 0:
        return np.where(cost > 0, np.inf, 1.0)
    return np.maximum(cost / cheapest, 1.0)


def describe_rejections(rejections: Rejections, rows: Sequence[int] | IndexArray, search: Search) -> list[Rejection]:
    """Return the rejections of some replicas in words."""
    return [
        Rejection(
            **replica_fields(search.problem.replicas[i]),
            reason=REASONS[rejections.reason[i]],
            detail=_detail(int(i), rejections, search),
            excess=float(rejections.excess[i]) if np.isfinite(rejections.excess[i]) else None,
        )
        for i in rows
    ]


def owned_rejections(search: Search, target: SearchTarget, winners: IndexArray) -> list[Rejection]:
    """Return the nearest miss on each kind of owned nodes without an entry."""
    nearest = []
    for k, nodes in enumerate(search.problem.offers):
        if isinstance(nodes, OwnedNodes) and k not in search.pairs.offer[winners]:
            if shortage := _shortage(k, nodes, search, target.confidence):
                nearest.append(shortage)
                continue
            rejections = find_rejections(search, target, winners, k)
            accelerators = [search.problem.replicas[i].accelerator for i in rejections.order]
            rows = rejections.order[[name == nodes.accelerator for name in accelerators]][:1]
            described = describe_rejections(rejections, rows, search)
            nearest += [
                one.model_copy(update={"detail": f"owned {nodes.instance_type}: {one.detail}"}) for one in described
            ]
    return nearest


def _shortage(offer: int, nodes: OwnedNodes, search: Search, confidence: float) -> Rejection | None:
    pairs, grid, demand = search.pairs, search.grid, search.demand
    pair = np.flatnonzero(pairs.offer == offer)
    if not len(pair) or demand.is_endless:
        return None
    row = pairs.row[pair]
    per_instance = pairs.per_instance[pair]
    while True:
        capacities = search.state(confidence).capacities
        served, most = capacities.served[row] * per_instance, capacities.max_served[row] * per_instance
        is_near = most >= served.max()
        wanted = search.around_capacity(np.unique(row[is_near]), confidence) & ~grid.is_known
        if not wanted.any():
            break
        grid.evaluate(wanted)
    search.pin_capacities(pair[is_near], confidence)
    served = search.state(confidence).capacities.served[row]
    best = int((served * per_instance).argmax())
    sizes = pairs.size(pair[best : best + 1], demand.required_load, served[best : best + 1])
    n_needed = float(sizes.n_instance[0])
    if served[best] <= 0 or n_needed <= nodes.n_node:
        return None
    n_replica = np.floor(nodes.n_node * per_instance[best] + 1e-9)
    share = n_replica * served[best] / demand.required_load
    load, unit = demand.peak_load, demand.unit
    serves = f"{np.floor(load * share):g}" if demand.users is not None else f"{load * share:.3g}"
    n = nodes.n_accelerator
    text = f"{nodes.n_node * n} {nodes.accelerator} serve {serves} of {load:.10g} {unit}; {n_needed * n:g} would do"
    text += _wait_clause(int(row[best]), search, confidence)
    replica = search.problem.replicas[int(row[best])]
    return Rejection(**replica_fields(replica), reason="too_few_nodes", detail=text, excess=n_needed / nodes.n_node)


def _detail(i: int, rejections: Rejections, search: Search) -> str:
    reason = REASONS[rejections.reason[i]]
    if reason == "does_not_fit":
        memory = search.memory
        needed, usable = memory.needed_byte[i] / BYTE_PER_GB, memory.usable_byte[i] / BYTE_PER_GB
        return f"weights and one request need {needed:.1f} GB; {usable:.1f} GB are usable{_largest(i, search)}"
    if reason == "too_few_nodes":
        return "needs more nodes than there are"
    if reason == "no_offer":
        n = search.problem.replicas[i].n_accelerator
        return f"no instance has room for {n} accelerators, nor a whole number of nodes"
    if reason == "misses_limit":
        limits = search.grid.limits.limits
        if not limits:
            return "one request alone waits longer for a slot than it is served"
        p_met = float(ROUND_DOWN_3.create_decimal_from_float(search.grid.p_met[i, 0]))
        load = "for a single user" if search.demand.users is not None else "at the lowest rate searched"
        limit = describe_limit(limits[int(rejections.limit[i])])
        met = f"{limit} is met" if len(limits) == 1 else "all limits are met"
        furthest = "" if len(limits) == 1 else f"; {limit} is furthest off"
        required = f"probability {search.problem.confidence:g} is required"
        return f"{load}, {met} with probability {p_met:g}; {required}{furthest}"
    return _score_detail(i, reason, rejections, search) + _wait_clause(i, search, search.problem.confidence)


def _wait_clause(i: int, search: Search, confidence: float) -> str:
    grid = search.grid
    if (
        search.demand.users is None
        or not grid.is_cut[i]
        or search.state(confidence).capacities.level[i] < grid.top[i]
    ):
        return ""
    load = f"above {grid.loads[i, grid.top[i]]:g} in flight on a replica"
    return f"; {load}, requests wait longer for a slot than they are served"


def _largest(i: int, search: Search) -> str:
    replica = search.problem.replicas[i]
    counts = [offer.n_accelerator for offer in search.problem.offers if offer.accelerator == replica.accelerator]
    most = max(counts, default=0)
    return f" on {most}, the most that an admitted offer has" if 0 < most <= replica.n_accelerator else ""


def _score_detail(i: int, reason: str, rejections: Rejections, search: Search) -> str:
    score, best = rejections.score[i], rejections.best
    is_bound = "" if rejections.is_known[i] else " at least, at the prices admitted"
    if reason == "over_budget":
        score, best = rejections.cost[i], search.pairs.budget
    is_close = reason != "same_cost" and f"{score:.2f}" == f"{best:.2f}"
    n_digit = 6 if is_close else 2
    if reason == "over_budget":
        return f"costs {score:.{n_digit}f} USD/h{is_bound}, over the budget of {best:.{n_digit}f}"
    first, words = _WORDS[search.pairs.objective]
    own = words.format(_in_unit(score, search), n_digit)
    if reason == "same_cost":
        return f"{own}{is_bound}, as the {first} does; {_TIE}"
    other = words.format(_in_unit(best, search), n_digit) if best else "is free"
    return f"{own}{is_bound}; the {first} that meets the limits {other.removesuffix(' USD/h')}"


def _in_unit(score: float, search: Search) -> float:
    demand, objective = search.demand, search.pairs.objective
    if objective == "throughput":
        return 1.0 / score
    if objective == "tokens":
        return score / S_PER_H * TOKEN_PER_MTOKEN / (demand.n_input_token + demand.n_output_token)
    return score


def unmet_limit_warnings(search: Search) -> tuple[str, ...]:
    """Return, if no replica meets the limits at the lowest load, the best prediction for each limit out of reach.

    If the budget is in the way, the least cost beyond it is returned.
    """
    grid, problem = search.grid, search.problem
    if np.isfinite(search.pairs.budget):
        dearer = search.without_budget()
        target = dearer.cheapest(problem.confidence)
        dearer.run([target])
        if (costs := dearer.costs(target)) and costs[0] > search.pairs.budget:
            least = f"the cheapest deployment that meets the limits costs {np.ceil(costs[0] * 100) / 100:.2f} USD/h"
            return (f"max_usd_per_h: {least}, over the budget of {search.pairs.budget:.10g}",)
    rows = np.flatnonzero(search.memory.fits & np.isin(np.arange(len(search.top)), search.pairs.row))
    if (
        not len(rows)
        or not grid.limits.limits
        or (search.state(problem.confidence).capacities.bound[rows] >= 0).any()
    ):
        return ()
    ratios = grid.excess_ratios(rows, problem.confidence)
    is_closed = search.demand.users is not None
    load = "with a single request in flight on each replica" if is_closed else "at the lowest rate searched"
    condition = f"{load}, at a confidence of {problem.confidence:g}"
    warnings = [
        f"{limit.text} is out of reach{_best(limit, ratio, rows, search)} {condition}"
        for limit, ratio in zip(grid.limits.limits, ratios.T, strict=True)
        if ratio.min() > 1
    ]
    return tuple(warnings) or (f"each limit alone is within reach, but not all of them together {condition}",)


def _best(limit: Limit, ratio: FloatArray, rows: IndexArray, search: Search) -> str:
    grid, confidence = search.grid, search.problem.confidence
    if limit.is_floor:
        median = grid.medians(rows)[limit.quantity]
        z = grid.limits.errors[limit.metric].z_at(confidence)
        throughput = np.exp(median.log_value[:, 0] - median.sd[:, 0] * z)
        total = deployment_throughput(search.demand, grid.loads[rows, 0], throughput)
        best = float(ROUND_DOWN_3.create_decimal_from_float(total.max()))
        return f": the best is {best:.10g} {limit.unit} {_where(rows[total.argmax()], search)}"
    if ratio.min() >= MAX_EXCESS_RATIO:
        return ""
    best = float(ROUND_UP_3.create_decimal_from_float(ms_from_s(limit.value * ratio.min())))
    return f": the best is {best:.10g} {limit.unit.replace('s', 'ms', 1)} {_where(rows[ratio.argmin()], search)}"


def _where(row: int, search: Search) -> str:
    replica = search.problem.replicas[row]
    engine, precision = engine_name(replica.engine), precision_name(replica.weight_precision, replica.weight_bit)
    return f"on {replica.accelerator} {replica.split} ({engine}, {precision})"
