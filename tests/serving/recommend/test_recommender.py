import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.catalog.support_rows import MeasuredStack
from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.serving.composition import Service
from roofcast.serving.recommend.answer import pareto_front
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.recommendation import CONFIDENCES, recommend
from roofcast.serving.recommend.search.confidence import LimitModel
from roofcast.serving.recommend.search.configurations import describe_replicas, enumerate_replicas, replica_table
from roofcast.serving.recommend.search.deployment_sizes import Pairs
from roofcast.serving.recommend.search.evaluation import Evaluator, max_users_per_accelerator, user_levels
from roofcast.serving.recommend.search.load_grid import RESOLUTION, LoadGrid
from tests.builders import a_model

NO_LIMIT = 10_000
MOE = {"n_expert": 8, "n_expert_per_token": 2, "moe_intermediate_size": 2048, "n_param_active": 4 * 10**9}


def a_demand(users: float = 50, limits: Sequence[str] = ("itl:p50<=60ms",), **more: Any) -> Demand:
    return Demand(500, 100, users, None, tuple(map(parse_limit, limits)), **more)


def a_rate(rate: float, limits: Sequence[str] = ("itl:p50<=60ms",)) -> Demand:
    return Demand(500, 100, None, rate, tuple(map(parse_limit, limits)))


class Market:
    """A few accelerators of the catalogue, on a few instances each."""

    names = ("nvidia-l4-24gb", "nvidia-a100-sxm-80gb", "nvidia-h100-sxm-80gb", "amd-mi300x-192gb")
    measured: tuple[MeasuredStack, ...] = ()

    def __init__(self) -> None:
        catalog = load_catalog()
        self.accelerators: dict[str, AcceleratorSpec] = {name: catalog.accelerators[name] for name in self.names}
        offers: dict[tuple[str, int], Offer] = {}
        for offer in catalog.offers:
            if offer.accelerator in self.names and (offer.pricing, offer.market) == ("on_demand", "provider"):
                offers.setdefault((offer.accelerator, offer.n_accelerator), offer)
        self.offers = tuple(offers.values())


def exhaustive(service: Service, model: ModelSpec, demand: Demand, confidence: float) -> list[tuple[float, float]]:
    """Return bounds of the costs of the cheapest deployments of each alternative, from a prediction of every load.

    The lower bound takes the highest load that meets the limits, the upper one the highest before the first that
    misses them; they are equal where the probability falls with the load. Users who think may have a fraction of a
    request in flight, up to the next load.
    """
    bundle, market, bounds = service.active_model.bundle, Market(), Constraints()
    replicas, _ = enumerate_replicas(model, market.accelerators, market.offers, bounds)
    table = replica_table(replicas, model, demand, bounds)
    descriptors = describe_replicas(table, model, market.accelerators)
    is_open = demand.users is None
    evaluator = Evaluator(bundle.predictor, descriptors, is_open=is_open)
    most = max_users_per_accelerator(bundle) * np.array([replica.n_accelerator for replica in replicas])
    shares = demand.required_load / np.arange(1, 120)
    levels = np.unique([*user_levels(float(most.max())), *np.ceil(shares), *np.round(1.01 ** np.arange(700))])
    loads = np.tile(levels[levels <= most.max() + 0.5], (len(replicas), 1))
    top = np.where(evaluator.memory.fits, np.searchsorted(loads[0], most + 0.5) - 1, -1)
    if is_open:
        rates = evaluator.rate_levels(most)
        loads = np.sort(np.concatenate([rates, np.tile(shares, (len(replicas), 1))], axis=1), axis=1)
        top = np.where(evaluator.memory.fits, loads.shape[1] - 1, -1)
    grid = LoadGrid(evaluator, LimitModel(demand, bundle.predictor, 0.8), loads, top)
    grid.evaluate(np.arange(loads.shape[1]) <= grid.top[:, None])
    is_met = (grid.p_met >= confidence) & (np.arange(loads.shape[1]) <= grid.top[:, None])
    above = np.append(grid.served[:, 1:], grid.served[:, -1:], axis=1) if demand.think_time_s else grid.served
    highest = np.where(is_met, above, 0.0).max(axis=1)
    first = np.where(np.cumsum(~is_met, axis=1) == 0, grid.served, 0.0).max(axis=1)
    pairs = Pairs.build(replicas, market.offers, market.accelerators, bounds)
    tolerance = RESOLUTION if demand.think_time_s else 0.0
    costs = [
        pairs.size(slice(None), demand.required_load, served[pairs.row]).cost
        for served in (highest * (1 + tolerance), first * (1 - tolerance))
    ]
    names = [f"{replicas[row].accelerator} {replicas[row].weight_precision}" for row in pairs.row]
    least = pd.DataFrame({"low": costs[0], "high": costs[1]}).groupby(names).min()
    return [*zip(sorted(least["low"]), sorted(least["high"]), strict=True)]


