import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.job_campaigns import job_catalog
from roofcast.serving.jobs import job_service
from roofcast.serving.jobs.job_messages import JobRecommendationRequest, JobRecommendationResponse
from roofcast.serving.jobs.job_predictions import MEMORY_PARTS
from roofcast.serving.jobs.rows import LATENT_ADAPTERS
from roofcast.training.lifecycle.shipped import load_shipped_job_predictor
from tests.serving.jobs.builders import a_training_demand, an_estimate_model

LATENT = {
    "model": "deepseek-ai/DeepSeek-V2-Lite",
    "constraints": {"accelerators": ["h200-sxm-141gb"], "max_nodes": 1},
}

STEP = {
    "accelerator": "rtx-4090-24gb", "method": "qlora", "framework": "transformers", "n_token_per_sequence": 2048,
    "n_global_batch_sequence": 128,
}  # fmt: skip
LARGE = {"model": "meta-llama/Llama-3.1-70B", "method": "full", "n_token": 1e9, "n_epoch": 1.0}


def recommend(*, active: Any = None, **changes: Any) -> JobRecommendationResponse:
    request = JobRecommendationRequest.model_validate(a_training_demand(**changes))
    active = active or an_estimate_model()
    return job_service.answer_training_recommendation(request, job_catalog(), active, dt.date(2026, 6, 1))


@pytest.mark.parametrize(
    ("change", "is_said"),
    [
        ({"method": "lora", **LATENT}, True),
        ({"method": "adapter", "adapter": "bottleneck", **LATENT}, False),
        ({"method": "full", **LATENT}, False),
        ({"method": "lora"}, False),
    ],
)
def test_adapters_of_latent_attention_are_said(change: dict[str, Any], is_said: bool) -> None:
    assert (LATENT_ADAPTERS in recommend(**change).assumptions) == is_said


@pytest.mark.parametrize(
    ("method", "adapter", "default"),
    [
        ("lora", "lora-fa", "adapters of rank 16"),
        ("adapter", "bottleneck", "two bottlenecks of width 64 a layer"),
        ("adapter", "prompt-tuning", "100 virtual tokens"),
    ],
)
def test_a_variant_of_adapters_has_its_own_states_and_no_lora_command(
    method: str, adapter: str, default: str
) -> None:
    on = {"accelerators": ["a100-sxm-80gb"], "max_nodes": 1}
    lora, variant = (recommend(method=method, adapter=name, constraints=on) for name in (None, adapter))
    assert variant.entries[0].memory_byte["optimizer"] != lora.entries[0].memory_byte["optimizer"]
    assert default in variant.defaults
    assert variant.entries[0].launch == {}
    assert "no other adapters" in variant.entries[0].launch_problems["accelerate"]


@pytest.mark.parametrize("method", ["full", "adapter"])
def test_a_variant_needs_its_method(method: str) -> None:
    with pytest.raises(ValidationError, match="adapter"):
        recommend(method=method, adapter="lora-fa")


def test_the_nearest_miss_of_a_deadline_out_of_reach_is_the_fastest() -> None:
    answer = recommend(**LARGE | {"n_token": 1e12}, deadline_h=1, constraints={"accelerators": ["b200-sxm-180gb"]})
    (miss,) = answer.misses
    assert (miss.reason, miss.n_accelerator, answer.entries) == ("too_slow", 64, ())
    dear = recommend(**LARGE | {"n_token": 1e12}, budget_usd=1, constraints={"accelerators": ["b200-sxm-180gb"]})
    assert dear.misses[0].reason == "over_budget"
    assert (dear.misses[0].cost_usd or 0) < (miss.cost_usd or 0)


