"""The answer of a recommendation: alternatives, load, levers, owned hardware, warnings, consistency."""

import math
from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.serving.recommend.answer.cautions import tpot_warnings
from roofcast.serving.recommend.answer.parts import PredictedMetric
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.presets import PRESETS
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.recommend.search.load_grid import RESOLUTION
from tests.serving.http_client import Client

CHAT = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"n_input_token": 1000, "n_output_token": 200, "users": 300},
    "limits": ["ttft:p95<=2s", "tpot:p95<=60ms"],
    "constraints": {"vendors": ["NVIDIA"]},
}


def ask(client: Client, **changes: Any) -> dict[str, Any]:
    return dict(client.answer("/v1/recommendations", CHAT | changes))


@pytest.fixture(scope="module")
def answer(shared: Client) -> dict[str, Any]:
    return ask(shared)


def test_entries_are_alternatives_and_other_sellers_fold_into_them(answer: dict[str, Any]) -> None:
    entries = answer["entries"]
    kinds = [(one["accelerator"], one["weight_precision"], one["pricing"]) for one in entries]
    assert len(kinds) == len(set(kinds)) > 2
    others = [(entry, other) for entry in entries for other in entry["also_at"]]
    assert others
    for entry, other in others:
        assert (other["provider"], other["region"]) != (entry["provider"], entry["region"])
        assert other["cost_usd_per_h"] >= entry["cost_usd_per_h"]
        assert other["cost_usd_per_h"] == pytest.approx(other["n_instance"] * other["price_usd_per_h"], rel=1e-5)


def test_levers_cost_less_than_the_first_entry_and_say_what_they_need(answer: dict[str, Any]) -> None:
    first, levers = answer["entries"][0], answer["levers"]
    costs = [lever["cost_usd_per_h"] for lever in levers]
    assert costs == sorted(costs)
    assert levers
    for lever in levers:
        assert lever["saving_ratio"] == pytest.approx(1 - lever["cost_usd_per_h"] / first["cost_usd_per_h"], rel=1e-3)
        assert lever["saving_ratio"] > 0.05
        if lever["kind"] == "pricing":
            assert lever["pricing"] != "on_demand"
        assert lever["needs_quantised_copy"] <= (lever["kind"] == "precision")


def test_a_precision_of_fewer_bits_is_a_lever_only_where_it_saves_over_more_bits(shared: Client) -> None:
    levers = ask(shared, constraints={"accelerators": ["nvidia-l40s-48gb"]})["levers"]
    assert [one["weight_precision"] for one in levers if one["kind"] == "precision"] == ["fp8"]


def test_the_lever_of_a_limit_names_it_with_both_values(shared: Client) -> None:
    levers = ask(shared, limits=["ttft:p95<=2s", "tpot:p95<=20ms"])["levers"]
    assert [one["change"] for one in levers if one["kind"] == "limit"] == ["TPOT p95 up to 30 ms instead of 20 ms"]


def test_levers_are_of_the_question_and_cost_what_its_changed_form_does(shared: Client) -> None:
    """Engines of desks, which search copies in four bits of their own, are left out."""
    own = {"original": True, "engines": ["vllm", "sglang", "trtllm"]}
    workload = {"preset": "chat", "users": 200, "think_time_s": 20}
    limits = ["ttft:p95<=2s", "tpot:p50<=60ms"]
    question = {"model": "Qwen/Qwen3-32B", "workload": workload, "limits": limits, "constraints": own}
    levers = ask(shared, **question, n_entry=1)["levers"]
    assert levers == ask(shared, **question, n_entry=6)["levers"]
    assert {one["kind"] for one in levers} >= {"pricing", "precision"}
    for lever in levers:
        changed: dict[str, dict[str, Any]] = {
            "pricing": {"constraints": own | {"pricing": ["spot"]}},
            "precision": {"constraints": own | {"original": False, "weight_precisions": [lever["weight_precision"]]}},
            "users": {"workload": workload | {"users": lever["change"].split()[0]}},
        }
        answer = ask(shared, **question | changed[lever["kind"]], n_entry=1, levers=False)["entries"][0]
        assert lever["cost_usd_per_h"] == pytest.approx(answer["cost_usd_per_h"])


def test_the_lever_of_any_region_costs_what_the_recommendation_without_regions_does(shared: Client) -> None:
    bounds = {"vendors": ["NVIDIA"], "regions": ["eu-central-1"]}
    question = {"model": "meta-llama/Llama-3.1-70B", "workload": CHAT["workload"] | {"users": 20}}  # type: ignore[operator]
    (lever,) = [one for one in ask(shared, **question, constraints=bounds)["levers"] if one["kind"] == "region"]
    own = ask(shared, **question, n_entry=1, levers=False)["entries"][0]
    assert lever["cost_usd_per_h"] == pytest.approx(own["cost_usd_per_h"])


