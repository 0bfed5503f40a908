"""Contents of a recommendation beside the ranking, and its constraints."""

import re
from importlib.metadata import version
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.validity.engine_support import Stack, support_of
from tests.serving.http.test_recommendations import PATH, recommend
from tests.serving.http_client import MODEL, Client, a_demand, problem_of

MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"


def splits(answer: dict[str, Any]) -> set[tuple[int, ...]]:
    """Return tensor, pipeline, data and expert parallelism of all entries and rejections."""
    names = ("tp", "pp", "dp", "ep")
    return {tuple(one[name] for name in names) for one in [*answer["entries"], *answer["rejections"]]}


def test_each_engine_runs_on_its_accelerator(shared: Client) -> None:
    accelerators = load_catalog().accelerators
    answer = recommend(shared, n_entry=200, n_rejection=500)
    shown = [*answer["entries"], *(r for r in answer["rejections"] if r["engine"])]
    assert {one["engine"] for one in shown} >= {"vllm", "sglang", "trtllm"}
    stacks = [Stack(one["engine"], accelerators[one["accelerator"]], one["weight_precision"]) for one in shown]
    assert [stack for stack in stacks if support_of(stack).status == "does_not_run"] == []


def test_an_accelerator_without_an_engine_is_rejected_for_it(shared: Client) -> None:
    answer = recommend(shared, constraints={"accelerators": ["aws-inferentia2"]})
    assert answer["entries"] == []
    (family,) = answer["families"]
    assert (family["accelerator"], family["reason"]) == ("aws-inferentia2", "no_engine")
    with_other = recommend(
        shared, model=MODEL, constraints={"accelerators": ["aws-inferentia2"], "engines": ["other"]}
    )
    assert {entry["engine"] for entry in with_other["entries"]} == {"other"}


def test_the_precision_is_the_checkpoints_by_default(shared: Client) -> None:
    default = recommend(shared, n_entry=50)
    servers = [entry for entry in default["entries"] if entry["engine"] != "llama.cpp"]
    assert {entry["weight_precision"] for entry in servers} <= {"bf16", "fp16"}
    assert servers[0]["weight_precision"] == "bf16"
    subset = recommend(shared, n_entry=200, n_rejection=500, constraints={"weight_precisions": ["fp8", "int4"]})
    shown = [*subset["entries"], *(r for r in subset["rejections"] if r["engine"])]
    assert {one["weight_precision"] for one in shown} == {"fp8", "int4"}
    without_units = {
        one["engine"] for one in shown if one["weight_precision"] == "fp8" and "a100" in one["accelerator"]
    }
    assert "trtllm" not in without_units
    assert subset["entries"][0]["cost_usd_per_h"] <= default["entries"][0]["cost_usd_per_h"]


@pytest.mark.parametrize(
    ("bounds", "checkpoints"),
    [
        ({}, {"fp8": "Qwen/Qwen3-30B-A3B-FP8", "bf16": None}),
        ({"original": True}, {"bf16": None}),
        ({"weight_precisions": ["bf16"]}, {"bf16": None}),
        ({"weight_precisions": ["fp4"]}, {"fp4": "nvidia/Qwen3-30B-A3B-NVFP4"}),
    ],
)
def test_repositories_of_the_publisher_are_searched_and_named(
    shared: Client, bounds: dict[str, Any], checkpoints: dict[str, str | None]
) -> None:
    bounds = bounds | {"accelerators": ["nvidia-b200-sxm-180gb"]}
    entries = recommend(shared, model="Qwen/Qwen3-30B-A3B", constraints=bounds, deployment="vllm")["entries"]
    assert {entry["weight_precision"]: entry["checkpoint"] for entry in entries} == checkpoints
    assert not any(entry["needs_quantised_copy"] for entry in entries)
    assert all((entry["checkpoint"] or "Qwen/Qwen3-30B-A3B") in entry["deployment"] for entry in entries)


