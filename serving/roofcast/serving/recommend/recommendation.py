"""Recommendation of the cheapest deployments that meet a demand."""

import math
from dataclasses import replace
from typing import Final

import numpy as np

from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.prediction_input import factorize
from roofcast.features.validity.model_limits import context_error, reading_remark
from roofcast.serving.defaults import DEFAULT_CONFIDENCE, DEFAULT_LEVEL
from roofcast.serving.predict.row_answers import LENGTH_REMARK
from roofcast.serving.recommend.answer.entries import PredictedDeployments, find_calibration_effect
from roofcast.serving.recommend.answer.fleet import mixed_fleet
from roofcast.serving.recommend.answer.levers import find_levers
from roofcast.serving.recommend.answer.other_offers import other_offers
from roofcast.serving.recommend.answer.pareto_front import pareto_front
from roofcast.serving.recommend.answer.parts import (
    CostOfConfidence,
    Entry,
    FleetPart,
    OtherOffer,
    Recommendation,
    Rejection,
    replica_fields,
)
from roofcast.serving.recommend.answer.rejections import (
    describe_rejections,
    find_rejections,
    owned_rejections,
    unmet_limit_warnings,
)
from roofcast.serving.recommend.demand.constraints import Constraints, OwnedNodes
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.confidence import ROUNDING, LimitModel, check_floors
from roofcast.serving.recommend.search.configurations import Replica
from roofcast.serving.recommend.search.deployment_sizes import Market, group_offers
from roofcast.serving.recommend.search.problem import PER_TOKEN, SearchProblem, find_replicas, reported_limits
from roofcast.serving.recommend.search.search import Deployment, Search, SearchTarget
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

CONFIDENCES: Final = (0.5, 0.8, 0.9, 0.95)
"""Confidences whose least cost is reported, as far as the measurements can guarantee them."""


def recommend(
    bundle: ModelBundle,
    model: ModelSpec,
    market: Market,
    demand: Demand,
    constraints: Constraints | None = None,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    level: float = DEFAULT_LEVEL,
    n_entry: int = 10,
    n_rejection: int = 20,
    references: CalibrationPoints | None = None,
    baseline: RoofcastPredictor | None = None,
    has_levers: bool = True,
) -> Recommendation:
    """Return the cheapest deployments that meet the demand with a confidence.

    Raises `InputError` if requests are longer than the model's context, or no offer is within the constraints;
    `OutOfRangeError` if `level` or `confidence` is above what the measurements can guarantee.

    - `bundle`: In service.
    - `model`: Measured or not.
    - `confidence`: Least probability that an unseen LLM meets all limits; each replica is loaded up to it.
    - `level`: Of the intervals reported.
    - `n_entry`, `n_rejection`: Most entries and rejections returned.
    - `references`: Measurements of the model, or of the user's own stack, to condition the predictions on.
    - `baseline`: Predictor that the entries are compared with; by default that of the bundle if there are references.
    - `has_levers`: Whether to search what would change the cost.
    """
    constraints = constraints or Constraints()
    limits = _check(bundle, model, demand, confidence, level)
    offers = constraints.require_offers(market.offers)
    coefficients = bundle.predictor.coefficients_
    replicas, reasons = find_replicas(model, market, offers, constraints, coefficients)
    no_engine = tuple(
        Rejection(**replica_fields(Replica(name)), reason="no_engine", detail=reason, excess=1.0)
        for name, reason in reasons.items()
    )
    others = CONFIDENCES if math.isinf(demand.deadline_s) else ()  # what replicas complete depends on the confidence
    confidences = sorted({confidence, *(c for c in others if c <= limits.highest_confidence + ROUNDING)})
    if not replicas:
        return _no_replica(no_engine, len(offers), n_rejection, confidences)
    problem = SearchProblem(
        bundle=replace(bundle, predictor=bundle.predictor.condition_on(references)),
        unconditioned=bundle.predictor,
        baseline=baseline or (bundle.predictor if references else None),
        model=model,
        demand=demand,
        constraints=constraints,
        market=market,
        offers=offers,
        replicas=replicas,
        confidence=confidence,
        level=level,
    )
    search = Search(problem, limits)
    result = _search(search, confidences, n_entry, n_rejection, no_engine)
    if problem.baseline:
        effect = find_calibration_effect(search, problem.baseline)
        result = result.model_copy(update={"calibration_effect": effect})
    if not has_levers:
        return result
    levers = find_levers(search, result.entries[0] if result.entries else None)
    return result.model_copy(update={"levers": levers})


