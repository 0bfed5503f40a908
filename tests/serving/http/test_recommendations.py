import datetime as dt
import math
import re
from typing import Any

import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.prices.regions import AREAS, COUNTRIES
from roofcast.features.columns import ENGINES
from tests.serving.http_client import CONFIG, MODEL, Client, a_demand, a_question, problem_of

PATH = "/v1/recommendations"


def recommend(client: Client, **changes: Any) -> dict[str, Any]:
    return dict(client.answer(PATH, a_demand(**changes)))


def metric(entry: dict[str, Any], name: str, statistic: str) -> dict[str, Any]:
    matches = [m for m in entry["predictions"] if (m["metric"], m["statistic"]) == (name, statistic)]
    assert len(matches) == 1
    return dict(matches[0])


def test_entries_are_ranked_by_cost(shared: Client) -> None:
    assert "my-14b" not in set(load_campaigns()["model"])
    answer = recommend(shared)
    costs = [entry["cost_usd_per_h"] for entry in answer["entries"]]
    assert len(costs) == 10
    assert costs == sorted(costs)
    assert [entry["rank"] for entry in answer["entries"]] == list(range(1, 11))
    assert answer["model"] == "my-14b"


def test_entries_meet_the_limits_by_prediction(shared: Client) -> None:
    for entry in recommend(shared)["entries"]:
        nttft, itl = metric(entry, "nttft_s_per_token", "p50"), metric(entry, "itl_s", "p50")
        assert (nttft["limit"], itl["limit"]) == (0.1, 0.05)
        assert nttft["value"] <= 0.1
        assert itl["value"] <= 0.05
        for m in entry["predictions"]:
            assert 0 < m["low"] <= m["value"] <= m["high"]
        assert 0.78 <= entry["p_limits_met"] < 1