def test_a_replica_spans_at_most_max_nodes(shared: Client) -> None:
    bounds = {"accelerators": ["nvidia-h100-sxm-80gb"]}
    one, two = (
        splits(recommend(shared, model=MIXTRAL, n_rejection=500, constraints=bounds | {"max_nodes": n}))
        for n in (1, 2)
    )
    assert max(tp * pp * dp for tp, pp, dp, _ in one) == 8
    assert max(tp * pp * dp for tp, pp, dp, _ in two) == 16


def test_entries_list_their_nearest_measurements(shared: Client) -> None:
    rows = shared.service.active_model.bundle.anchors.rows
    one = rows[rows["itl_s"].notna() & (rows["n_accelerator"] == 1)].iloc[0]
    bounds = {"engine": one["engine"], "weight_precision": one["weight_precision"]}
    entries = recommend(shared, model=one["model"], limits=["itl:p50<=10s"], n_entry=200, constraints=bounds)[
        "entries"
    ]
    assert any(entry["nearest"] for entry in entries)
    for entry in entries:
        assert 0 < entry["power_w"] < 2000 * entry["n_replica"] * entry["tp"]
        for near in entry["nearest"]:
            assert near["metric"] == "itl_s"
            assert near["measured"] > 0
            assert 0 < near["correlation"] <= 1
            assert near["campaign"]


def test_the_id_of_an_answer_depends_on_question_and_prices(shared: Client) -> None:
    first, second = recommend(shared), recommend(shared)
    assert first == second
    assert first["basis"]["package_version"] == version("roofcast")
    assert recommend(shared, confidence=0.75)["id"] != first["id"]
    dearer = recommend(shared, price_overrides=[{"provider": "aws", "price_usd_per_h": 90.0}])
    assert dearer["id"] != first["id"]
    assert dearer["basis"] == first["basis"]
    assert len(first["basis"]["offers_sha256"]) == 64


def test_a_wait_that_no_limit_bounds_has_a_warning(shared: Client) -> None:
    long = {"n_input_token": 8000, "n_output_token": 5, "users": 50}
    (warning,) = [
        one for one in recommend(shared, workload=long, limits=["tpot:p50<=60ms"])["warnings"] if "wait" in one
    ]
    assert "no limit bounds that; add one on ttft or e2e" in warning
    for bound in ("ttft:p50<=5s", "e2e:p50<=20s"):
        answer = recommend(shared, workload=long, limits=["tpot:p50<=60ms", bound])
        assert answer["entries"]
        assert not any("wait" in one for one in answer["warnings"])
    short = {"n_input_token": 100, "n_output_token": 200, "users": 1}
    assert not any("wait" in one for one in recommend(shared, workload=short, limits=["tpot:p50<=60ms"])["warnings"])


@pytest.mark.parametrize("think_time_s", [0, 60])
def test_users_who_mostly_wait_for_a_slot_are_not_served(shared: Client, think_time_s: float) -> None:
    many = {"n_input_token": 1000, "n_output_token": 200, "users": 2000, "think_time_s": think_time_s}
    answer = recommend(shared, workload=many, limits=["tpot:p50<=60ms"], n_rejection=500)
    for entry in answer["entries"]:
        median = {one["metric"]: one["value"] for one in entry["predictions"] if one["statistic"] == "p50"}
        assert median["ttft_s"] < 0.6 * median["e2e_s"]
    reason = "in flight on a replica, requests wait longer for a slot than they are served"
    assert any(one["detail"].endswith(reason) for one in answer["rejections"])
    bounded = recommend(shared, workload=many, limits=["tpot:p50<=60ms", "e2e:p50<=600s"], n_rejection=500)
    assert bounded["entries"][0]["cost_usd_per_h"] <= answer["entries"][0]["cost_usd_per_h"]
    assert not any(reason in one["detail"] for one in bounded["rejections"])


