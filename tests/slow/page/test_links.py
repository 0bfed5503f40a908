"""Links: each field of a request reaches the service as the link has it, whether the form shows it or keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from pydantic import BaseModel

from roofcast.serving.jobs.job_messages import JobRecommendationRequest
from roofcast.serving.recommend.api.request import RecommendationRequest
from roofcast.serving.recommend.demand.constraints import InventoryItem, PriceOverride
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.request_fields import QWEN_LIKE_CONFIG
from tests.slow.page.tabs import Service, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Route

OWNED = {"accelerator": "nvidia-h100-sxm-80gb", "count": 16, "n_per_node": 8, "usd_per_h": 1.25, "name": "rack 4"}
PRICE = {"price_usd_per_h": 31.5, "provider": "aws", "region": "eu-west-1", "instance_type": "p5.48xlarge"}
PRICE |= {"accelerator": "nvidia-h100-sxm-80gb", "pricing": "on_demand"}
OFFERS = {
    "providers": ["aws", "gcp"], "regions": ["eu-west-1"], "vendors": ["NVIDIA"], "pricing": ["spot", "reserved_1y"],
    "accelerators": ["nvidia-h100-sxm-80gb"], "max_usd_per_h": 52.5, "max_nodes": 2,
    "inventory": [OWNED], "marketplaces": True, "max_price_age_day": 90,
}  # fmt: skip
SHARED: dict[str, Any] = {
    "confidence": 0.8765, "price_overrides": [PRICE], "level": 0.7, "n_entry": 5, "n_rejection": 7,
}  # fmt: skip
INFERENCE: list[dict[str, Any]] = [
    SHARED | {
        "model": "meta-llama/Llama-3.1-8B",
        "workload": {
            "preset": "chat", "n_input_token": 700, "length_variation": 0.5, "prefix_cache_ratio": 0.3, "users": 41,
            "think_time_s": 7.5, "peak_factor": 1.5, "headroom": 0.2,
        },
        "limits": ["ttft:p95<=2s", "throughput_per_user:p50>=25", "throughput>=2000 tok/s", "nttft<3.25ms"],
        "constraints": OFFERS | {
            "engine": "vllm", "engines": ["sglang"], "weight_precision": "fp8", "weight_precisions": ["int4"],
            "kv_precision": "fp8", "speculation": ["eagle"], "n_speculative_token": 4, "chain_acceptance_ratio": 0.6,
            "draft_model": "lab/draft",
        },
        "references": [{"accelerator": "nvidia-h100-sxm-80gb", "ttft_s": 0.2}], "stack": "own stack",
        "operator": "any",
        "levers": False, "deployment": "kubernetes",
    },
    {
        "model": {"name": "lab/14b", "config": QWEN_LIKE_CONFIG},
        "workload": {"n_input_token": {"p50": 300, "p95": 1200}, "n_output_token": 150.5, "request_rate_per_s": 4.25},
        "limits": ["e2e:mean<=20s", "itl:p90<=40ms"], "confidence": 0.8, "constraints": {"pricing": ["on_demand"]},
    },
]  # fmt: skip
INFERENCE.append(
    INFERENCE[1] | {
        "objective": "tokens",
        "workload": INFERENCE[1]["workload"] | {"concurrency": 12, "n_batch_request": 1_000_000, "deadline_h": 72},
        "constraints": {
            "pricing": ["on_demand"], "original": True, "gpu_memory_utilization": 0.85, "max_num_seqs": 64,
            "chunk_size_token": 2048, "n_gpu_layer": 20, "n_cpu_moe": 12, "cpu_offload_gib": 8,
            "acceptance_length": 2.5, "draft_acceptance_ratio": 0.7,
        },
    }
)  # fmt: skip
TRAINING: list[dict[str, Any]] = [
    SHARED | {
        "model": "meta-llama/Llama-3.1-8B", "method": "lora", "n_token": 1.5e7, "n_epoch": 2.5,
        "n_token_per_sequence": 4096, "n_global_batch_sequence": 64, "deadline_h": 12.5, "budget_usd": 300.25,
        "adapter": "lora-fa", "adapter_rank": 32, "adapter_targets": ["q", "up"], "compute_precision": "bf16",
        "frameworks": ["transformers"], "constraints": OFFERS, "references": [{"memory_kind": "peak"}],
    },
]  # fmt: skip
VIEWS: dict[str, tuple[type[BaseModel], list[dict[str, Any]]]] = {
    "recommend": (RecommendationRequest, INFERENCE), "training": (JobRecommendationRequest, TRAINING),
}  # fmt: skip


def fields_of(schema: type[BaseModel], above: str = "") -> set[str]:
    """Return the paths of the fields of a schema, and of those that are schemas themselves."""
    paths = set()
    for name, field in schema.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            paths |= fields_of(kind, f"{above}{name}.")
        else:
            paths.add(f"{above}{name}")
    return paths


def paths_of(request: dict[str, Any]) -> set[str]:
    parts = {name: value for name, value in request.items() if name in {"workload", "constraints"}}
    return {name for name in request if name not in parts} | {
        f"{part}.{name}" for part, fields in parts.items() for name in fields
    }


@pytest.mark.parametrize("view", VIEWS)
def test_links_of_these_tests_have_every_field(view: str) -> None:
    schema, requests = VIEWS[view]
    assert set().union(*map(paths_of, requests)) == fields_of(schema)
    assert OWNED.keys() == InventoryItem.model_fields.keys()
    assert PRICE.keys() == PriceOverride.model_fields.keys()


def follow_link(tab: Tab, service: Service, view: str, request: object) -> list[dict[str, Any]]:
    """Open a link; return the requests that reach the service, which answers none of them."""
    sent: list[dict[str, Any]] = []

    def refuse(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or ""))
        route.fulfill(status=422, json={"detail": f"request {len(sent)} is refused"})

    tab.page.route("**/v1/**/recommendations" if view == "training" else "**/v1/recommendations", refuse)
    tab.go(service, view, request)
    wait_for_request(tab, view, 1)
    return sent


def wait_for_request(tab: Tab, view: str, n: int) -> None:
    tab.page.locator(f"#{view} [role=alert]", has_text=f"request {n} is refused").wait_for()


def in_si_units(request: dict[str, Any]) -> dict[str, Any]:
    if "limits" not in request:
        return request
    return request | {"limits": [replace(parse_limit(text), text="") for text in request["limits"]]}


@pytest.mark.slow
@pytest.mark.parametrize(("view", "request_"), [(view, one) for view, (_, all_) in VIEWS.items() for one in all_])
def test_every_field_of_a_link_is_asked(service: Service, tab: Tab, view: str, request_: dict[str, Any]) -> None:
    sent = follow_link(tab, service, view, request_)
    usual = {"n_rejection": 100} if view == "training" else {}
    assert in_si_units(sent[0]) == usual | in_si_units(request_)


@pytest.mark.slow
def test_fields_without_a_place_in_the_form_are_named_and_dropped(service: Service, tab: Tab) -> None:
    request = INFERENCE[1] | {"max_usd_per_h": 5, "limits": ["ttft<=500", "tpot:p50<=20ms"]}
    sent = follow_link(tab, service, "recommend", request)
    assert sent[0]["limits"] == request["limits"]
    assert sent[0]["max_usd_per_h"] == 5
    kept = tab.page.locator("#kept")
    assert kept.locator("li").count() == 2
    assert "max_usd_per_h" in tab.page.locator("#question-summary").inner_text()
    kept.get_by_role("button", name="Drop max_usd_per_h").click()
    wait_for_request(tab, "recommend", 2)
    assert "max_usd_per_h" not in sent[1]
    tab.page.locator("#n_input_token").fill("400")  # what is changed in the form takes the place of what was kept
    wait_for_request(tab, "recommend", 3)
    assert sent[2]["workload"]["n_input_token"] == 400
    assert kept.locator("li").count() == 0


@pytest.mark.slow
def test_a_field_in_the_wrong_place_is_named_by_the_service(service: Service, tab: Tab) -> None:
    tab.go(service, request=INFERENCE[1] | {"users": 40})
    tab.page.locator("#problem", has_text="users").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("cut", [lambda text: text[:-9], lambda _: "[1]", lambda _: "%"])
def test_a_link_that_cannot_be_read_is_said_to_be_so(service: Service, tab: Tab, cut: Callable[[str], str]) -> None:
    tab.page.goto(f"{service.url}/#/recommend?q={cut(quote(json.dumps(INFERENCE[1])))}")
    tab.page.locator("#problem", has_text="cannot be read").wait_for()
    assert tab.page.locator("#answer > *").count() == 0