def test_entries_meet_the_limits_and_cost_least_first() -> None:
    answer = recommend(**LARGE, deadline_h=48, budget_usd=3000)
    costs = [entry.cost_usd for entry in answer.entries]
    assert costs == sorted(costs)
    assert len({(entry.accelerator, entry.pricing, entry.market) for entry in answer.entries}) == len(costs) > 1
    for entry in answer.entries:
        assert entry.p_limits_met >= 0.8
        assert entry.hours < 48
        assert entry.cost_usd < 3000
        assert entry.hours == entry.hours_interval.value
        assert entry.cost_usd == pytest.approx(entry.hours * entry.usd_per_h, rel=1e-4)
        for interval in (entry.hours_interval, entry.cost_usd_interval, entry.energy_kwh, entry.mfu_ratio):
            assert 0 < interval.low < interval.value < interval.high
        assert entry.energy_kwh.value == pytest.approx(entry.hours * entry.power_w / 1e3, rel=1e-4)
        assert set(entry.memory_byte) == set(MEMORY_PARTS)
        plan = entry.plan
        assert plan.tp * plan.pp * plan.cp * plan.dp == entry.n_accelerator
        assert plan.n_micro_batch_sequence * plan.n_gradient_accumulation * plan.dp == 128


def test_no_point_of_the_front_is_both_faster_and_cheaper_than_another() -> None:
    front = recommend(**LARGE).pareto
    assert len(front) > 1
    assert [point.cost_usd for point in front] == sorted(point.cost_usd for point in front)
    assert [point.hours for point in front] == sorted((point.hours for point in front), reverse=True)


def test_quantised_lora_runs_on_one_small_card_where_all_weights_do_not() -> None:
    card = {"constraints": {"accelerators": ["rtx-4090-24gb"]}, "model": "llama-2-7b-hf"}
    (entry,) = recommend(**card).entries
    assert entry.n_accelerator == 1
    assert "--load_in_4bit" in entry.launch["accelerate"]
    answer = recommend(**card | {"model": "meta-llama/Llama-3.1-405B"}, method="full")
    assert not answer.entries
    (miss,) = answer.misses
    assert miss.reason == "does_not_fit"
    assert "GB on each, of 25.8 GB" in miss.detail
    assert answer.warnings[-1].startswith("no hardware runs the job")


@pytest.mark.parametrize(
    ("limit", "reason"), [({"deadline_h": 1.0}, "too_slow"), ({"budget_usd": 1.0}, "over_budget")]
)
def test_a_missed_limit_is_named(limit: dict[str, float], reason: str) -> None:
    answer = recommend(**limit, constraints={"accelerators": ["rtx-4090-24gb", "l4-24gb"], "max_nodes": 1})
    assert not answer.entries
    assert {miss.reason for miss in answer.misses} == {reason}
    assert all(miss.p_limits_met is not None and miss.p_limits_met < 0.8 for miss in answer.misses)
    costs = [miss.cost_usd for miss in answer.misses if miss.cost_usd is not None]
    assert costs == sorted(costs)


def test_an_hourly_budget_is_of_all_instances() -> None:
    """An hour of one instance may cost less, while that of all which the job needs costs more."""
    entries = recommend(**LARGE).entries
    budget = 60.0
    assert any(entry.usd_per_h / entry.n_instance < budget < entry.usd_per_h for entry in entries)
    limited = recommend(**LARGE, constraints={"max_usd_per_h": budget})
    assert limited.entries
    assert all(entry.usd_per_h <= budget for entry in limited.entries)