def _check(bundle: ModelBundle, model: ModelSpec, demand: Demand, confidence: float, level: float) -> LimitModel:
    if demand.n_output_token <= 1 and any(limit.metric in PER_TOKEN for limit in demand.limits):
        raise InputError("limits", f"{LENGTH_REMARK}; limit ttft or e2e")
    bundle.predictor.check_level(level, [metric for metric, _ in reported_limits(demand)])
    check_floors(demand)
    limits = LimitModel(demand, bundle.predictor, confidence)
    limits.check_confidence(confidence)
    if error := context_error(model, demand.n_input_token, demand.n_output_token):
        raise error
    return limits


def _no_replica(
    no_engine: tuple[Rejection, ...], n_offer: int, n_rejection: int, confidences: list[float]
) -> Recommendation:
    return Recommendation(
        entries=(),
        fleet=(),
        rejections=no_engine[:n_rejection],
        n_rejected=len(no_engine),
        families=no_engine,
        pareto=(),
        runner_up_usd_per_h=None,
        cost_of_confidence=tuple(CostOfConfidence(confidence=one, cost_usd_per_h=None) for one in confidences),
        n_configuration=0,
        n_candidate=0,
        n_offer=n_offer,
        n_predicted=0,
    )


def _search(
    search: Search, confidences: list[float], n_entry: int, n_rejection: int, no_engine: tuple[Rejection, ...]
) -> Recommendation:
    problem, pairs = search.problem, search.pairs
    target = SearchTarget(problem.confidence, group_offers(problem.replicas, problem.offers, pairs), n_entry)
    accelerator_index = factorize(problem.table["accelerator"])[0]
    rival = SearchTarget(problem.confidence, accelerator_index[pairs.row], 2)
    by_confidence = {one: search.cheapest(one) for one in confidences}
    search.run([target, rival, *by_confidence.values()])
    search.pin_capacities(search.winners(target), problem.confidence)
    winners = search.winners(target)
    deployments, elsewhere = search.deployments(winners, problem.confidence), other_offers(search, target, winners)
    rejections = find_rejections(search, target, winners)
    owned = owned_rejections(search, target, winners)
    rented = {offer.accelerator for offer in problem.offers if not isinstance(offer, OwnedNodes)}
    reported = {problem.replicas[one.row].accelerator for one in deployments}
    reported |= {rejection.accelerator for rejection in owned} - rented
    nearest = rejections.by_accelerator(search, except_for=reported)
    described = [*describe_rejections(rejections, rejections.order[:n_rejection], search), *no_engine]
    costs = search.costs(rival)
    entries, fleet = _entries(search, target, deployments, elsewhere)
    return Recommendation(
        entries=entries,
        fleet=fleet,
        rejections=tuple(described[:n_rejection]),
        n_rejected=len(rejections.order) + len(no_engine),
        families=(*owned, *describe_rejections(rejections, nearest, search), *no_engine),
        pareto=pareto_front(search, entries),
        runner_up_usd_per_h=costs[1] if len(costs) > 1 else None,
        cost_of_confidence=tuple(
            CostOfConfidence(confidence=one, cost_usd_per_h=min(search.costs(goal), default=None))
            for one, goal in by_confidence.items()
        ),
        n_configuration=len(problem.replicas),
        n_candidate=int(np.maximum(search.top + 1, 1).sum()),
        n_offer=len(problem.offers),
        n_predicted=search.evaluator.n_predicted,
        warnings=(*filter(None, [reading_remark(problem.model)]), *(() if entries else unmet_limit_warnings(search))),
    )


def _entries(
    search: Search, target: SearchTarget, deployments: list[Deployment], elsewhere: list[tuple[OtherOffer, ...]]
) -> tuple[tuple[Entry, ...], tuple[FleetPart, ...]]:
    parts = mixed_fleet(search, target, deployments[0].cost if deployments else math.inf)
    if not deployments and not parts:
        return (), ()
    predicted = PredictedDeployments([*deployments, *parts], search)
    ranked = enumerate(zip(deployments, elsewhere, strict=True), start=1)
    entries = tuple(predicted.entry(one, rank, also_at) for rank, (one, also_at) in ranked)
    fleet = tuple(predicted.fleet_part(part) for part in parts)
    return entries, fleet if all(part.p_limits_met >= target.confidence for part in fleet) else ()
