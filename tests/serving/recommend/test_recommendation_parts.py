"""What a recommendation is computed from: chances, replicas, what they cost, the front."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.data.specs import Offer
from roofcast.features.validity.engine_support import can_run, engines_on
from roofcast.serving.recommend.answer.pareto_front import non_dominated
from roofcast.serving.recommend.answer.recommendation import REASONS, Replica
from roofcast.serving.recommend.answer.rejections import Misses, tell
from roofcast.serving.recommend.api.response import Reason
from roofcast.serving.recommend.demand.demand import Constraints, Demand
from roofcast.serving.recommend.demand.inventory import OwnedNodes
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.search.confidence import check_confidence, highest_confidence
from roofcast.serving.recommend.search.load_grid import check_floors, floor_per_replica
from roofcast.serving.recommend.search.market import Pairs
from roofcast.serving.recommend.search.replicas import enumerate_replicas, splits
from roofcast.training.learner.error_distribution import GroupedConformal
from tests.builders import a_model

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


def test_engines_follow_the_vendor_and_the_age() -> None:
    parts = load_catalog().accelerators
    assert engines_on(parts["nvidia-p100-sxm2-16gb"]) == ()
    assert engines_on(parts["nvidia-v100-sxm2-16gb"]) == ("vllm",)
    assert engines_on(parts["intel-gaudi3-128gb"]) == ("vllm",)
    assert not can_run("trtllm", parts["amd-mi300x-192gb"])
    assert can_run("homemade", parts["amd-mi300x-192gb"])


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


def test_costs_are_of_whole_instances_as_far_as_there_are_any() -> None:
    offers = [an_offer(H100, 8, 20.0), an_offer(H100, 8, 4.0, n_node=2)]
    parts = load_catalog().accelerators
    pairs = Pairs.of([Replica(H100, tp=2), Replica(H100, tp=8)], offers, parts, 1)
    found = {(int(r), int(o)): c for r, o, c in zip(pairs.row, pairs.offer, pairs.cost(np.full(4, 3.0)), strict=True)}
    assert found == {(0, 0): 20.0, (1, 0): 60.0, (0, 1): 4.0, (1, 1): np.inf}
    assert np.isinf(pairs.cost(np.full(4, np.inf))).all()


def test_a_replica_spans_nodes_that_are_joined_as_the_estimate_takes_them_to_be() -> None:
    parts = load_catalog().accelerators
    wide = [Replica(H100, tp=8, pp=2), Replica(L4, tp=8, pp=2)]
    offers = [an_offer(H100, 8, 20.0), an_offer(H100, 4, 9.0), an_offer(L4, 8, 5.0), an_offer(L4, 1, 1.0)]
    assert not len(Pairs.of(wide, offers, parts, 1).row)
    pairs = Pairs.of(wide, offers, parts, 4)
    assert set(zip(pairs.row.tolist(), pairs.offer.tolist(), strict=True)) == {(0, 0), (1, 2)}
    assert pairs.cost(np.full(2, 3.0)).tolist() == [120.0, 30.0]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int]]) -> None:
    cost, latency = (np.array(values, dtype=float) for values in zip(*points, strict=True))
    front = {(cost[k], latency[k]) for k in non_dominated(cost, latency)}
    expected = {(c, s) for c, s in points if not any((a <= c and b <= s) and (a, b) != (c, s) for a, b in points)}
    assert front == expected


def test_a_floor_is_shared_by_the_replicas_that_hold_all_users() -> None:
    limit = parse_limit("throughput>=1000")
    demand = Demand(500, 100, 200, None, (limit,), think_time_s=10.0)
    (x,) = floor_per_replica(limit, demand, np.array([16.0]))
    n_replica = 200 / demand.served_load(16.0, x / 100)
    assert n_replica * x == pytest.approx(1000)
    assert np.isinf(floor_per_replica(limit, Demand(500, 100, 50, None, (), think_time_s=10.0), np.ones(1))).all()


def test_a_rate_meets_the_floors_up_to_what_it_brings() -> None:
    limits = (parse_limit("throughput>=1000"),)
    check_floors(Demand(500, 100, None, 10, limits))
    check_floors(Demand(500, 100, None, 5, limits, peak_factor=2))
    check_floors(Demand(500, 100, 1, None, limits))
    check_floors(Demand(500, 100, None, 1e-9, (parse_limit("e2e<=1s"),)))
    with pytest.raises(InputError) as refusal:
        check_floors(Demand(500, 100, None, 3, limits, peak_factor=2))
    assert refusal.value.field == "limits"
    told = "a peak of 6 a second times 100 output tokens is 600 tokens/s; lower the floor to that, or raise"
    assert f"{told} request_rate_per_s to 5" in str(refusal.value)


def test_more_than_can_be_promised_is_no_confidence_to_ask_for() -> None:
    scales = {"ttft_s": a_conformal(), "itl_s": a_conformal()}
    highest = highest_confidence(scales)
    assert highest == pytest.approx(((1 + scales["itl_s"].highest_level) / 2) ** 2)
    check_confidence(highest, scales)
    with pytest.raises(OutOfRangeError):
        check_confidence(highest + 1e-6, scales)
    check_confidence(0.999, {})


def told_of(reason: str, cost: float, chance: float = 1.0, limits: tuple[str, ...] = ("e2e<=1s",)) -> str:
    """Return what is said of one replica beside a cheapest of 2 USD/h, a budget of 300 and a confidence of 0.8."""
    found = Misses(
        reason=np.array([REASONS.index(reason)]), excess=np.ones(1), cost=np.array([cost]),
        is_known=np.array([cost != 250.0]), limit=np.zeros(1, dtype=np.intp), cheapest=2.0,
    )  # fmt: skip
    grid = SimpleNamespace(limits=[parse_limit(text) for text in limits], chance=np.array([[chance]]))
    demand = Demand(500, 100, 50, None, ())
    case: Any = SimpleNamespace(replicas=[Replica(L4)], budget=300.0, confidence=0.8, demand=demand)
    search: Any = SimpleNamespace(grid=grid)
    memory: Any = None
    (one,) = tell(found, [0], search, case, memory)
    assert one.reason == reason
    return one.detail


def test_the_schema_knows_every_reason() -> None:
    assert get_args(Reason) == REASONS


def test_what_is_rejected_is_told_with_figures_that_differ_from_what_they_miss() -> None:
    assert told_of("dearer", 4.0) == "costs 4.00 USD/h; the cheapest that meets the limits costs 2.00"
    assert told_of("dearer", 2.004) == "costs 2.004000 USD/h; the cheapest that meets the limits costs 2.000000"
    assert told_of("dearer", 250.0).startswith("costs 250.00 USD/h at least; ")
    assert told_of("over_budget", 300.001) == "costs 300.001000 USD/h, over the budget of 300.000000"
    assert told_of("same_cost", 2.0).startswith("costs 2.00 USD/h, as the cheapest does; of the same cost, ")
    missed = "with a single user: {} with probability {}, 0.8 is asked"
    assert told_of("misses_limit", 4.0, 0.79996) == "e2e<=1s is missed " + missed.format("met", 0.799)
    assert told_of("misses_limit", 4.0, 0.0123456, ("ttft<=1s", "itl<=1s")) == (
        "ttft<=1s is furthest off " + missed.format("all limits are met together", 0.0123)
    )


def test_precisions_are_those_that_the_part_computes_in() -> None:
    parts = load_catalog().accelerators
    bounds = Constraints(weight_precisions=frozenset({"fp8", "int4", "fp4"}))
    offers = [an_offer("nvidia-a100-sxm-80gb", 1, 1.0), an_offer(H100, 1, 2.0)]
    replicas, _ = enumerate_replicas(a_model(), parts, offers, bounds)
    found = {(replica.accelerator, replica.weight_precision) for replica in replicas}
    assert found == {("nvidia-a100-sxm-80gb", "int4"), (H100, "int4"), (H100, "fp8")}
    replicas, none = enumerate_replicas(a_model(), parts, offers, Constraints(weight_precisions=frozenset({"fp4"})))
    assert replicas == []
    assert all("does not compute in" in rejection.detail for rejection in none)


def test_where_a_gpu_has_no_bf16_an_engine_serves_fp16_or_nothing() -> None:
    parts = load_catalog().accelerators
    offers = [an_offer("nvidia-v100-sxm2-32gb", 1, 1.0), an_offer("nvidia-t4-16gb", 1, 1.0), an_offer(L4, 1, 1.0)]
    replicas, none = enumerate_replicas(a_model(), parts, offers)
    found = {(r.accelerator, r.engine, r.weight_precision) for r in replicas if r.accelerator != L4}
    assert found == {("nvidia-v100-sxm2-32gb", "vllm", "fp16"), ("nvidia-t4-16gb", "vllm", "fp16")}
    assert none == []
    replicas, none = enumerate_replicas(a_model(), parts, offers, Constraints(weight_precisions=frozenset({"bf16"})))
    assert {replica.accelerator for replica in replicas} == {L4}
    assert [rejection.reason for rejection in none] == ["no_engine", "no_engine"]
    assert all("vllm serves bf16 from compute capability 8.0 on" in rejection.detail for rejection in none)