def test_entries_have_capacity_for_the_demand(shared: Client) -> None:
    offers = {(o.provider, o.region, o.instance_type, o.pricing): o for o in load_catalog().offers}
    for entry in recommend(shared)["entries"]:
        offer = offers[entry["provider"], entry["region"], entry["instance_type"], entry["pricing"]]
        assert entry["users_per_replica"] * entry["n_replica"] >= 200
        assert entry["load_per_replica"] <= entry["in_flight_per_replica"] == entry["users_per_replica"]
        assert entry["load_per_replica"] * entry["n_replica"] >= 200
        size = entry["tp"] * entry["pp"] * entry["dp"]
        assert entry["n_instance"] * (offer.n_accelerator // size) >= entry["n_replica"]
        assert entry["memory_used_byte"] <= entry["memory_usable_byte"]


def test_speculation_is_searched_when_it_is_requested(shared: Client) -> None:
    assert {entry["speculation"] is None for entry in recommend(shared)["entries"]} == {True}
    bounds = {
        "speculation": ["none", "eagle"],
        "chain_acceptance_ratio": 0.95,
        "engines": ["vllm"],
        "draft_model": "a/head",
    }
    answer = recommend(shared, limits=["tpot:p50<=20ms"], constraints=bounds, deployment="vllm")  # admits vllm alone
    chosen = [entry for entry in answer["entries"] if entry["speculation"]]
    assert chosen
    assert chosen[0]["speculation"] == {"kind": "eagle", "n_token": 3, "chain_acceptance_ratio": 0.95}
    assert '"method": "eagle3", "num_speculative_tokens": 3, "model": "a/head"' in chosen[0]["deployment"]
    first = recommend(shared, constraints={"speculation": ["mtp"], "engines": ["sglang"]})["entries"][0]
    assumed = first["speculation"]
    assert (assumed["kind"], assumed["n_token"]) == ("mtp", 3)
    assert 0 < assumed["chain_acceptance_ratio"] < 1
    problem = problem_of(shared.post(PATH, a_demand(constraints={"speculations": ["mtp"]})), 422)
    assert problem["did_you_mean"][0] == "speculation"


def test_a_greatest_age_of_prices_is_strict(shared: Client) -> None:
    bounds = {"accelerators": ["h100-sxm-80gb"], "engines": ["vllm"], "pricing": ["on_demand"]}
    dates = sorted(
        offer.as_of
        for offer in load_catalog().offers
        if (offer.accelerator, offer.pricing) == ("nvidia-h100-sxm-80gb", "on_demand")
    )
    today, middle = dt.datetime.now(dt.UTC).date(), dates[len(dates) // 2]
    days = [
        {
            entry["price_as_of"]
            for entry in recommend(shared, constraints=bounds | {"max_price_age_day": n_day}, n_entry=50)["entries"]
        }
        for n_day in ((today - middle).days, 10_000)
    ]
    assert days[0]
    assert min(days[0]) >= middle.isoformat() > min(days[1])
    newer = bounds | {"max_price_age_day": (today - dates[-1]).days - 1}
    assert "age of prices" in problem_of(shared.post(PATH, a_demand(constraints=newer)), 422)["detail"]


def test_costs_can_be_recomputed_by_hand(shared: Client) -> None:
    for entry in recommend(shared)["entries"]:
        per_h = entry["n_instance"] * entry["price_usd_per_h"]
        throughput = metric(entry, "output_throughput_token_per_s", "mean")["value"]
        request_per_h = throughput / 20 * 200 / entry["load_per_replica"] * 3600
        assert entry["cost_usd_per_h"] == pytest.approx(per_h, rel=1e-5)
        assert entry["cost_usd_per_month"] == pytest.approx(per_h * 730, rel=1e-5)
        assert entry["cost_usd_per_million_token"] == pytest.approx(per_h / (request_per_h * 140) * 1e6, rel=1e-4)
        assert request_cost(entry, 120, 20) == pytest.approx(per_h / request_per_h, rel=1e-4)
        assert min(entry["cost_usd_per_million_input_token"], entry["cost_usd_per_million_output_token"]) > 0


def request_cost(entry: dict[str, Any], n_input: float, n_output: float) -> float:
    """Return the cost of a request in US dollars by the prices of its tokens."""
    of_input, of_output = (entry[f"cost_usd_per_million_{part}_token"] for part in ("input", "output"))
    return float(n_input * of_input + n_output * of_output) / 1e6


VARIED = {"n_input_token": {"p50": 300, "p95": 1200}, "n_output_token": 150, "users": 20}


def test_varied_prompts_under_tail_limits_have_a_warning(shared: Client) -> None:
    limits = ["ttft:p95<=5s", "e2e:p99<=60s", "tpot:p95<=1s"]
    (warning,) = (w for w in recommend(shared, workload=VARIED, limits=limits)["warnings"] if "prompt" in w)
    assert warning.startswith("workload.n_input_token: every prompt is taken to have the mean length, 428 tokens, so")
    assert "so ttft:p95<=5s, e2e:p99<=60s ignores long prompts" in warning
    assert "repeat the request with n_input_token 1200, their p95, as a number" in warning


@pytest.mark.parametrize(
    ("workload", "limit"),
    [
        (VARIED, "tpot:p95<=1s"),
        (VARIED, "ttft:mean<=5s"),
        (VARIED | {"n_input_token": 428}, "ttft:p95<=5s"),
        (VARIED | {"n_input_token": {"p50": 300, "p95": 400}}, "ttft:p95<=5s"),
    ],
)
def test_other_prompts_have_no_warning(shared: Client, workload: dict[str, Any], limit: str) -> None:
    assert not [w for w in recommend(shared, workload=workload, limits=[limit])["warnings"] if "prompt" in w]


def test_tighter_limits_never_cost_less(shared: Client) -> None:
    costs = [recommend(shared, limits=[f"itl:p50<={ms}ms"])["entries"][0]["cost_usd_per_h"] for ms in (100, 60, 30)]
    assert costs == sorted(costs)


def test_the_tighter_of_two_limits_on_one_metric_applies(shared: Client) -> None:
    entry = recommend(shared, limits=["itl:p50<=1s", "itl:p50<=50ms"])["entries"][0]
    assert metric(entry, "itl_s", "p50")["limit"] == 0.05


def test_limits_or_a_budget_that_nothing_meets_yield_rejections_with_reasons(shared: Client) -> None:
    answer = recommend(shared, limits=["itl:p50<=0.001ms"], n_rejection=500, constraints={"providers": ["aws"]})
    assert answer["entries"] == answer["pareto"] == answer["fleet"] == []
    assert answer["n_rejected"] == len(answer["rejections"]) >= answer["n_configuration"]
    missed = [r["excess"] for r in answer["rejections"] if r["reason"] == "misses_limit"]
    assert missed == sorted(missed)
    assert answer["rejections"][0]["reason"] == "misses_limit"
    assert min(missed) > 1
    detail = answer["rejections"][0]["detail"]
    assert "for a single user, ITL p50 up to 0.001 ms is met with probability" in detail
    assert detail.endswith("0.8 is required")
    assert answer["runner_up_usd_per_h"] is None
    assert {cost["cost_usd_per_h"] for cost in answer["cost_of_confidence"]} == {None}
    poor = recommend(shared, constraints={"max_usd_per_h": 0.01})
    assert poor["entries"] == []
    assert "over_budget" in {r["reason"] for r in poor["rejections"]}


def test_a_model_that_exceeds_the_memory_is_rejected_for_it(shared: Client) -> None:
    big = CONFIG | {"num_hidden_layers": 400, "hidden_size": 8192}
    answer = recommend(shared, model={"name": "big", "config": big}, n_rejection=500)
    reasons = {r["reason"] for r in answer["rejections"]}
    assert "does_not_fit" in reasons
    assert all(r["excess"] >= 1 for r in answer["rejections"])
    assert all("GB are usable" in r["detail"] for r in answer["rejections"] if r["reason"] == "does_not_fit")
    families = [one for one in answer["families"] if one["reason"] == "does_not_fit"]
    assert any(re.search(r" on \d+, the most that an admitted offer has$", one["detail"]) for one in families)


def test_entries_satisfy_the_constraints(shared: Client) -> None:
    bounds = {"providers": ["AWS", "gcp"], "accelerators": ["h100-sxm-80gb", "L4"], "pricing": ["Spot", "on_demand"]}
    entries = recommend(shared, constraints=bounds, n_entry=200)["entries"]
    assert {entry["provider"] for entry in entries} == {"aws", "gcp"}
    assert {entry["pricing"] for entry in entries} == {"spot", "on_demand"}
    assert {entry["accelerator"] for entry in entries} <= {"nvidia-h100-sxm-80gb", "nvidia-l4-24gb"}
    budget = entries[-1]["cost_usd_per_h"]
    cheap = recommend(shared, constraints={"max_usd_per_h": budget}, n_entry=200)["entries"]
    assert max(entry["cost_usd_per_h"] for entry in cheap) <= budget
    region = cheap[0]["region"]
    assert {e["region"] for e in recommend(shared, constraints={"regions": [region.upper()]})["entries"]} == {region}


def test_constraints_that_admit_no_offer_are_refused(shared: Client) -> None:
    bounds = {"providers": ["lambda"], "regions": ["us-central1"]}
    assert "admit no offer" in problem_of(shared.post(PATH, a_demand(constraints=bounds)), 422)["detail"]


def test_requests_beyond_the_context_are_refused(shared: Client) -> None:
    workload = {"n_input_token": 131_000, "n_output_token": 1000, "users": 1}
    problem = problem_of(shared.post(PATH, a_demand(model=MODEL, workload=workload)), 422)
    assert problem["field"] == "n_input_token"
    assert "exceeds the model's context of 131072" in problem["detail"]


def test_the_problem_of_a_level_too_high_has_the_highest(shared: Client) -> None:
    rare = problem_of(shared.post(PATH, a_demand(level=0.95, limits=["nttft:p50<=1s"])), 409)
    assert "needs 19 groups of measurements, there are 9; ask for at most 0.900" in rare["detail"]
    for limits in (["itl:p50<=50ms"], ["itl:p50<=0.001ms"]):
        problem = problem_of(shared.post(PATH, a_demand(level=0.99, limits=limits)), 409)
        assert "needs 99 groups of measurements, there are" in problem["detail"]
    assert recommend(shared, level=0.9)["level"] == 0.9


def test_the_problem_of_a_preset_beyond_the_context_has_its_lengths(shared: Client) -> None:
    request = a_demand(model="meta-llama/Llama-2-7b-hf", workload={"preset": "agents", "users": 4})
    problem = problem_of(shared.post(PATH, request), 422)
    assert problem["field"] == "workload.preset"
    assert "'agents' makes requests of 67800 input and 527 output tokens" in problem["detail"]
    assert "the context of meta-llama/Llama-2-7b-hf is 4096" in problem["detail"]
    assert "give n_input_token and n_output_token" in problem["detail"]
    with_lengths = {"preset": "agents", "users": 4, "n_input_token": 5000, "n_output_token": 5}
    assert problem_of(shared.post(PATH, request | {"workload": with_lengths}), 422)["field"] == "n_input_token"


def test_intervals_widen_with_the_level(shared: Client) -> None:
    narrow, wide = (recommend(shared, level=level)["entries"][0]["predictions"][0] for level in (0.5, 0.9))
    assert narrow["value"] == wide["value"]
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_entries_of_an_unmeasured_engine_are_outside(shared: Client) -> None:
    unmeasured = next(name for name in ENGINES if name not in shared.service.active_model.bundle.engines)
    assert all(entry["outside"] for entry in recommend(shared, constraints={"engine": unmeasured})["entries"])


def test_extreme_demands_are_answered_with_finite_numbers(shared: Client) -> None:
    for workload in (
        {"n_input_token": 3e4, "n_output_token": 2e3, "users": 1e6},
        {"n_input_token": 1, "n_output_token": 1, "request_rate_per_s": 1e6},
        {"n_input_token": 1, "n_output_token": 3e4, "request_rate_per_s": 1e-9},
    ):
        answer = recommend(shared, workload=workload, limits=["e2e:p99<=86400s"])
        assert all(entry["n_replica"] >= 1 for entry in answer["entries"])
        numbers = [v for e in answer["entries"] for v in e.values() if isinstance(v, float)]
        assert all(math.isfinite(number) for number in numbers)


def test_an_area_admits_its_regions_and_says_which_providers_it_leaves_out(shared: Client) -> None:
    answer = recommend(shared, constraints={"regions": ["eu"]})
    assert {COUNTRIES.get(entry["region"], "EU") for entry in answer["entries"]} <= {*AREAS["EU"], "EU"}
    (warning,) = (text for text in answer["warnings"] if "name no country" in text)
    assert "left out of eu; add the region unknown" in warning
    regions = {"regions": ["unknown"]}
    n_left_out = recommend(shared, constraints=regions)["n_offer"]
    assert warning.startswith(f"{n_left_out} offers of ")
    for constraints in ({"regions": ["eu-central-1"]}, {"regions": ["EU"], "providers": ["aws"]}):
        assert not any("name no country" in text for text in recommend(shared, constraints=constraints)["warnings"])


def test_entries_are_of_the_vendors_named(shared: Client) -> None:
    amd = shared.post(PATH, a_demand(constraints={"vendors": ["amd"]})).json()
    assert {entry["accelerator"].partition("-")[0] for entry in amd["entries"]} == {"amd"}
    response = shared.post(PATH, a_demand(constraints={"vendors": ["AMD"], "accelerators": ["nvidia-t4-16gb"]}))
    assert problem_of(response, 422)["field"] == "constraints.accelerators"
    assert problem_of(shared.post(PATH, a_demand(constraints={"vendors": ["NVIDIAA"]})), 404)["did_you_mean"] == [
        "NVIDIA"
    ]


def test_each_entry_has_the_requested_deployment(shared: Client) -> None:
    request = {"model": MODEL, "n_entry": 3, "constraints": {"vendors": ["NVIDIA"]}}
    commands = [entry["deployment"] for entry in recommend(shared, deployment="vllm", **request)["entries"]]
    assert all(f"vllm serve {MODEL}" in command for command in commands)
    assert "kind: InferenceService" in recommend(shared, deployment="kserve", **request)["entries"][0]["deployment"]
    assert recommend(shared, **request)["entries"][0]["deployment"] is None


def test_a_deployment_of_a_copy_has_a_placeholder_and_an_engine_without_one_a_warning(shared: Client) -> None:
    answer = recommend(shared, deployment="trtllm", constraints={"vendors": ["AMD"]}, n_entry=2)
    assert answer["entries"] == []
    assert "TensorRT-LLM runs on NVIDIA GPUs only" in answer["families"][0]["detail"]
    fp8 = recommend(
        shared, deployment="trtllm", n_entry=1, constraints={"vendors": ["NVIDIA"], "weight_precision": "fp8"}
    )
    assert fp8["entries"][0]["needs_quantised_copy"]
    assert "needs a copy of my-14b in fp8; replace-me/my-14b-fp8 is a placeholder" in fp8["entries"][0]["deployment"]
    home = recommend(
        shared, deployment="kubernetes", constraints={"accelerators": ["4090"], "engines": ["llama.cpp"]}
    )
    assert [entry["deployment"] for entry in home["entries"]] == [None] * len(home["entries"])
    assert any("there are no artefacts for llama.cpp" in warning for warning in home["warnings"])
    splits = {(entry["dp"], entry["ep"]) for entry in home["entries"]}
    assert splits == {(1, 1)}, "servers of llama.cpp are replicas, and none spreads experts"
    assert problem_of(shared.post(PATH, a_demand(deployment="helm")), 422)["field"] == "deployment"


def test_an_entry_names_its_degrees_as_rows_do_and_rows_take_either_spelling(shared: Client) -> None:
    first = recommend(shared, limits=["ttft:p95<=5s"])["entries"][0]
    question = {
        "model": MODEL, "accelerator": first["accelerator"], "n_accelerator": 2, "n_input_token": 100,
        "n_output_token": 10, "concurrency": 4,
    }  # fmt: skip
    assert first.keys() >= {"tp", "pp", "dp", "ep"}
    assert not [name for name in first if name.endswith("_parallel")]
    rows = [question | {"tp": 2}, question | {"tensor_parallel": 2}]
    short, long = shared.post("/v1/predictions", {"rows": rows}).json()["rows"]
    assert (short["tpot_s"], long["tensor_parallel"]) == (long["tpot_s"], 2)
    explained = shared.post("/v1/explanations", {"rows": rows}).json()["rows"]
    assert explained[0] == explained[1]


MLX = {"bits": 4, "group_size": 64}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}


@pytest.mark.parametrize(
    ("fields", "engine", "other"),
    [
        ({"quantization": MLX}, "mlx-lm", "vllm"),
        ({"quantization": MLX, "quantization_config": MLX}, "mlx-lm", "vllm"),
        ({"quantization_config": AWQ}, "vllm", "llama.cpp"),
    ],
)
def test_a_checkpoint_runs_on_engines_of_its_format_unless_a_precision_is_named(
    shared: Client, fields: dict[str, Any], engine: str, other: str
) -> None:
    model = {"name": "m", "config": CONFIG | fields}
    assert engine in {entry["engine"] for entry in recommend(shared, model=model, limits=[])["entries"]}
    refused = recommend(shared, model=model, limits=[], constraints={"engines": [other]})
    assert not refused["entries"]
    assert "does not run" in refused["rejections"][0]["detail"]
    rows = [a_question(model="m", accelerator="4090", engine=name) for name in (engine, other)]
    body = {"models": [model], "rows": rows}
    assert [row["status"] for row in shared.answer("/v1/predictions", body)["rows"]] == ["ok", "does_not_run"]
    wide = recommend(shared, model=model, limits=[], constraints={"engines": [other], "weight_precision": "fp16"})
    assert {entry["engine"] for entry in wide["entries"]} == {other}
