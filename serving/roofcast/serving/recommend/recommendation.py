"""From a demand and a market to a recommendation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.prediction_input import factorize
from roofcast.features.engine.memory import Memory
from roofcast.features.validity.context import context_error
from roofcast.serving.recommend.answer.entries import build_entries
from roofcast.serving.recommend.answer.fleet import mixed_fleet
from roofcast.serving.recommend.answer.pareto_front import pareto_front
from roofcast.serving.recommend.answer.recommendation import Entry, Recommendation, Rejection
from roofcast.serving.recommend.answer.rejections import families, find_misses, owned, tell
from roofcast.serving.recommend.answer.unmet_limits import out_of_reach
from roofcast.serving.recommend.demand.demand import Constraints, Demand
from roofcast.serving.recommend.demand.inventory import OwnedNodes
from roofcast.serving.recommend.search.confidence import ROUNDING, check_confidence, highest_confidence
from roofcast.serving.recommend.search.evaluation import Evaluator, most_users, user_levels
from roofcast.serving.recommend.search.load_grid import LoadGrid, check_floors, limits_of_replicas
from roofcast.serving.recommend.search.market import Market, Pairs
from roofcast.serving.recommend.search.problem import Plan, SearchProblem, reported
from roofcast.serving.recommend.search.replicas import describe_replicas, enumerate_replicas, question_table
from roofcast.serving.recommend.search.search import Search, SearchTarget
from roofcast.training.learner.error_distribution import GroupedConformal
from roofcast.training.learner.predictor import CalibrationPoints
from roofcast.training.lifecycle.bundle import ModelBundle

IndexArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]

DEFAULT_CONFIDENCE: Final = 0.8

CONFIDENCES: Final = (0.5, 0.8, 0.9, 0.95)
"""Whose costs are told, as far as the measurements can promise them."""


def recommend(
    bundle: ModelBundle,
    model: ModelSpec,
    market: Market,
    demand: Demand,
    constraints: Constraints | None = None,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    level: float = 0.8,
    n_entry: int = 10,
    n_rejection: int = 20,
    references: CalibrationPoints | None = None,
) -> Recommendation:
    """Return the cheapest deployments that meet the demand with the confidence asked.

    Parameters
    ----------
    bundle
        In service.
    model
        Any model, measured or not.
    market
        What there is.
    demand, constraints
        What is asked, and within what bounds.
    confidence
        Least probability that an unseen LLM meets all limits; each replica is loaded as far as that allows.
    level
        Of the intervals that are shown.
    n_entry, n_rejection
        Most entries and rejections returned.
    references
        Measurements of the model, or of the user's own stack, which the predictions then know.

    Raises
    ------
    InputError
        If requests are longer than the model's context, there is no limit, or no offer is within the constraints.
    OutOfRangeError
        If `level` or `confidence` is more than the measurements can promise.
    """
    bounds = constraints or Constraints()
    _check(bundle, model, demand, confidence, level)
    offers = bounds.admissible_offers(market.offers)
    if not offers:
        raise InputError("constraints", "admit no offer; relax providers, regions, accelerators or pricing")
    replicas, no_engine = enumerate_replicas(model, market.accelerators, offers, bounds)
    if not replicas:
        return _nothing(no_engine, len(offers), n_rejection, _promised(bundle, demand))
    table = question_table(replicas, model, demand, bounds)
    descriptors = describe_replicas(table, model, market.accelerators)
    told = replace(bundle, predictor=bundle.predictor.condition_on(references))
    plain = bundle.predictor if references else None
    case = SearchProblem(
        told, plain, model, demand, bounds, market, offers, replicas, table, descriptors, confidence, level
    )
    return _answer(case, n_entry, n_rejection, no_engine)


def _check(bundle: ModelBundle, model: ModelSpec, demand: Demand, confidence: float, level: float) -> None:
    if not demand.limits:
        raise InputError("limits", "must be one at least")
    bundle.predictor.check_level(level, [metric for metric, _ in reported(demand)])
    check_floors(demand)
    check_confidence(confidence, _scales(bundle, demand))
    if error := context_error(model, demand.n_input_token, demand.n_output_token):
        raise error


def _scales(bundle: ModelBundle, demand: Demand) -> dict[str, GroupedConformal]:
    """Return how errors are distributed, of each metric that a replica may miss a limit on."""
    known = bundle.predictor.error_distributions_
    return {limit.metric: known[limit.metric].conformal for limit in limits_of_replicas(demand)}


def _promised(bundle: ModelBundle, demand: Demand) -> tuple[float, ...]:
    """Return those of `CONFIDENCES` that the measurements can promise."""
    highest = highest_confidence(_scales(bundle, demand))
    return tuple(confidence for confidence in CONFIDENCES if confidence <= highest + ROUNDING)


def _nothing(
    no_engine: list[Rejection], n_offer: int, n_rejection: int, confidences: tuple[float, ...]
) -> Recommendation:
    """Return the answer where no engine or precision that is admitted runs on what is on offer."""
    return Recommendation(
        entries=(),
        fleet=(),
        rejections=tuple(no_engine[:n_rejection]),
        n_rejected=len(no_engine),
        families=tuple(no_engine),
        pareto=(),
        runner_up_usd_per_h=None,
        cost_of_confidence=dict.fromkeys(confidences),
        n_configuration=0,
        n_candidate=0,
        n_offer=n_offer,
        n_predicted=0,
    )


def _answer(case: SearchProblem, n_entry: int, n_rejection: int, no_engine: list[Rejection]) -> Recommendation:
    forecaster = Evaluator(case.bundle.predictor, case.descriptors, is_open=case.demand.users is None)
    memory = forecaster.memory
    loads, most = _loads(case, forecaster, memory)
    n_useful = _n_useful(loads, case.demand)
    grid = LoadGrid(forecaster, case.demand, loads[:, :n_useful], np.minimum(most, n_useful - 1).astype(np.intp))
    pairs = Pairs.of(case.replicas, case.offers, case.market.accelerators, case.bounds.max_nodes)
    search = Search(grid, pairs, case.budget)
    main = SearchTarget(case.confidence, pairs.offer, n_entry)
    rival = SearchTarget(case.confidence, factorize(case.table["accelerator"])[0][pairs.row], 2)
    surer = {c: SearchTarget(c, np.zeros_like(pairs.offer), 1) for c in _promised(case.bundle, case.demand)}
    search.run([main, rival, *surer.values()])
    chosen = search.winners(main)
    entries = build_entries(_plans(chosen, search, case, loads, most), case, forecaster)
    alone = entries[0].cost_usd_per_h if entries else math.inf
    misses = find_misses(search, main, chosen, case, memory)
    own = owned(search, main, chosen, case, memory)
    rented = {offer.accelerator for offer in case.offers if not isinstance(offer, OwnedNodes)}
    told_of = {entry.replica.accelerator for entry in entries} | {miss.replica.accelerator for miss in own} - rented
    told = [tell(misses, misses.order[:n_rejection], search, case, memory), no_engine]
    costs = search.costs(rival)
    answer = Recommendation(
        entries=entries,
        fleet=_fleet(mixed_fleet(search, main, alone, case), case, forecaster),
        rejections=tuple([*told[0], *told[1]][:n_rejection]),
        n_rejected=len(misses.order) + len(no_engine),
        families=(*own, *families(misses, case, told_of, search, memory), *no_engine),
        pareto=(),
        runner_up_usd_per_h=costs[1] if len(costs) > 1 else None,
        cost_of_confidence={c: next(iter(search.costs(goal)), None) for c, goal in surer.items()},
        n_configuration=len(case.replicas),
        n_candidate=int(np.maximum(most + 1, 1).sum()),
        n_offer=len(case.offers),
        n_predicted=0,
        warnings=() if entries else out_of_reach(search, case, memory),
    )
    front = pareto_front(search, case, entries)
    return replace(answer, pareto=front, n_predicted=forecaster.n_predicted)


def _fleet(parts: list[Plan], case: SearchProblem, forecaster: Evaluator) -> tuple[Entry, ...]:
    """Return what is predicted of a mixture's parts; nothing if one of them would miss the limits."""
    entries = build_entries(parts, case, forecaster)
    return entries if all(entry.p_limits_met >= case.confidence for entry in entries) else ()