def test_owned_nodes_are_used_as_far_as_there_are_any() -> None:
    own = [{"accelerator": "h100-sxm-80gb", "count": 32, "n_per_node": 8, "usd_per_h": 0.0}]
    answer = recommend(**LARGE, constraints={"inventory": own, "providers": ["owned"]})
    (entry,) = answer.entries
    assert (entry.cost_usd, entry.n_instance) == (0.0, 4)
    few = [{"accelerator": "h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 0.0}]
    (tight,) = recommend(**LARGE, constraints={"inventory": few, "providers": ["owned"]}).entries
    assert (entry.plan.offload, tight.plan.offload) == ("none", "optimizer+parameters")
    assert "--training.enable_cpu_offload" in tight.launch["torchrun"]


def test_a_precision_excludes_accelerators_without_it() -> None:
    answer = recommend(
        method="full", compute_precision="fp8", constraints={"accelerators": ["a100-sxm-80gb", "h100-sxm-80gb"]}
    )
    assert {entry.accelerator for entry in answer.entries} == {"nvidia-h100-sxm-80gb"}
    assert [miss.detail for miss in answer.misses] == ["does not multiply in fp8"]


def test_probabilities_do_not_depend_on_the_level_of_the_intervals() -> None:
    narrow, wide = (recommend(deadline_h=6, level=level).entries[0] for level in (1e-300, 0.95))
    assert narrow.p_deadline_met == wide.p_deadline_met
    assert narrow.hours == wide.hours
    assert wide.hours_interval.high > narrow.hours_interval.high


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"accelerator": "rtx-4090-24gb"}, "references.0.n_token_per_sequence"),
        ({"accelerator": "rtx-4090-24gb", "n_token_per_sequence": 2048}, "references.0"),
        ({"accelerator": "rtx-4090-24gb", "n_token_per_sequence": 2048, "step_time_s": 3},
         "references.0.n_global_batch_sequence"),
        ({"accelerator": "no-such"}, "references.0.accelerator"),
        ({**STEP, "step_time_s": 0.4}, "references.0.step_time_s"),
        ({**STEP, "step_time_s": 40_000}, "references.0.step_time_s"),
        ({**STEP, "throughput_token_per_s": 1.0}, "references.0.throughput_token_per_s"),
    ],
)  # fmt: skip
def test_an_invalid_reference_is_named(row: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as error:
        recommend(references=[row])
    assert error.value.field == field


def test_a_slow_own_run_slows_the_answer() -> None:
    estimate = an_estimate_model()
    shipped = replace(estimate, bundle=replace(estimate.bundle, predictor=load_shipped_job_predictor()))
    card = {"constraints": {"accelerators": ["rtx-4090-24gb"]}, "confidence": 0.5}
    run = {
        "accelerator": "rtx-4090-24gb", "method": "qlora", "framework": "transformers", "n_token_per_sequence": 2048,
        "n_global_batch_sequence": 128, "step_time_s": 400,
    }  # fmt: skip
    slow, usual = recommend(active=shipped, **card, references=[run] * 3), recommend(active=shipped, **card)
    assert slow.entries[0].hours > 1.3 * usual.entries[0].hours


def test_an_entry_has_the_prediction_of_its_plan() -> None:
    entry = recommend(**LARGE, deadline_h=48).entries[0]
    plan = entry.plan.model_dump(exclude={"sequence_parallel"})
    row = plan | {
        "model": LARGE["model"], "accelerator": entry.accelerator, "n_accelerator": entry.n_accelerator,
        "n_node": entry.n_instance, "method": "full", "n_token_per_sequence": 2048,
        "sequence_parallel": "on" if entry.plan.sequence_parallel else "off",
        "compiled": "on" if entry.plan.framework == "torchtitan" else "",
    }  # fmt: skip
    (answer,) = job_service.answer_rows([row], [], 0.8, load_catalog(), an_estimate_model())
    assert answer["status"] == "ok", answer["reason"]
    assert answer["step_time_s"] == pytest.approx(entry.step_time_s.value, rel=1e-4)
    assert answer["p_fits"] == pytest.approx(entry.p_fits, rel=1e-4)
    assert answer["mfu_ratio"] == pytest.approx(entry.mfu_ratio.value, rel=1e-4)
    assert answer["power_w"] == pytest.approx(entry.power_w, rel=1e-4)


def test_a_part_of_a_step_takes_a_whole_step() -> None:
    card = {"constraints": {"accelerators": ["rtx-4090-24gb"]}, "n_epoch": 1}
    part, one, more = (recommend(**card, n_token=share * 128 * 2048) for share in (0.38, 1.0, 1.1))
    assert (part.n_step, one.n_step, more.n_step) == (1, 1, 2)
    assert part.entries[0].hours == one.entries[0].hours == pytest.approx(more.entries[0].hours / 2, rel=1e-3)