def test_owned_nodes_are_used_up_to_their_number(shared: Client) -> None:
    owned = {"accelerator": "nvidia-h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 0.0}
    entry = recommend(shared, constraints={"inventory": [owned]})["entries"][0]
    assert (entry["provider"], entry["cost_usd_per_h"], entry["n_instance"]) == ("owned", 0.0, 1)
    many = {"n_input_token": 120, "n_output_token": 20, "users": 20_000}
    answer = recommend(
        shared, workload=many, constraints={"inventory": [owned], "providers": ["aws"]}, n_entry=200, n_rejection=500
    )
    assert all(entry["provider"] != "owned" for entry in answer["entries"])
    fleet = answer["fleet"]
    assert {part["provider"] for part in fleet} == {"owned", "aws"}
    n_of = {(offer.provider, offer.instance_type): offer.n_accelerator for offer in load_catalog().offers}
    for rented in (part for part in fleet if part["provider"] == "aws"):
        n_rented = rented["n_instance"] * n_of[rented["provider"], rented["instance_type"]]
        assert any("quota" in warning for warning in rented["warnings"]) == (n_rented > 16)
    assert sum(part["cost_usd_per_h"] for part in fleet) < answer["entries"][0]["cost_usd_per_h"]
    assert all(part["p_limits_met"] >= answer["confidence"] for part in fleet)
    assert all(part["load_per_replica"] <= part["in_flight_per_replica"] for part in fleet)
    served = sum(part["load_per_replica"] * part["n_replica"] for part in fleet)
    assert 20_000 <= served <= 20_000 + sum(part["n_replica"] for part in fleet)
    assert {metric["metric"] for metric in fleet[0]["predictions"]} >= {"nttft_s_per_token", "itl_s"}


def test_owned_nodes_that_cost_more_are_a_rejection(shared: Client) -> None:
    owned = {"accelerator": "nvidia-h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 50.0}
    answer = recommend(shared, constraints={"inventory": [owned]}, n_entry=3)
    rejection, *rest = answer["families"]
    cheapest = answer["entries"][0]["cost_usd_per_h"]
    bound = " at least, at the prices admitted" if "at least" in rejection["detail"] else ""
    assert rejection["accelerator"] == "nvidia-h100-sxm-80gb"
    assert rejection["detail"] == (
        f"owned 8x nvidia-h100-sxm-80gb: costs 400.00 USD/h{bound}; "
        f"the cheapest that meets the limits costs {cheapest:.2f}"
    )
    assert rejection["excess"] == pytest.approx(400 / cheapest)
    assert not any("owned" in family["detail"] for family in rest)
    few = owned | {"count": 1, "n_per_node": 1}
    (short,) = recommend(
        shared,
        workload={"n_input_token": 120, "n_output_token": 20, "users": 20_000},
        constraints={"inventory": [few], "accelerators": ["nvidia-h100-sxm-80gb"], "providers": ["crusoe"]},
    )["families"]
    assert short["reason"] == "too_few_nodes"


def test_beside_a_free_entry_rejections_have_no_excess(shared: Client) -> None:
    owned = {"accelerator": "nvidia-h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 0.0}
    answer = recommend(shared, constraints={"inventory": [owned]}, n_entry=1, n_rejection=500)
    dearer = [one for one in answer["rejections"] if one["reason"] == "dearer"]
    assert dearer
    assert {one["excess"] for one in dearer} == {None}
    assert all(one["detail"].endswith("the cheapest that meets the limits is free") for one in dearer)
    free = [one for one in answer["rejections"] if one["reason"] == "same_cost"]
    assert free
    assert all(one["detail"].startswith("costs 0.00 USD/h, as the cheapest does; ") for one in free)


def unmet(answer: dict[str, Any]) -> list[str]:
    return [warning for warning in answer["warnings"] if "reach" in warning]


def test_limits_that_nothing_meets_have_a_warning_with_the_best_value(shared: Client) -> None:
    (both,) = unmet(recommend(shared, limits=["itl:p50<=0.001ms", "ttft:p50<=600s"]))
    assert both.startswith("itl:p50<=0.001ms is out of reach: the best is ")
    assert both.endswith("with a single request in flight on each replica, at a confidence of 0.8")
    thousand = {"n_input_token": 120, "n_output_token": 20, "users": 10}
    (floor,) = unmet(recommend(shared, workload=thousand, limits=["throughput>=900000000"]))
    assert " token/s on " in floor
    assert not unmet(recommend(shared, constraints={"max_usd_per_h": 0.01}))


@pytest.mark.parametrize("floor", [200, 2000])
def test_a_floor_beyond_the_users_has_a_warning_with_the_best_value(floor: int, shared: Client) -> None:
    thinking = {"n_input_token": 120, "n_output_token": 20, "users": 1000, "think_time_s": 100.0}
    (warning,) = recommend(shared, workload=thinking, limits=[f"throughput>={floor}"])["warnings"]
    best = float(warning.split("the best is ")[1].split()[0])
    assert warning.startswith(f"throughput>={floor} is out of reach: the best is ")
    assert best < 1000 * 20 / 100.0  # as if every answer came at once
    reached = recommend(shared, workload=thinking, limits=[f"throughput>={best * 0.99:.1f}"])
    assert reached["entries"]
    assert not any("out of reach" in warning for warning in reached["warnings"])


def test_a_throughput_floor_applies_to_each_replica(shared: Client) -> None:
    loose, tight = (recommend(shared, limits=["itl:p50<=50ms", f"throughput>={n}"]) for n in (10, 8000))
    assert tight["entries"][0]["cost_usd_per_h"] >= loose["entries"][0]["cost_usd_per_h"]
    shown = {metric["metric"] for metric in tight["entries"][0]["predictions"]}
    assert "output_throughput_token_per_s" in shown
    for entry in tight["entries"]:
        made = next(m for m in entry["predictions"] if m["metric"] == "output_throughput_token_per_s")
        assert made["limit"] == pytest.approx(8000 / entry["n_replica"], rel=0.3)
        assert made["value"] >= made["limit"]
    thinking = {"n_input_token": 120, "n_output_token": 20, "users": 10, "think_time_s": 1000.0}
    never = recommend(shared, workload=thinking, limits=["throughput>=2000"])
    assert {rejection["reason"] for rejection in never["rejections"]} == {"misses_limit"}


def test_a_floor_at_a_rate_is_met_by_the_rate_or_refused(shared: Client) -> None:
    workload = {"n_input_token": 120, "n_output_token": 20, "request_rate_per_s": 100}
    plain = recommend(shared, workload=workload, limits=["itl:p50<=50ms"])
    met = recommend(shared, workload=workload, limits=["itl:p50<=50ms", "throughput>=2000"])
    for name in ("instance_type", "engine", "n_replica", "cost_usd_per_h", "p_limits_met"):
        assert [entry[name] for entry in met["entries"]] == [entry[name] for entry in plain["entries"]]
    assert met["cost_of_confidence"] == plain["cost_of_confidence"]
    made = next(m for m in met["entries"][0]["predictions"] if m["metric"] == "output_throughput_token_per_s")
    assert made["limit"] is None
    assert recommend(shared, workload=workload, limits=["throughput>=2000"])["entries"][0]["p_limits_met"] == 1
    more = a_demand(workload=workload, limits=["itl:p50<=50ms", "throughput>=2001"])
    problem = problem_of(shared.post(PATH, more), 422)
    assert problem["field"] == "limits"
    assert "is 2000 tokens/s; lower the floor to that, or raise request_rate_per_s to 100.05" in problem["detail"]


def test_the_probability_of_a_missed_limit_is_rounded_below_the_confidence(shared: Client) -> None:
    one = recommend(shared, limits=["ttft:p50<=0.05ms"], n_rejection=500)["rejections"]
    both = recommend(shared, limits=["ttft:p50<=0.05ms", "itl:p50<=1ms"], n_rejection=500)["rejections"]
    for rejections, words in (
        (one, "for a single user, TTFT p50 up to 0.05 ms is met with"),
        (both, "for a single user, all limits are met with"),
    ):
        missed = [r["detail"] for r in rejections if r["reason"] == "misses_limit"]
        assert missed
        for detail in missed:
            match = re.search(r" probability (\S+); probability 0\.8 is required", detail)
            assert match
            assert words in detail
            assert float(match[1]) < 0.8
            assert len(match[1].partition("e")[0].lstrip("0.")) <= 3
