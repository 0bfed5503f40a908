import math
from typing import Any

import pytest
from pydantic import ValidationError

from roofcast.serving.recommend.api.request import (
    ConstraintsRequest,
    WorkloadRequest,
)
from roofcast.serving.recommend.demand.constraints import InventoryItem, PriceOverride, Speculation
from roofcast.serving.recommend.demand.presets import PRESETS
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.request_fields import Message


def a_workload(**fields: Any) -> WorkloadRequest:
    return WorkloadRequest.model_validate({"n_input_token": 500, "n_output_token": 100, "users": 80, **fields})


def refusal(part: type[Message], **fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        part.model_validate(fields)
    first = caught.value.errors()[0]
    return ".".join(map(str, first["loc"])) + ": " + first["msg"]


def test_speculation_is_off_unless_it_is_requested() -> None:
    def speculations(**fields: Any) -> tuple[Speculation | None, ...]:
        return ConstraintsRequest.model_validate(fields).speculations()

    assert speculations() == speculations(speculation=["none"]) == (None,)
    assert speculations(speculation=["none", "eagle", "none"]) == (None, Speculation("eagle", 3))
    assert speculations(speculation=["mtp"], n_speculative_token=1, chain_acceptance_ratio=0.8) == (
        Speculation("mtp", 1, 0.8),
    )
    for name, value in (("n_speculative_token", 2), ("chain_acceptance_ratio", 0.5), ("draft_model", "ours/head")):
        assert f"{name} needs speculation" in refusal(ConstraintsRequest, **{name: value})
    assert "speculation.0" in refusal(ConstraintsRequest, speculation=["medusa"])


def test_mean_lengths_are_used_unchanged() -> None:
    demand = a_workload(think_time_s=5, peak_factor=2, headroom=0.2).demand(["ttft<=1s"])
    assert (demand.n_input_token, demand.n_output_token) == (500, 100)
    assert demand.limits == (parse_limit("ttft<=1s"),)
    assert (demand.think_time_s, demand.required_load) == (5, 200)
    assert math.isnan(demand.length_variation)
    assert math.isnan(demand.prefix_cache_ratio)


def test_percentiles_give_mean_and_variation() -> None:
    demand = a_workload(n_output_token={"p50": 100, "p95": 400}).demand([])
    assert demand.n_output_token == pytest.approx(142.6, abs=0.1)
    assert demand.length_variation == pytest.approx(1.017, abs=0.001)
    assert math.isnan(demand.input_variation)
    prompts = a_workload(n_input_token={"p50": 300, "p95": 1200}).demand([])
    assert prompts.lengths[0].percentile("p95") == pytest.approx(1200)
    assert math.isnan(prompts.length_variation)


def test_fields_override_the_preset() -> None:
    preset = PRESETS["agents"]
    request = WorkloadRequest(preset="agents", request_rate_per_s=3)
    assert request.demand([]).prefix_cache_ratio == preset.prefix_cache_ratio
    assert request.demand([]).n_input_token == preset.n_input_token
    changed = WorkloadRequest(preset="agents", request_rate_per_s=3, n_input_token=9000, prefix_cache_ratio=0)
    assert (changed.demand([]).n_input_token, changed.demand([]).prefix_cache_ratio) == (9000, 0)
    assert changed.demand([]).n_output_token == preset.n_output_token


def test_an_own_length_has_no_variation_of_the_preset() -> None:
    assert math.isnan(WorkloadRequest(preset="rag", users=3, n_output_token=50).demand([]).length_variation)
    varied = WorkloadRequest(preset="rag", users=3, n_output_token=50, length_variation=0.1)
    assert varied.demand([]).length_variation == 0.1


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"preset": "chat", "users": 1, "request_rate_per_s": 1},
            "give one of concurrency, users, request_rate_per_s",
        ),
        ({"preset": "chat", "deadline_h": 1}, "deadline_h needs n_batch_request"),
        ({"n_input_token": 5, "users": 1}, "give n_input_token and n_output_token, or a preset"),
        ({"preset": "chat", "request_rate_per_s": 1, "think_time_s": 1}, "think_time_s needs users"),
        ({"preset": "chat", "users": math.inf}, "users: "),
        ({"preset": "chat", "users": 1, "n_output_token": {"p50": 9, "p95": 8}}, "p95: must not be less than p50"),
        ({"preset": "chat", "users": 1, "n_output_token": {"p50": 9}}, "n_output_token"),
    ],
)
def test_an_inconsistent_workload_is_refused(fields: dict[str, Any], problem: str) -> None:
    assert problem in refusal(WorkloadRequest, **fields)


@pytest.mark.parametrize(
    ("part", "fields", "problem"),
    [
        (InventoryItem, {"accelerator": "x", "count": 1, "n_per_node": 1}, "usd_per_h"),
        (InventoryItem, {"accelerator": "x", "count": 0, "n_per_node": 1, "usd_per_h": 0}, "count"),
        (PriceOverride, {"price_usd_per_h": 3, "provider": None}, "name the provider"),
        (PriceOverride, {"price_usd_per_h": 0, "provider": "aws"}, "price_usd_per_h"),
    ],
)
def test_what_lacks_a_name_a_price_or_a_count_is_refused(
    part: type[Message], fields: dict[str, Any], problem: str
) -> None:
    assert problem in refusal(part, **fields)


def test_every_example_is_valid() -> None:
    for part in (WorkloadRequest, InventoryItem, PriceOverride):
        for example in part.model_json_schema()["examples"]:
            part.model_validate(example)


def test_formats_of_weights_are_sent_on_as_they_were_typed() -> None:
    request = ConstraintsRequest.model_validate({"weight_precisions": ["Q5_K_M", "int4"], "kv_precision": "q8"})
    assert (request.weight_precisions, request.kv_precision) == (["int4", "int4"], "int8")
    sent = request.model_dump(mode="json", exclude_unset=True)
    assert sent == {"weight_precisions": ["Q5_K_M", "int4"], "kv_precision": "q8"}
    assert ConstraintsRequest.model_validate(sent).weight_names() == ["Q5_K_M", "int4"]