def test_fewer_users_are_no_lever_where_a_floor_needs_them(shared: Client) -> None:
    levers = ask(
        shared, workload={"n_input_token": 2000, "n_output_token": 500, "users": 256}, limits=["throughput>=5000"],
        model="meta-llama/Llama-3.1-70B",
    )["levers"]  # fmt: skip
    assert "users" not in {one["kind"] for one in levers}


def test_users_without_think_time_are_all_in_flight_and_warned_of(answer: dict[str, Any]) -> None:
    assert answer["load"]["requests_in_flight"] == 300
    assert answer["load"]["text"] == "300 users, 0 s think time = 300 requests in flight"
    assert any("think_time_s: is 0" in warning for warning in answer["warnings"])


def test_a_preset_brings_its_measured_think_time(shared: Client) -> None:
    workload = {"preset": "chat", "users": 300}
    chat = ask(shared, workload=workload, levers=False)
    assert chat["load"]["think_time_s"] == PRESETS["chat"].think_time_s == 100
    assert 0 < chat["load"]["requests_in_flight"] < 100
    assert not any("think_time_s" in warning for warning in chat["warnings"])
    own = ask(shared, workload=workload | {"think_time_s": 0}, levers=False)
    assert own["load"]["requests_in_flight"] == 300
    assert own["entries"][0]["cost_usd_per_h"] > chat["entries"][0]["cost_usd_per_h"]


def test_arrivals_at_a_rate_do_not_think(shared: Client) -> None:
    load = ask(shared, workload={"preset": "chat", "request_rate_per_s": 4}, levers=False)["load"]
    assert load["users"] is None
    assert load["think_time_s"] == 0
    assert load["text"].startswith("4 requests a second = ")


def test_costs_of_confidence_agree_with_the_entries(answer: dict[str, Any]) -> None:
    costs = {one["confidence"]: one["cost_usd_per_h"] for one in answer["cost_of_confidence"]}
    assert costs[answer["confidence"]] == pytest.approx(answer["entries"][0]["cost_usd_per_h"])
    for one in (*answer["entries"], *answer["pareto"]):
        for confidence, cost in costs.items():
            assert one["p_limits_met"] < confidence or cost <= one["cost_usd_per_h"] * (1 + 1e-5)


def test_owned_hardware_that_is_too_small_says_how_far_it_reaches(shared: Client) -> None:
    owned = {"accelerator": "h100-sxm-80gb", "count": 2, "n_per_node": 1, "usd_per_h": 0.0}
    many = {**CHAT["workload"], "users": 3000}  # type: ignore[dict-item]

    def ask_owned(count: int) -> dict[str, Any]:
        bounds = {"inventory": [owned | {"count": count}], "providers": ["owned"]}
        return ask(shared, workload=many, constraints=bounds, levers=False)

    answer = ask_owned(2)
    (family,) = answer["families"]
    assert answer["entries"] == []
    assert family["reason"] == "too_few_nodes"
    words = family["detail"].split()
    words = words[words.index("2") :]
    assert words[:3] == ["2", "nvidia-h100-sxm-80gb", "serve"]
    assert 0 < float(words[3]) < 3000
    assert words[4:7] == ["of", "3000", "users;"]
    assert ask_owned(int(words[7]))["entries"]


def test_marketplaces_are_admitted_by_name_or_on_request() -> None:
    offers = load_catalog().offers
    markets = [{one.market for one in bounds.admissible_offers(offers)} for bounds in (
        Constraints(), Constraints(marketplaces=True), Constraints(providers=frozenset({"tensordock"}))
    )]  # fmt: skip
    assert markets == [{"provider"}, {"provider", "marketplace"}, {"marketplace"}]


def test_many_accelerators_are_warned_of(shared: Client) -> None:
    many = ask(shared, workload=CHAT["workload"] | {"users": 400}, levers=False)["entries"]  # type: ignore[operator]
    n_of = {(offer.provider, offer.instance_type): offer.n_accelerator for offer in load_catalog().offers}
    counts = [entry["n_instance"] * n_of[entry["provider"], entry["instance_type"]] for entry in many]
    is_warned = [any("quota" in warning for warning in entry["warnings"]) for entry in many]
    assert is_warned == [n > 16 for n in counts]
    assert min(counts) <= 16 < max(counts) < 64