@pytest.mark.parametrize(
    ("model", "demand", "confidence"),
    [
        (a_model(), a_demand(200, ("itl:p50<=40ms", "ttft:p95<=2s")), 0.8),
        (a_model(**MOE), a_demand(3000, ("e2e:p50<=8s",)), 0.65),
        (a_model(), a_demand(400, ("tpot:p50<=60ms", "throughput>=2000"), think_time_s=5.0), 0.8),
        (a_model(), a_demand(3000, ("tpot:p50<=60ms",)), 0.8),
        (a_model(**MOE), a_rate(20, ("ttft:p50<=1s", "tpot:p50<=60ms")), 0.7),
    ],
)
def test_the_search_finds_the_result_of_an_exhaustive_search(
    service: Service, model: ModelSpec, demand: Demand, confidence: float
) -> None:
    expected = exhaustive(service, model, demand, confidence)
    for n_entry in (3, NO_LIMIT):
        result = recommend(
            service.active_model.bundle, model, Market(), demand, confidence=confidence, n_entry=n_entry
        )
        assert result.entries
        assert len(result.entries) == min(n_entry, len(expected))
        for entry, (low, high) in zip(result.entries, expected[:n_entry], strict=True):
            assert low * (1 - 1e-9) <= entry.cost_usd_per_h <= high * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_a_lower_confidence_never_costs_more(service: Service, seed: int) -> None:
    pick = np.random.default_rng(seed)
    limits = (f"ttft:p95<={pick.choice([0.3, 1, 3])}s", f"tpot:p50<={pick.choice([15, 30, 60])}ms")
    lengths = float(pick.integers(100, 4000)), float(pick.integers(20, 500))
    users = float(pick.integers(2, 600)) if seed % 2 else None
    rate = None if users else float(np.round(10 ** pick.uniform(-1, 1.5), 2))
    think_time_s = float(pick.choice([0.0, 10.0])) if users else 0.0
    demand = Demand(*lengths, users, rate, tuple(map(parse_limit, limits)), think_time_s)
    costs, reported = [], {}
    for confidence in (0.5, 0.65, 0.8, 0.9):
        answer = recommend(
            service.active_model.bundle, a_model(), Market(), demand, confidence=confidence, has_levers=False
        )
        costs.append(answer.entries[0].cost_usd_per_h if answer.entries else math.inf)
        assert all(entry.p_limits_met >= confidence for entry in answer.entries)
        in_order = [one.cost_usd_per_h or math.inf for one in answer.cost_of_confidence]
        assert in_order == sorted(in_order)
        reported[confidence] = answer.cost_of_confidence
    assert costs == sorted(costs)
    assert reported[0.8] == reported[0.9]


def test_the_requests_in_flight_are_the_most_that_meet_the_limits(service: Service) -> None:
    demand = a_demand(5000, ("tpot:p50<=30ms", "ttft:p95<=2s"))
    answer = recommend(service.active_model.bundle, a_model(), Market(), demand, has_levers=False)
    capacities = {entry.in_flight_per_replica for entry in answer.entries}
    assert capacities - {*user_levels(5000)}
    one = answer.entries[0]
    share = math.ceil(5000 / one.n_replica)
    assert share <= one.in_flight_per_replica
    assert math.ceil(5000 / (one.n_replica - 1)) > one.in_flight_per_replica * (1 - RESOLUTION)


def test_the_search_predicts_less_than_a_third_of_the_candidates(service: Service) -> None:
    demand = a_demand(200, ("itl:p50<=40ms",))
    result = recommend(service.active_model.bundle, a_model(), load_catalog(), demand)
    assert result.n_candidate > 2000
    assert result.n_predicted < result.n_candidate / 3


