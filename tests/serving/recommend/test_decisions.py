"""Decisions whose right side is known from measured rows, from price lists, and from what people run."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.serving.http.test_recommendations import PATH
from tests.serving.http_client import Client

LIMITS = ["ttft:p95<=3s", "tpot:p50<=60ms"]
H200 = {"accelerators": ["nvidia-h200-sxm-141gb"]}


def ask(
    client: Client, model: str, load: dict[str, Any], limits: Sequence[str] = LIMITS, **fields: Any
) -> dict[str, Any]:
    workload = {"n_input_token": 1000, "n_output_token": 200} | load
    answer = client.post(PATH, {"model": model, "workload": workload, "limits": [*limits], "levers": False, **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def own(accelerator: str, count: int = 1) -> dict[str, Any]:
    nodes = {"accelerator": accelerator, "count": count, "n_per_node": count, "usd_per_h": 0.0}
    return {"inventory": [nodes], "providers": ["owned"]}


@pytest.mark.parametrize(
    ("model", "load", "bounds", "expected"),
    [
        ("Qwen/Qwen3-235B-A22B", {"users": 50}, H200, {"checkpoint": "Qwen/Qwen3-235B-A22B-FP8"}),
        ("zai-org/GLM-4.6", {"users": 50}, H200, {"checkpoint": "zai-org/GLM-4.6-FP8"}),
        ("zai-org/GLM-4.6", {"users": 50}, H200 | {"original": True}, {"weight_precision": "bf16"}),
        ("openai/gpt-oss-120b", {"users": 20}, {}, {"weight_precision": "fp4", "n_instance": 1}),
        ("meta-llama/Llama-3.1-8B", {"users": 1}, own("apple-m4-max-128gb"), {"engine": "llama.cpp"}),
        ("openai/gpt-oss-120b", {"users": 1}, own("amd-strix-halo-128gb"), {"engine": "llama.cpp"}),
        ("meta-llama/Meta-Llama-3-70B", {"users": 1}, own("nvidia-rtx-3090-24gb", 2), {"engine": "llama.cpp"}),
        ("meta-llama/Meta-Llama-3-70B", {"users": 1}, own("nvidia-rtx-4090-24gb", 2), {"weight_precision": "int4"}),
        ("Qwen/Qwen3-32B", {"users": 1}, own("nvidia-rtx-5090-32gb"), {"engine": "llama.cpp"}),
    ],
)
def test_the_first_answer_is_what_people_run(
    shared: Client, model: str, load: dict[str, Any], bounds: dict[str, Any], expected: dict[str, Any]
) -> None:
    limits = [] if "inventory" in bounds else LIMITS
    first = ask(shared, model, load, limits, constraints=bounds)["entries"][0]
    assert {name: first[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("model", "engines"),
    [
        ("Qwen/Qwen3-14B-AWQ", {"vllm", "sglang", "trtllm"}),
        ("unsloth/Qwen3-14B-GGUF", {"llama.cpp"}),
        ("turboderp/Qwen3-14B-exl3", {"exllama-v3"}),
    ],
)
def test_a_copy_is_served_by_engines_that_read_its_format(shared: Client, model: str, engines: set[str]) -> None:
    answer = ask(shared, model, {"users": 1}, [], constraints=own("nvidia-rtx-4090-24gb"))
    seen = {one["engine"] for one in (*answer["entries"], *answer["rejections"])}
    assert answer["entries"]
    assert seen <= engines
    question = {"model": model, "accelerator": "4090", "n_input_token": 1000, "n_output_token": 200}
    rows = [question | {"engine": engine} for engine in ("vllm", "llama.cpp", "exllama-v3")]
    statuses = {row["engine"]: row["status"] for row in shared.answer("/v1/predictions", {"rows": rows})["rows"]}
    assert {name for name, status in statuses.items() if status == "ok"} == engines & statuses.keys()


@pytest.mark.parametrize(
    ("model", "tp", "status"),
    [
        ("Qwen/Qwen3-235B-A22B-FP8", 8, "invalid"),
        ("Qwen/Qwen3-235B-A22B-FP8", 4, "ok"),
        ("Qwen/Qwen3-235B-A22B", 8, "ok"),
    ],
)
def test_experts_in_blocks_are_not_torn(shared: Client, model: str, tp: int, status: str) -> None:
    question = {"model": model, "accelerator": "H200", "engine": "vllm", "n_accelerator": tp, "tp": tp}
    (row,) = shared.answer("/v1/predictions", {"rows": [question | {"n_input_token": 1000, "n_output_token": 200}]})[
        "rows"
    ]
    assert row["status"] == status
    bounds = H200 | {"engines": ["vllm"], "weight_precisions": ["fp8"]}
    answer = ask(shared, model, {"users": 50}, constraints=bounds)
    splits = {(one["tp"], one["ep"]) for one in (*answer["entries"], *answer["rejections"])}
    assert (8, 8) in splits
    assert (8, 1) not in splits


def test_a_node_of_eight_h200_costs_what_it_is_sold_at(shared: Client) -> None:
    first = ask(shared, "deepseek-ai/DeepSeek-R1", {"users": 64}, constraints=H200)["entries"][0]
    assert first["n_instance"] == 1
    assert first["cost_usd_per_h"] == pytest.approx(32, rel=0.1)


@pytest.mark.parametrize(
    ("model", "bounds", "measured"),
    [  # rows of `inferencemax` and `silicon`: accelerators, requests in flight, mean TTFT and TPOT in ms
        ("deepseek-ai/DeepSeek-R1-0528", ("b200", "sglang", "fp8"), (8, 4, 171.8, 10.27)),
        ("openai/gpt-oss-120b", ("h100-sxm-80gb", "vllm", "fp4"), (2, 4, 59.3, 5.03)),
        ("openai/gpt-oss-120b", ("h100-sxm-80gb", "vllm", "fp4"), (4, 16, 62.1, 6.38)),
    ],
)
def test_a_load_takes_no_more_accelerators_than_were_measured_under_it(
    shared: Client, model: str, bounds: tuple[str, str, str], measured: tuple[int, int, float, float]
) -> None:
    n, users, ttft_ms, tpot_ms = measured
    names = ("accelerators", "engines", "weight_precisions")
    constraints = {name: [value] for name, value in zip(names, bounds, strict=True)}
    load = {"n_input_token": 922, "n_output_token": 922, "users": users}
    limits = [f"ttft:mean<={2 * ttft_ms:.1f}ms", f"tpot:mean<={1.4 * tpot_ms:.2f}ms"]
    first = ask(shared, model, load, limits, confidence=0.5, constraints=constraints)["entries"][0]
    assert first["n_replica"] * first["tp"] * first["pp"] * first["dp"] <= n


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"users": 200}, {"users": 100}),
        ({"users": 100}, {"users": 100, "n_input_token": 500}),
        ({"users": 100}, {"users": 100, "think_time_s": 10}),
    ],
)
@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B"])
def test_less_load_never_costs_more(shared: Client, model: str, more: dict[str, Any], less: dict[str, Any]) -> None:
    costs = [ask(shared, model, load)["entries"][0]["cost_usd_per_h"] for load in (less, more)]
    assert costs == sorted(costs)


@pytest.mark.parametrize(("model", "part"), [("meta-llama/Llama-3.1-8B", "nvidia-l40s-48gb"),
                                             ("Qwen/Qwen3-32B", "nvidia-h100-sxm-80gb")])  # fmt: skip
def test_more_accelerators_serve_more(shared: Client, model: str, part: str) -> None:
    rates = []
    for n in (2, 4, 8):
        first = ask(shared, model, {}, objective="throughput", constraints=own(part, n) | {"max_usd_per_h": 1})[
            "entries"
        ][0]
        rates.append(first["request_rate_per_replica"] * first["n_replica"])
    assert rates == sorted(rates)


def test_no_pipeline_comes_first_inside_a_link_domain(shared: Client) -> None:
    for model in ("meta-llama/Llama-3.1-70B", "Qwen/Qwen3-235B-A22B", "deepseek-ai/DeepSeek-R1"):
        entries = ask(shared, model, {"users": 30}, constraints={"accelerators": ["h100-sxm-80gb", "h200", "b200"]})[
            "entries"
        ]
        assert all(entry["pp"] == 1 for entry in entries[:1])


@pytest.mark.parametrize("limits", [["ttft:p95<=1ms"], ["tpot:p50<=0.1ms"], ["e2e:p95<=20ms"]])
def test_the_advice_of_an_empty_answer_succeeds(shared: Client, limits: list[str]) -> None:
    empty = ask(shared, "meta-llama/Llama-3.1-8B", {"users": 5}, limits)
    assert not empty["entries"]
    (best,) = [match for text in empty["warnings"] if (match := re.search(r"the best is ([\d.]+) ms", text))]
    looser = [f"{limits[0].partition('<=')[0]}<={best[1]}ms"]
    assert ask(shared, "meta-llama/Llama-3.1-8B", {"users": 5}, looser)["entries"]


def test_the_budget_that_a_refusal_names_is_enough(shared: Client) -> None:
    poor = ask(shared, "meta-llama/Llama-3.1-8B", {"users": 500}, constraints={"max_usd_per_h": 0.5})
    assert not poor["entries"]
    (cost,) = [match[1] for text in poor["warnings"] if (match := re.search(r"costs ([\d.]+) USD/h", text))]
    richer = ask(shared, "meta-llama/Llama-3.1-8B", {"users": 500}, constraints={"max_usd_per_h": float(cost)})
    assert richer["entries"][0]["cost_usd_per_h"] == pytest.approx(float(cost), abs=0.01)