def test_a_lever_of_users_names_the_users_that_owned_nodes_serve(shared: Client) -> None:
    owned = {"accelerator": "h100-sxm-80gb", "count": 2, "n_per_node": 1, "usd_per_h": 1.0}
    bounds = {"inventory": [owned], "providers": ["owned"]}
    full = ask(shared, workload=CHAT["workload"] | {"users": 3000}, constraints=bounds, levers=False)  # type: ignore[operator]
    words = full["families"][0]["detail"].split()
    served = float(words[words.index("serve") + 1])
    asked = math.ceil(served / 0.85)
    answer = ask(shared, workload=CHAT["workload"] | {"users": asked}, constraints=bounds)  # type: ignore[operator]
    words = answer["families"][0]["detail"].split()
    assert float(words[words.index("serve") + 1]) == pytest.approx(served, rel=RESOLUTION)
    assert f"of {asked} users" in answer["families"][0]["detail"]
    (lever,) = [one for one in answer["levers"] if one["kind"] == "users"]
    users, rest = lever["change"].split(" ", 1)
    assert float(users.replace(",", "")) == pytest.approx(served, rel=2 * RESOLUTION)
    assert rest == f"instead of {asked:,} users"
    assert lever["n_instance"] == 2


def test_a_lever_of_users_names_the_most_that_its_cost_serves(shared: Client, answer: dict[str, Any]) -> None:
    (lever,) = [one for one in answer["levers"] if one["kind"] == "users"]
    users = int(lever["change"].split()[0].replace(",", ""))
    bounds = {"accelerators": [lever["accelerator"]]}
    workloads = [CHAT["workload"] | {"users": n} for n in (users, users + 1)]  # type: ignore[operator]
    costs = [
        ask(shared, workload=one, constraints=bounds, levers=False)["entries"][0]["cost_usd_per_h"]
        for one in workloads
    ]
    assert costs[0] == pytest.approx(lever["cost_usd_per_h"])
    assert costs[1] > costs[0]


def test_a_lever_of_users_keeps_the_budget(shared: Client, answer: dict[str, Any]) -> None:
    budget = answer["entries"][0]["cost_usd_per_h"] * 0.6
    bounds = CHAT["constraints"] | {"max_usd_per_h": budget}  # type: ignore[operator]
    poor = ask(shared, constraints=bounds)
    assert poor["entries"] == []
    assert all(one["cost_usd_per_h"] <= budget for one in poor["levers"] if one["kind"] == "users")


def test_the_warning_about_itl_names_the_predicted_itl_and_tpot() -> None:
    demand = Demand(1000, 200, 8, None, (parse_limit("itl:p90<=60ms"),))
    metrics = [
        PredictedMetric(
            metric=name, statistic="p90", value=value, low=value, high=value, limit=None, uncalibrated=None
        )
        for name, value in (("itl_s", 0.05), ("tpot_s", 0.2))
    ]
    (warning,) = tpot_warnings(metrics, demand)
    assert warning == (
        "the predicted p90 of ITL is 50 ms and that of TPOT 200 ms, 4.0 times the ITL and 3.3 times its limit "
        "itl:p90<=60ms; TPOT is what users feel"
    )


def test_tpot_is_shown_beside_a_limited_itl(shared: Client) -> None:
    (entry,) = ask(shared, limits=["itl:p90<=60ms", "ttft<=5s"], n_entry=1, levers=False)["entries"]
    assert {("itl_s", "p90"), ("tpot_s", "p90")} <= {
        (one["metric"], one["statistic"]) for one in entry["predictions"]
    }


def test_the_bottleneck_is_that_of_the_explanation(shared: Client, answer: dict[str, Any]) -> None:
    entry = answer["entries"][0]
    names = ("model", "accelerator", "engine", "weight_precision")
    row = {name: entry.get(name, CHAT["model"]) for name in names} | {
        "n_accelerator": entry["tp"] * entry["pp"], "tp": entry["tp"],
        "pp": entry["pp"], "n_input_token": 1000, "n_output_token": 200, "n_request": 1e9,
        "concurrency": entry["load_per_replica"],
    }  # fmt: skip
    explanation = shared.post("/v1/explanations", {"rows": [row]}).json()["rows"][0]
    assert explanation["bottleneck"] == entry["bottleneck"]


def test_output_tokens_cost_at_least_their_share_of_reading_the_weights(answer: dict[str, Any]) -> None:
    catalog = load_catalog()
    for entry in answer["entries"]:
        n = entry["tp"] * entry["pp"]
        byte = catalog.model(str(CHAT["model"])).n_param_active * 2.0
        step_s = byte / (n * catalog.accelerators[entry["accelerator"]].bandwidth_byte_per_s)
        usd_per_s = entry["cost_usd_per_h"] / entry["n_replica"] / 3600
        floor = usd_per_s * step_s / entry["load_per_replica"] * 1e6
        assert entry["cost_usd_per_million_output_token"] > floor


def test_numbers_are_rounded(answer: dict[str, Any]) -> None:
    values = [one for entry in answer["entries"] for metric in entry["predictions"] for one in metric.values()]
    assert all(value == float(f"{value:.6g}") for value in values if isinstance(value, float))