def test_the_load_of_a_replica_is_bounded_by_the_measurements(service: Service) -> None:
    most = max_users_per_accelerator(service.active_model.bundle)
    result = recommend(
        service.active_model.bundle, a_model(), load_catalog(), a_demand(users=1e5, limits=("itl:p50<=9s",))
    )
    assert result.entries
    assert all(entry.in_flight_per_replica <= most * entry.replica.n_accelerator for entry in result.entries)


def test_every_configuration_is_recommended_or_rejected(service: Service) -> None:
    result = recommend(
        service.active_model.bundle, a_model(), load_catalog(), a_demand(), n_entry=NO_LIMIT, n_rejection=NO_LIMIT
    )
    ranked = {entry.replica for entry in result.entries}
    rejected = {rejection.replica for rejection in result.rejections}
    assert not ranked & rejected
    assert len(rejected) == len(result.rejections) == result.n_rejected
    without_engine = sum(rejection.reason == "no_engine" for rejection in result.rejections)
    assert len(ranked) + result.n_rejected == result.n_configuration + without_engine
    accelerators = {entry.replica.accelerator for entry in result.entries}
    assert {family.replica.accelerator for family in result.families}.isdisjoint(accelerators)


def test_a_tight_budget_turns_entries_into_rejections(service: Service) -> None:
    bundle = service.active_model.bundle
    free = recommend(bundle, a_model(), load_catalog(), a_demand(), n_entry=NO_LIMIT)
    budget = free.entries[len(free.entries) // 2].cost_usd_per_h
    constrained = recommend(
        bundle, a_model(), load_catalog(), a_demand(), Constraints(max_usd_per_h=budget), n_entry=NO_LIMIT
    )
    expected = [entry for entry in free.entries if entry.cost_usd_per_h <= budget]
    assert [e.cost_usd_per_h for e in constrained.entries] == [e.cost_usd_per_h for e in expected]
    assert all(point.cost_usd_per_h <= budget for point in constrained.pareto)


@pytest.mark.parametrize(
    ("model", "changes", "problem"),
    [
        ({}, {"level": 0.99}, r"ask for at most 0\.9[0-8]"),
        ({}, {"confidence": 0.999}, r"a confidence of 0\.999 is above .* ask for at most 0\.9[0-9]"),
        ({"max_context_token": 512}, {}, "n_input_token: 500 with 100 output exceeds the model's context of 512"),
    ],
)
def test_a_level_confidence_or_context_out_of_reach_is_refused(
    service: Service, model: dict[str, int], changes: dict[str, Any], problem: str
) -> None:
    more = {"limits": ("itl:p50<=60ms",)} | changes
    demand = a_demand(limits=more.pop("limits"))
    with pytest.raises((InputError, OutOfRangeError), match=problem):
        recommend(service.active_model.bundle, a_model(**model), load_catalog(), demand, **more)


NO_HARDWARE = Constraints(accelerators=frozenset({"nvidia-l4-24gb"}), weight_precisions=frozenset({"fp4"}))


@pytest.mark.parametrize("bounds", [Constraints(), NO_HARDWARE])
def test_costs_are_reported_up_to_the_highest_confidence(service: Service, bounds: Constraints) -> None:
    bundle, reported = service.active_model.bundle, []
    for limits in (["itl:p50<=9s"], ["nttft:p50<=9s", "ttft:p95<=9s", "itl:p50<=9s", "e2e:p95<=900s"]):
        demand = a_demand(limits=limits)
        result = recommend(bundle, a_model(), Market(), demand, bounds)
        confidences = [one.confidence for one in result.cost_of_confidence]
        highest = LimitModel(demand, bundle.predictor, 0.8).highest_confidence
        assert confidences == [confidence for confidence in CONFIDENCES if confidence <= highest]
        reported.append(confidences)
    assert len(reported[1]) < len(reported[0]), "four limits together have a lower highest confidence than one"


@pytest.mark.parametrize(
    "demand",
    [
        a_demand(500),
        a_demand(2000, ("ttft:p95<=3s", "tpot:p50<=60ms"), think_time_s=60.0),
        a_rate(20, ("ttft:p95<=3s",)),
    ],
)
def test_each_entry_is_on_the_front_or_dominated(
    service: Service, demand: Demand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few other points are predicted."""
    monkeypatch.setattr(pareto_front, "MAX_PREDICTED", 3)
    result = recommend(service.active_model.bundle, a_model(), load_catalog(), demand)
    shown = {(point.offer.id, point.replica, point.n_replica) for point in result.pareto}
    points = [(point.cost_usd_per_h, point.e2e_s) for point in result.pareto]
    assert result.entries
    for entry in result.entries:
        (e2e_s,) = (m.value for m in entry.predictions if (m.metric, m.statistic) == ("e2e_s", "p50"))
        own = entry.cost_usd_per_h, e2e_s
        assert not any(np.less_equal(own, point).all() and np.less(own, point).any() for point in points)
        is_dominated = any(np.less_equal(point, np.add(own, 1e-9)).all() for point in points)
        assert (entry.offer.id, entry.replica, entry.n_replica) in shown or is_dominated


@pytest.mark.parametrize("n_entry", [1, 10])
def test_rejections_for_cost_cost_more_than_the_cheapest(service: Service, n_entry: int) -> None:
    """The cost is exact where it was predicted, and elsewhere a bound above the cheapest."""
    demand = Demand(8000, 20, 3000, None, tuple(map(parse_limit, ("ttft:p95<=3s", "tpot:p50<=60ms"))), 60.0)
    bounds = Constraints(pricing=frozenset({"on_demand", "spot"}), max_usd_per_h=300.0)
    result = recommend(
        service.active_model.bundle, a_model(), load_catalog(), demand, bounds, n_entry=n_entry, n_rejection=NO_LIMIT
    )
    cheapest = result.entries[0].cost_usd_per_h
    dearer = [rejection for rejection in result.rejections if rejection.reason == "dearer"]
    assert {" at least" in rejection.detail for rejection in dearer} == {True, False}
    for rejection in dearer:
        assert rejection.excess is not None
        assert rejection.excess > 1
        assert float(rejection.detail.split()[1]) > cheapest


def test_rejections_of_equal_cost_are_no_rejections_for_cost(service: Service) -> None:
    """A single user is served by any engine on the cheapest instance."""
    demand = a_demand(1, ("itl:p50<=9s",))
    result = recommend(
        service.active_model.bundle, a_model(), load_catalog(), demand, n_entry=1, n_rejection=NO_LIMIT
    )
    cheapest = result.entries[0].cost_usd_per_h
    same = [rejection for rejection in result.rejections if rejection.reason == "same_cost"]
    assert same
    assert same == list(result.rejections[: len(same)])
    for rejection in same:
        assert rejection.excess == 1
        assert rejection.detail.startswith(f"costs {cheapest:.2f} USD/h, as the cheapest does; among equal costs ")
    dearer = [rejection.excess or math.inf for rejection in result.rejections if rejection.reason == "dearer"]
    assert min(dearer) > 1


def test_the_cost_of_a_rejection_is_that_of_its_entry(service: Service) -> None:
    """The expected cost is that of the best entry on the accelerator, without a limit on entries."""
    demand = a_demand(3000, ("ttft:p95<=3s", "tpot:p50<=60ms"), think_time_s=60.0)
    bundle = service.active_model.bundle
    unlimited = recommend(bundle, a_model(), load_catalog(), demand, n_entry=NO_LIMIT)
    few = recommend(bundle, a_model(), load_catalog(), demand, n_entry=10)
    least = {e.replica.accelerator: e.cost_usd_per_h for e in reversed(unlimited.entries)}
    exact = [f for f in few.families if f.reason == "dearer" and " at least" not in f.detail]
    assert exact
    for family in exact:
        assert (family.excess or math.inf) * few.entries[0].cost_usd_per_h == pytest.approx(
            least[family.replica.accelerator]
        )


def test_the_runner_up_is_another_accelerator(service: Service) -> None:
    result = recommend(service.active_model.bundle, a_model(), load_catalog(), a_demand(), n_entry=NO_LIMIT)
    first = result.entries[0].replica.accelerator
    others = [entry.cost_usd_per_h for entry in result.entries if entry.replica.accelerator != first]
    assert result.runner_up_usd_per_h == min(others)
