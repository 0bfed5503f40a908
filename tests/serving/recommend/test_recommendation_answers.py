"""What a recommendation says besides its ranking, and what it may be bounded to."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.validity.engine_support import engines_on
from tests.serving.http.test_recommendations import PATH, rank
from tests.serving.http_client import MODEL, Client, Run, a_demand, problem_of

MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"


def splits(answer: dict[str, Any]) -> set[tuple[int, ...]]:
    """Return tensor, pipeline, attention and expert parallelism of whatever was looked at."""
    names = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
    return {tuple(shown[name] for name in names) for shown in [*answer["entries"], *answer["rejections"]]}


def test_there_are_thousands_of_candidates(shared: Client) -> None:
    answer = rank(shared)
    assert answer["n_candidate"] >= 2000
    assert answer["n_configuration"] > 300


def test_engines_run_where_they_can(shared: Client) -> None:
    accelerators = load_catalog().accelerators
    answer = rank(shared, n_entry=200, n_rejection=500)
    shown = [*answer["entries"], *(r for r in answer["rejections"] if r["engine"])]
    assert {one["engine"] for one in shown} == {"vllm", "sglang", "trtllm"}
    assert all(one["engine"] in engines_on(accelerators[one["accelerator"]]) for one in shown)
    some = rank(shared, constraints={"engines": ["vllm", "sglang"]})["entries"]
    assert {entry["engine"] for entry in some} <= {"vllm", "sglang"}
    assert {entry["engine"] for entry in rank(shared, constraints={"engine": "sglang"})["entries"]} == {"sglang"}


def test_an_accelerator_without_an_engine_says_so(shared: Client) -> None:
    answer = rank(shared, constraints={"accelerators": ["aws-inferentia2"]})
    assert answer["entries"] == []
    (family,) = answer["families"]
    assert (family["accelerator"], family["reason"]) == ("aws-inferentia2", "no_engine")
    named = rank(shared, model=MODEL, constraints={"accelerators": ["aws-inferentia2"], "engines": ["other"]})
    assert {entry["engine"] for entry in named["entries"]} == {"other"}


def test_precisions_are_the_checkpoints_own_unless_named(shared: Client) -> None:
    own = rank(shared, n_entry=50)
    assert {entry["weight_precision"] for entry in own["entries"]} == {"bf16"}
    some = rank(shared, n_entry=200, n_rejection=500, constraints={"weight_precisions": ["fp8", "int4"]})
    shown = [*some["entries"], *(r for r in some["rejections"] if r["engine"])]
    assert {one["weight_precision"] for one in shown} == {"fp8", "int4"}
    fp8 = {one["accelerator"] for one in shown if one["weight_precision"] == "fp8"}
    assert not any("a100" in name or "t4" in name for name in fp8)
    assert some["entries"][0]["cost_usd_per_h"] <= own["entries"][0]["cost_usd_per_h"]


def test_experts_and_attention_are_spread_where_there_are_experts(shared: Client) -> None:
    bounds = {"accelerators": ["nvidia-h100-sxm-80gb"]}
    spread = splits(rank(shared, model=MIXTRAL, n_rejection=500, constraints=bounds))
    assert {(8, 1, 1, 8), (2, 1, 4, 8), (4, 2, 1, 1)} <= spread
    assert all(tp * pp * dp <= 8 for tp, pp, dp, _ in spread)
    dense = splits(rank(shared, n_rejection=500, constraints=bounds))
    assert all(dp == ep == 1 for _, _, dp, ep in dense)


def test_a_replica_spans_nodes_only_if_it_may(shared: Client) -> None:
    bounds = {"accelerators": ["nvidia-h100-sxm-80gb"]}
    one, two = (
        splits(rank(shared, model=MIXTRAL, n_rejection=500, constraints=bounds | {"max_nodes": n})) for n in (1, 2)
    )
    assert max(tp * pp * dp for tp, pp, dp, _ in one) == 8
    assert max(tp * pp * dp for tp, pp, dp, _ in two) == 16


def test_more_confidence_never_costs_less(shared: Client) -> None:
    costs = [rank(shared, confidence=c)["entries"][0]["cost_usd_per_h"] for c in (0.5, 0.8, 0.9)]
    assert costs == sorted(costs)
    answer = rank(shared)
    told = {cost["confidence"]: cost["cost_usd_per_h"] for cost in answer["cost_of_confidence"]}
    assert [told[c] for c in (0.5, 0.8, 0.9)] == pytest.approx(costs)
    too_sure = problem_of(shared.post(PATH, a_demand(confidence=0.999)), 409)
    assert "is above what the measurements can guarantee" in too_sure["detail"]
    assert problem_of(shared.post(PATH, a_demand(confidence=0.3)), 422)["field"] == "confidence"


def test_entries_say_what_they_rest_on(shared: Client) -> None:
    rows = shared.bench.active_model.bundle.anchors.rows
    one = rows[rows["itl_s"].notna()].iloc[0]
    bounds = {"engine": one["engine"], "weight_precision": one["weight_precision"]}
    entries = rank(shared, model=one["model"], limits=["itl:p50<=10s"], n_entry=200, constraints=bounds)["entries"]
    assert any(entry["nearest"] for entry in entries)
    for entry in entries:
        assert 0 < entry["power_w"] < 2000 * entry["n_replica"] * entry["tensor_parallel"]
        for near in entry["nearest"]:
            assert near["metric"] == "itl_s"
            assert near["measured"] > 0
            assert 0.3 <= near["correlation"] <= 1
            assert near["campaign"]


def test_an_answer_can_be_told_from_another(shared: Client) -> None:
    first, again = rank(shared), rank(shared)
    assert first["id"] == again["id"]
    assert first == again
    assert rank(shared, confidence=0.75)["id"] != first["id"]
    dearer = rank(shared, price_overrides=[{"provider": "aws", "price_usd_per_h": 90.0}])
    assert dearer["id"] != first["id"]
    assert dearer["basis"] == first["basis"]
    assert len(first["basis"]["offers_sha256"]) == 64


def test_a_wait_that_no_limit_bounds_is_told(shared: Client) -> None:
    many = {"n_input_token": 1000, "n_output_token": 200, "users": 2000, "think_time_s": 60}
    (told,) = [one for one in rank(shared, workload=many, limits=["tpot:p50<=60ms"])["warnings"] if "wait" in one]
    assert "no limit bounds that; add one on ttft or e2e" in told
    for bound in ("ttft:p50<=5s", "e2e:p50<=20s"):
        answer = rank(shared, workload=many, limits=["tpot:p50<=60ms", bound])
        assert answer["entries"]
        assert not any("wait" in one for one in answer["warnings"])
    short = {"n_input_token": 100, "n_output_token": 200, "users": 1}
    assert not any("wait" in one for one in rank(shared, workload=short, limits=["tpot:p50<=60ms"])["warnings"])


def test_prices_of_the_request_count(shared: Client) -> None:
    override = {"accelerator": "nvidia-h100-sxm-80gb", "price_usd_per_h": 0.01}
    assert rank(shared, price_overrides=[override])["entries"][0]["accelerator"] == "nvidia-h100-sxm-80gb"


def test_nodes_that_are_there_come_first_and_no_more_of_them(shared: Client) -> None:
    own = {"accelerator": "nvidia-h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 0.0}
    entry = rank(shared, constraints={"inventory": [own]})["entries"][0]
    assert (entry["provider"], entry["cost_usd_per_h"], entry["n_instance"]) == ("owned", 0.0, 1)
    many = {"n_input_token": 120, "n_output_token": 20, "users": 20_000}
    answer = rank(
        shared, workload=many, constraints={"inventory": [own], "providers": ["aws"]}, n_entry=200, n_rejection=500
    )
    assert all(entry["provider"] != "owned" for entry in answer["entries"])
    fleet = answer["fleet"]
    assert {part["provider"] for part in fleet} == {"owned", "aws"}
    assert sum(part["cost_usd_per_h"] for part in fleet) < answer["entries"][0]["cost_usd_per_h"]
    assert all(part["p_limits_met"] >= answer["confidence"] for part in fleet)
    assert all(part["load_per_replica"] <= part["in_flight_per_replica"] for part in fleet)
    carried = sum(part["load_per_replica"] * part["n_replica"] for part in fleet)
    assert 20_000 <= carried <= 20_000 + sum(part["n_replica"] for part in fleet)
    assert {metric["metric"] for metric in fleet[0]["predictions"]} >= {"nttft_s_per_token", "itl_s"}


def test_what_is_owned_is_told_of_where_it_is_dearer(shared: Client) -> None:
    own = {"accelerator": "nvidia-h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 50.0}
    answer = rank(shared, constraints={"inventory": [own]}, n_entry=3)
    told, *rest = answer["families"]
    cheapest = answer["entries"][0]["cost_usd_per_h"]
    bound = " at least" if "at least" in told["detail"] else ""
    assert told["accelerator"] == "nvidia-h100-sxm-80gb"
    assert told["detail"] == (
        f"owned 8x nvidia-h100-sxm-80gb: costs 400.00 USD/h{bound}; "
        f"the cheapest that meets the limits costs {cheapest:.2f}"
    )
    assert told["excess"] == pytest.approx(400 / cheapest)
    assert not any("owned" in family["detail"] for family in rest)
    few = own | {"count": 1, "n_per_node": 1}
    (short,) = rank(
        shared,
        workload={"n_input_token": 120, "n_output_token": 20, "users": 20_000},
        constraints={"inventory": [few], "accelerators": ["nvidia-h100-sxm-80gb"], "providers": ["crusoe"]},
    )["families"]
    assert short["reason"] == "too_few_nodes"


def test_beside_what_is_free_nothing_is_so_many_times_as_dear(shared: Client) -> None:
    own = {"accelerator": "nvidia-h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 0.0}
    answer = rank(shared, constraints={"inventory": [own]}, n_entry=1, n_rejection=500)
    dearer = [one for one in answer["rejections"] if one["reason"] == "dearer"]
    assert dearer
    assert {one["excess"] for one in dearer} == {None}
    assert all(one["detail"].endswith("the cheapest that meets the limits is free") for one in dearer)
    free = [one for one in answer["rejections"] if one["reason"] == "same_cost"]
    assert free
    assert all(one["detail"].startswith("costs 0.00 USD/h, as the cheapest does; ") for one in free)


def test_what_is_dearer_is_compared_with_the_cheapest(shared: Client) -> None:
    answer = rank(shared, n_entry=5)
    cheapest = answer["entries"][0]["cost_usd_per_h"]
    dearer = [one for one in answer["families"] if one["reason"] == "dearer"]
    assert dearer
    for one in dearer:
        assert one["detail"].endswith(f"the cheapest that meets the limits costs {cheapest:.2f}")
        assert one["excess"] == pytest.approx(float(one["detail"].split()[1]) / cheapest, rel=0.02)


def test_limits_that_nothing_meets_are_told_with_the_best_there_is(shared: Client) -> None:
    (both,) = rank(shared, limits=["itl:p50<=0.001ms", "ttft:p50<=600s"])["warnings"]
    assert both.startswith("itl:p50<=0.001ms is out of reach: the best is ")
    assert both.endswith("with a single user on each replica, at a confidence of 0.8")
    thousand = {"n_input_token": 120, "n_output_token": 20, "users": 10}
    (floor,) = rank(shared, workload=thousand, limits=["throughput>=900000000"])["warnings"]
    assert " token/s on " in floor
    assert not rank(shared, constraints={"max_usd_per_h": 0.01})["warnings"]


@pytest.mark.parametrize("floor", [200, 2000])
def test_a_floor_that_users_who_think_cannot_reach_is_told_with_the_best_there_is(floor: int, shared: Client) -> None:
    thinking = {"n_input_token": 120, "n_output_token": 20, "users": 1000, "think_time_s": 100.0}
    (said,) = rank(shared, workload=thinking, limits=[f"throughput>={floor}"])["warnings"]
    best = float(said.split("the best is ")[1].split()[0])
    assert said.startswith(f"throughput>={floor} is out of reach: the best is ")
    assert best < 1000 * 20 / 100.0  # as if every answer came at once
    reached = rank(shared, workload=thinking, limits=[f"throughput>={best * 0.99:.1f}"])
    assert reached["entries"]
    assert not any("out of reach" in warning for warning in reached["warnings"])


def test_headroom_and_thinking_count(shared: Client) -> None:
    workload = {"n_input_token": 120, "n_output_token": 20, "users": 20_000}
    plain, free, slow = (
        rank(shared, workload=workload | more)["entries"][0]["cost_usd_per_h"]
        for more in ({}, {"headroom": 0.5}, {"think_time_s": 60.0})
    )
    assert slow < plain < free


def test_a_floor_on_throughput_is_a_limit(shared: Client) -> None:
    loose, tight = (rank(shared, limits=["itl:p50<=50ms", f"throughput>={n}"]) for n in (10, 8000))
    assert tight["entries"][0]["cost_usd_per_h"] >= loose["entries"][0]["cost_usd_per_h"]
    shown = {metric["metric"] for metric in tight["entries"][0]["predictions"]}
    assert "output_throughput_token_per_s" in shown
    for entry in tight["entries"]:
        made = next(m for m in entry["predictions"] if m["metric"] == "output_throughput_token_per_s")
        assert made["limit"] == pytest.approx(8000 / entry["n_replica"], rel=0.3)
        assert made["value"] >= made["limit"]
    thinking = {"n_input_token": 120, "n_output_token": 20, "users": 10, "think_time_s": 1000.0}
    never = rank(shared, workload=thinking, limits=["throughput>=2000"])
    assert {rejection["reason"] for rejection in never["rejections"]} == {"misses_limit"}


def test_a_floor_at_a_rate_is_met_by_the_rate_or_refused(shared: Client) -> None:
    workload = {"n_input_token": 120, "n_output_token": 20, "request_rate_per_s": 100}
    plain = rank(shared, workload=workload, limits=["itl:p50<=50ms"])
    met = rank(shared, workload=workload, limits=["itl:p50<=50ms", "throughput>=2000"])
    for name in ("instance_type", "engine", "n_replica", "cost_usd_per_h", "p_limits_met"):
        assert [entry[name] for entry in met["entries"]] == [entry[name] for entry in plain["entries"]]
    assert met["cost_of_confidence"] == plain["cost_of_confidence"]
    made = next(m for m in met["entries"][0]["predictions"] if m["metric"] == "output_throughput_token_per_s")
    assert made["limit"] is None
    assert rank(shared, workload=workload, limits=["throughput>=2000"])["entries"][0]["p_limits_met"] == 1
    more = a_demand(workload=workload, limits=["itl:p50<=50ms", "throughput>=2001"])
    problem = problem_of(shared.post(PATH, more), 422)
    assert problem["field"] == "limits"
    assert "is 2000 tokens/s; lower the floor to that, or raise request_rate_per_s to 100.05" in problem["detail"]


def test_limits_that_are_almost_met_are_told_with_a_probability_below_what_is_asked(shared: Client) -> None:
    one = rank(shared, limits=["ttft:p50<=0.05ms"], n_rejection=500)["rejections"]
    both = rank(shared, limits=["ttft:p50<=0.05ms", "itl:p50<=1ms"], n_rejection=500)["rejections"]
    for told, words in ((one, "is missed with a single user: met with"), (both, "all limits are met together with")):
        missed = [r["detail"] for r in told if r["reason"] == "misses_limit"]
        assert missed
        for detail in missed:
            found = re.search(r" probability (\S+), 0\.8 is required$", detail)
            assert found
            assert words in detail
            assert float(found[1]) < 0.8
            assert len(found[1].partition("e")[0].lstrip("0.")) <= 3


@pytest.mark.usefixtures("home")
def test_the_command_line_asks_the_same(run: Run) -> None:
    demand = ("--model", MODEL, "--preset", "chat", "--users", "300", "--think-time", "20", "--headroom", "0.2")
    bounds = ("--engine", "vllm", "--precision", "bf16", "--nodes", "2", "--confidence", "0.7")
    status, out, _ = run("recommend", *demand, *bounds, "--slo", "tpot:p50<=60ms", "--json")
    answer = json.loads(out)
    assert (status, answer["confidence"]) == (0, 0.7)
    assert {entry["engine"] for entry in answer["entries"]} == {"vllm"}
    status, out, _ = run("recommend", *demand, *bounds, "--slo", "tpot:p50<=60ms")
    assert status == 0
    for said in ("limits met with probability 0.7", "cost of confidence", "accelerators without an entry"):
        assert said in out