def _loads(case: SearchProblem, forecaster: Evaluator, memory: Memory) -> tuple[FloatArray, IndexArray]:
    """Return the loads to try, by replica and level, and the place of the greatest that each replica may have.

    No replica is loaded beyond what was measured for so many accelerators; -1 stands for one that does not fit.
    """
    size = np.array([float(replica.n_accelerator) for replica in case.replicas])
    most = np.maximum(most_users(case.bundle) * size, 1.0)
    if forecaster.is_open:
        loads = forecaster.rate_levels(most)
        return loads, np.where(memory.fits, loads.shape[1] - 1, -1).astype(np.intp)
    levels = user_levels(float(most.max()))
    place = np.searchsorted(levels, most + 0.5) - 1
    return np.broadcast_to(levels, (len(size), len(levels))), np.where(memory.fits, place, -1).astype(np.intp)


def _n_useful(loads: FloatArray, demand: Demand) -> int:
    """Return how many levels tell costs apart: no replica need hold more than all users."""
    n_level = int(loads.shape[1])
    if demand.users is None or demand.think_time_s:
        return n_level
    return min(int(np.searchsorted(loads[0], demand.required_load)) + 1, n_level)


def _plans(
    chosen: IndexArray, search: Search, case: SearchProblem, loads: FloatArray, most: IndexArray
) -> list[Plan]:
    """Return the deployments of the pairs that were chosen."""
    grid, pairs = search.grid, search.pairs
    standing = search.standing(case.confidence)
    row = pairs.row[chosen]
    capacity = standing.capacity[row]
    n_replica = search.n_replica(standing.capacity, grid.served)[row]
    load = search.own_load(row, n_replica, capacity)
    n_instance = np.ceil(n_replica / pairs.per_instance[chosen] - 1e-9)
    is_useless = np.arange(loads.shape[1]) >= grid.loads.shape[1]
    may_hold_more = (capacity == grid.top[row]) & is_useless[most[row]]
    last = np.where(may_hold_more, most[row], capacity)
    return [
        Plan(
            row=int(row[k]),
            offer=int(pairs.offer[pair]),
            load=float(load[k]),
            capacity=float(loads[row[k], capacity[k]]),
            more=tuple(loads[row[k], capacity[k] + 1 : last[k] + 1].tolist()),
            n_replica=int(n_replica[k]),
            n_instance=int(n_instance[k]),
            cost=float(standing.cost[pair]),
        )
        for k, pair in enumerate(chosen.tolist())
    ]
