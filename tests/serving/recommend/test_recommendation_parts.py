"""Parts of a recommendation: probabilities, replicas, costs, the Pareto front, rejections."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.data.specs import Offer
from roofcast.features.analysis.breakdown import break_down
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.engine.estimate import estimate
from roofcast.serving.recommend.answer.entries import prefill_share, token_costs
from roofcast.serving.recommend.answer.pareto_front import non_dominated
from roofcast.serving.recommend.answer.rejections import Rejections, describe_rejections
from roofcast.serving.recommend.demand.constraints import Constraints, OwnedNodes
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.search.confidence import LimitModel, Medians, check_floors, replica_floor
from roofcast.serving.recommend.search.configurations import REASONS, Replica, enumerate_replicas, splits
from roofcast.serving.recommend.search.deployment_sizes import Pairs
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from tests.builders import a_model, an_example

H100 = "nvidia-h100-sxm-80gb"
L4 = "nvidia-l4-24gb"


def a_conformal(n_group: int = 40) -> GroupedConformal:
    rng = np.random.default_rng(0)
    groups = pd.Series(np.repeat(np.arange(n_group), 5))
    return GroupedConformal(np.abs(rng.standard_normal(len(groups))), groups)


def an_offer(accelerator: str, n: int, price: float, **more: object) -> Offer:
    fields = {
        "provider": "ours", "region": "here", "instance_type": f"{n}x{accelerator}", "accelerator": accelerator,
        "n_accelerator": n, "pricing": "on_demand", "price_usd_per_h": price, "as_of": "2026-11-01",
        "source": "a test", "licence": "none",
    }  # fmt: skip
    return (OwnedNodes if "n_node" in more else Offer).parse(fields | more)


def test_splits_fill_an_instance_and_divide_heads_and_layers() -> None:
    assert set(splits(a_model(), 4)) == {
        (1, 1, 1, 1),
        (2, 1, 1, 1),
        (4, 1, 1, 1),
        (1, 2, 1, 1),
        (2, 2, 1, 1),
        (1, 4, 1, 1),
    }
    assert all(pp <= 3 for _, pp, _, _ in splits(a_model(n_layer=3), 8))
    moe = a_model(n_expert=8, n_expert_per_token=2, moe_intermediate_size=512)
    assert {(2, 1, 1, 1), (2, 1, 1, 2), (1, 1, 2, 2)} == {s for s in splits(moe, 2) if s[0] * s[2] == 2}
    catalog = load_catalog()
    replicas, _ = enumerate_replicas(a_model(n_head=20, n_kv_head=20), catalog.accelerators, catalog.offers)
    assert {replica.tp for replica in replicas} == {1, 2, 4}
    assert len(set(replicas)) == len(replicas)


def test_costs_count_instances_up_to_the_available_number() -> None:
    offers = [an_offer(H100, 8, 20.0), an_offer(H100, 8, 4.0, n_node=2)]
    parts = load_catalog().accelerators
    pairs = Pairs.build([Replica(H100, tp=2), Replica(H100, tp=8)], offers, parts, Constraints())
    cost = pairs.size(slice(None), 3.0, np.ones(4)).cost
    costs = {(int(r), int(o)): c for r, o, c in zip(pairs.row, pairs.offer, cost, strict=True)}
    assert costs == {(0, 0): 20.0, (1, 0): 60.0, (0, 1): 4.0, (1, 1): np.inf}
    assert np.isinf(pairs.size(slice(None), 3.0, np.zeros(4)).cost).all()


def test_a_replica_fills_its_nodes_up_to_the_largest_number() -> None:
    replicas = [Replica(H100, tp=8, pp=2), Replica(H100, tp=4, pp=3)]
    pairs = Pairs.build(replicas, [an_offer(H100, 8, 20.0)], load_catalog().accelerators, Constraints(max_nodes=2))
    assert pairs.row.tolist() == [0]


def test_a_replica_spans_only_nodes_that_fill_a_link_domain() -> None:
    parts = load_catalog().accelerators
    wide = [Replica(H100, tp=8, pp=2), Replica(L4, tp=8, pp=2)]
    offers = [an_offer(H100, 8, 20.0), an_offer(H100, 4, 9.0), an_offer(L4, 8, 5.0), an_offer(L4, 1, 1.0)]
    assert not len(Pairs.build(wide, offers, parts, Constraints()).row)
    pairs = Pairs.build(wide, offers, parts, Constraints(max_nodes=4))
    assert set(zip(pairs.row.tolist(), pairs.offer.tolist(), strict=True)) == {(0, 0), (1, 2)}
    assert pairs.size(slice(None), 3.0, np.ones(2)).cost.tolist() == [120.0, 30.0]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_the_front_is_non_dominated(points: list[tuple[int, int]]) -> None:
    cost, latency = (np.array(values, dtype=float) for values in zip(*points, strict=True))
    front = {(cost[k], latency[k]) for k in non_dominated(cost, latency)}
    expected = {(c, s) for c, s in points if not any((a <= c and b <= s) and (a, b) != (c, s) for a, b in points)}
    assert front == expected


def test_replica_floors_sum_to_the_floor_of_the_deployment() -> None:
    limit = parse_limit("throughput>=1000")
    demand = Demand(500, 100, 200, None, (limit,), think_time_s=10.0)
    (x,) = replica_floor(limit, demand, np.array([16.0]))
    n_replica = 200 / demand.served_load(16.0, x / 100)
    assert n_replica * x == pytest.approx(1000)
    assert np.isinf(replica_floor(limit, Demand(500, 100, 50, None, (), think_time_s=10.0), np.ones(1))).all()


def test_a_rate_meets_floors_up_to_its_output_tokens() -> None:
    limits = (parse_limit("throughput>=1000"),)
    check_floors(Demand(500, 100, None, 10, limits))
    check_floors(Demand(500, 100, None, 5, limits, peak_factor=2))
    check_floors(Demand(500, 100, 1, None, limits))
    check_floors(Demand(500, 100, None, 1e-9, (parse_limit("e2e<=1s"),)))
    with pytest.raises(InputError) as refusal:
        check_floors(Demand(500, 100, None, 3, limits, peak_factor=2))
    assert refusal.value.field == "limits"
    problem = "a peak of 6 a second times 100 output tokens is 600 tokens/s; lower the floor to that, or raise"
    assert f"{problem} request_rate_per_s to 5" in str(refusal.value)


def test_a_prompt_occupies_one_stage_of_a_pipeline_as_it_occupies_one_rank() -> None:
    """Other prompts follow it through the stages, so a prompt costs a fourth of four accelerators either way."""
    shares = []
    for split in ("config__pp", "config__dp"):
        changes = {split: 4.0, "config__n_accelerator": 4.0, "workload__concurrency": 64.0}
        d = an_example(**changes, workload__n_output_token=50.0)
        e = estimate(d, C)
        prompt_s, response_s = e.prefill.total_s / 4, 50 * e.itl_s / e.batch
        shares += prefill_share(d, e, break_down(d, C, e)).tolist()
        assert shares[-1] == pytest.approx((prompt_s / (prompt_s + response_s))[0], rel=0.15)
    assert shares[0] == pytest.approx(shares[1], rel=0.01)


@pytest.mark.parametrize(("think_time_s", "rate_per_s"), [(0.0, 20.0), (10.0, 20 / 3)])
def test_tokens_are_paid_for_by_the_requests_of_all_users_off_the_peak(
    think_time_s: float, rate_per_s: float
) -> None:
    """A replica has 10 requests in flight and ends 2 a second: 10 users, or 30 of whom 20 think; there are 100."""
    demand = Demand(500, 100, 100, None, (), think_time_s=think_time_s, peak_factor=2.0)
    costs = token_costs(demand, 3.6, 10.0, 2.0, 0.25)
    usd = 3.6 / 3600 / rate_per_s
    assert costs.input == pytest.approx(0.25 * usd / 500 * 1e6)
    assert costs.output == pytest.approx(0.75 * usd / 100 * 1e6)
    assert costs.total == pytest.approx(usd / 600 * 1e6)


def a_limit_model(*limits: str) -> LimitModel:
    predictor: Any = SimpleNamespace(
        error_distributions_={name: SimpleNamespace(conformal=a_conformal()) for name in ("ttft_s", "itl_s")}
    )
    return LimitModel(Demand(500, 100, 1, None, tuple(map(parse_limit, limits))), predictor, 0.8)


def p_met(**limits: float) -> float:
    """Return the probability of meeting limits in seconds on metrics, or percentiles, of 1 s, at least .5 s."""
    model = a_limit_model(*(f"{name.replace('_', ':')}<={value}s" for name, value in limits.items()))
    medians = {limit.quantity: Medians(np.zeros(1), np.full(1, 0.3), np.log([0.5])) for limit in model.limits}
    return float(model.p_met(medians, np.ones(1))[0])


def test_limits_on_two_metrics_are_met_independently() -> None:
    assert p_met(ttft_p50=1) == p_met(itl_p50=1) == 0.5
    assert p_met(ttft_p50=1, itl_p50=1) == 0.25
    assert p_met(ttft_p50=1, itl_p50=1.2) == pytest.approx(0.5 * p_met(itl_p50=1.2))


def test_no_limit_beyond_physics_is_met() -> None:
    assert p_met(ttft_p50=0.51) > 0
    assert p_met(ttft_p50=0.49) == 0


def test_limits_on_one_metric_share_its_error_so_the_strictest_counts() -> None:
    assert p_met(ttft_p50=1, ttft_p95=1) == 0.5
    assert p_met(ttft_p50=1, ttft_p95=1.2) == p_met(ttft_p50=1.2, ttft_p95=1) == 0.5
    assert p_met(ttft_p50=1, ttft_p95=1.2, itl_p50=1) == 0.25


def test_a_confidence_above_the_highest_is_refused() -> None:
    limits = a_limit_model("ttft<=1s", "itl<=1s")
    highest = limits.highest_confidence
    assert highest == pytest.approx(((1 + a_conformal().highest_level) / 2) ** 2)
    limits.check_confidence(highest)
    with pytest.raises(OutOfRangeError):
        limits.check_confidence(highest + 1e-6)
    a_limit_model().check_confidence(0.999)


def detail_of(reason: str, cost: float, p_met: float = 1.0, limits: tuple[str, ...] = ("e2e<=1s",)) -> str:
    """Return the detail of a rejection with a cheapest of 2 USD/h, a budget of 300 and a confidence of 0.8."""
    rejections = Rejections(
        reason=np.array([REASONS.index(reason)]), excess=np.ones(1), cost=np.array([cost]), score=np.array([cost]),
        is_known=np.array([cost != 250.0]), limit=np.zeros(1, dtype=np.intp), best=2.0,
    )  # fmt: skip
    parsed = SimpleNamespace(limits=[parse_limit(text) for text in limits])
    search: Any = SimpleNamespace(
        grid=SimpleNamespace(limits=parsed, p_met=np.array([[p_met]]), is_cut=[False]),
        problem=SimpleNamespace(replicas=[Replica(L4)], confidence=0.8),
        demand=Demand(500, 100, 50, None, ()),
        pairs=SimpleNamespace(objective="cost", budget=300.0),
    )
    (one,) = describe_rejections(rejections, [0], search)
    assert one.reason == reason
    return one.detail


def test_rejection_details_show_enough_digits() -> None:
    assert detail_of("dearer", 4.0) == "costs 4.00 USD/h; the cheapest that meets the limits costs 2.00"
    assert detail_of("dearer", 2.004) == "costs 2.004000 USD/h; the cheapest that meets the limits costs 2.000000"
    assert detail_of("dearer", 250.0).startswith("costs 250.00 USD/h at least, at the prices admitted; ")
    assert detail_of("over_budget", 300.001) == "costs 300.001000 USD/h, over the budget of 300.000000"
    assert detail_of("same_cost", 2.0).startswith("costs 2.00 USD/h, as the cheapest does; among equal costs ")
    assert detail_of("misses_limit", 4.0, 0.79996) == (
        "for a single user, E2E p95 up to 1 s is met with probability 0.799; probability 0.8 is required"
    )
    assert detail_of("misses_limit", 4.0, 0.0123456, ("ttft<=1s", "itl<=1s")) == (
        "for a single user, all limits are met with probability 0.0123; probability 0.8 is required; "
        "TTFT p95 up to 1 s is furthest off"
    )


def test_precisions_are_those_that_an_engine_serves_on_the_accelerator() -> None:
    parts = load_catalog().accelerators
    offers = [an_offer("nvidia-a100-sxm-80gb", 1, 1.0), an_offer(H100, 1, 2.0)]
    bounds = Constraints(weight_precisions=frozenset({"fp8", "int4"}), engines=frozenset({"trtllm"}))
    replicas, _ = enumerate_replicas(a_model(), parts, offers, bounds)
    combinations = {(replica.accelerator, replica.weight_precision) for replica in replicas}
    assert combinations == {("nvidia-a100-sxm-80gb", "int4"), (H100, "int4"), (H100, "fp8")}
    offers = [an_offer("intel-gaudi3-128gb", 1, 1.0)]
    replicas, none = enumerate_replicas(a_model(), parts, offers, Constraints(weight_precisions=frozenset({"fp4"})))
    assert replicas == []
    assert none["intel-gaudi3-128gb"].startswith("vllm with ours/dense-7b fp4 does not run on Intel Gaudi 3: ")


def test_without_bf16_units_an_engine_serves_fp16_or_nothing() -> None:
    parts = load_catalog().accelerators
    offers = [an_offer("nvidia-v100-sxm2-32gb", 1, 1.0), an_offer("nvidia-t4-16gb", 1, 1.0), an_offer(L4, 1, 1.0)]
    replicas, none = enumerate_replicas(a_model(), parts, offers)
    combinations = {(r.accelerator, r.engine, r.weight_precision) for r in replicas if r.accelerator != L4}
    assert combinations == {("nvidia-t4-16gb", "vllm", "fp16"), ("nvidia-v100-sxm2-32gb", "llama.cpp", "bf16")}
    assert none == {}
    bounds = Constraints(weight_precisions=frozenset({"bf16"}), engines=frozenset({"vllm"}))
    replicas, none = enumerate_replicas(a_model(), parts, offers, bounds)
    assert {replica.accelerator for replica in replicas} == {L4}
    assert "vllm with ours/dense-7b bf16 does not run on NVIDIA Tesla T4" in none["nvidia-t4-16gb"]
