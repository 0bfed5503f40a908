from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.megatron_tables import ACTIVATION_GIB, STATE_GIB, korthikanti_rows
from roofcast.data.catalog import load_catalog
from roofcast.data.job_campaigns import job_catalog
from roofcast.features.jobs.plan_enumeration import choose_plans
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.job_memory import correct_memory, estimate_memory, layer_activation_byte
from tests.features.jobs.samples import runs_of

STAGES = ["ddp", "zero1", "zero2", "zero3"]


def device_byte(*changes: dict[str, Any]) -> list[float]:
    return list(estimate_memory(runs_of(*changes)).device)


@pytest.mark.parametrize("method", ["pretrain", "lora", "qlora"])
def test_memory_adds_up_over_parts(method: str) -> None:
    memory = estimate_memory(runs_of({"method": method, "pp": 2, "tp": 2}))
    for stage in (memory.first, memory.last):
        parts = [getattr(stage, name)[0] for name in stage.__slots__]
        assert min(parts) >= 0
        assert stage.allocated[0] == pytest.approx(sum(parts))
    assert memory.allocated[0] <= memory.reserved[0] <= memory.device[0]


@settings(max_examples=9)
@given(st.sampled_from([8, 16, 64]), st.sampled_from(["megatron-lm", "llm-foundry", "deepspeed"]))
def test_more_zero_never_needs_more_memory(n: int, framework: str) -> None:
    """Beyond the buffer in which a layer's weights are gathered."""
    changes = [{"sharding": stage, "n_accelerator": n, "framework": framework} for stage in STAGES]
    memory = estimate_memory(runs_of(*changes)).first
    states = memory.weights + memory.gradients + memory.optimizer
    assert (np.diff(states) <= 0).all()
    assert (np.diff(memory.allocated) <= 0).all()


def test_states_of_replicas_by_hand() -> None:
    """Megatron-LM keeps 18 bytes a weight: 2 + 4 + 12; its distributed optimizer 6 + 12 / dp."""
    first = estimate_memory(runs_of({"sharding": "ddp"}, {"sharding": "zero1"})).first
    states = first.weights + first.gradients + first.optimizer
    assert states[0] == pytest.approx(18 * 6.738e9, rel=1e-3)
    assert states[1] == pytest.approx((6 + 12 / 8) * 6.738e9, rel=1e-3)


def test_sharded_adapters_have_their_states_on_one_rank_each() -> None:
    """Eight ranks of ZeRO-3 hold an eighth of the adapters' weights, gradients and optimizer states each."""
    changes = ({"method": "lora", "framework": "fsdp", "sharding": sharding} for sharding in ("ddp", "fsdp"))
    first = estimate_memory(runs_of(*changes)).first
    for states in (first.gradients, first.optimizer):
        assert states[0] > 0
        assert states[1] == pytest.approx(states[0] / 8)


@pytest.mark.parametrize(
    "changes",
    [
        [{"recomputation": level, "flash_attention": "off"} for level in ("none", "selective", "full")],
        [{"method": method, "framework": "peft", "sharding": "ddp"} for method in ("full", "lora", "qlora")],
        [{"method": "lora", "adapter": adapter, "framework": "peft"} for adapter in ("lora", "lora-fa")],
    ],
    ids=["recomputation", "adapters", "frozen inputs"],
)
def test_recomputation_and_adapters_save_memory(changes: list[dict[str, Any]]) -> None:
    """Megatron-LM's selective recomputation leaves out attention scores, which fused attention never stores."""
    assert (np.diff(device_byte(*changes)) < 0).all()


def test_the_first_stage_holds_the_micro_batches_between_its_passes() -> None:
    """1F1B: as many as there are stages after it and itself, or all of a step if these are fewer."""
    runs = runs_of(*({"pp": 8, "n_global_batch_sequence": n} for n in (2, 8, 64)))
    kept = estimate_memory(runs).first.activations
    assert kept / kept[0] == pytest.approx(np.array([1.0, 4.0, 4.0]))


def test_chunks_of_interleaved_stages_hold_more_micro_batches() -> None:
    """Four stages of two chunks hold 1 + 3 / (4 x 2) of the micro-batches of whole stages (Korthikanti, 2022)."""
    staged = {"pp": 4, "n_accelerator": 8, "n_global_batch_sequence": 64}
    whole, interleaved = (
        estimate_memory(runs_of(staged | change)).first.activations[0]
        for change in ({}, {"pipeline_schedule": "interleaved", "vp": 2})
    )
    assert interleaved == pytest.approx((1 + 3 / 8) * whole)


def test_deepspeed_ignores_offloaded_weights_below_stage_3() -> None:
    """Falcon-7B on eight A100 with ZeRO-2: 36 GB were measured with ``offload_param`` set."""
    run = {"framework": "deepspeed", "method": "full", "sharding": "zero2"}
    both, optimizer = (estimate_memory(runs_of(run | {"offload": o})) for o in ("optimizer+parameters", "optimizer"))
    assert both.device[0] == optimizer.device[0]


def test_weights_on_the_host_pass_through_a_buffer() -> None:
    """Llama-2-7B: 202.4 million weights of a layer, two layers in 16 bits, and the embedding of 32,000 by 4,096."""
    settings = ({"offload": "none"}, {"offload": "parameters", "sharding": "fsdp"})
    plain, offloaded = (estimate_memory(runs_of(one)).first for one in settings)
    assert offloaded.weights[0] == 0
    assert offloaded.buffers[0] - plain.buffers[0] == pytest.approx(2 * (2 * 202.4e6 + 32_000 * 4096), rel=1e-3)


def test_activations_and_states_of_korthikanti_figure_1() -> None:
    """With t, p and v: L (1 + (p - 1) / (p v)) layers of sbh (10 + 24 / t + 5 a s / (h t)), or of 34 sbh / t."""
    rows, models = korthikanti_rows()
    rows = rows.assign(framework="megatron-deepspeed")
    runs = choose_plans(build_jobs(rows, models, job_catalog().accelerators)).runs
    kept, scores, _ = layer_activation_byte(runs)
    plan = runs.plan
    n_layer = runs.model.n_layer * (1 + np.where(plan.vp > 1, (plan.pp - 1) / (plan.pp * plan.vp), 0))
    gib = plan.micro_batch * runs.job.n_token * n_layer * np.array([kept + scores, kept]) / 2**30
    none, selective = gib[0, 0::2], gib[1, 1::2]
    assert none == pytest.approx(np.array([row[0] for row in ACTIVATION_GIB]), rel=0.01)
    assert selective == pytest.approx(np.array([row[1] for row in ACTIVATION_GIB]), rel=0.01)


def test_states_of_korthikanti_figure_1() -> None:
    """18 bytes a weight; the figure leaves out the embedding."""
    rows, models = korthikanti_rows()
    runs = choose_plans(build_jobs(rows, models, job_catalog().accelerators)).runs
    first = estimate_memory(runs).first
    embedding = 18 * runs.model.n_param_embedding / runs.plan.tp
    gib = (first.weights + first.gradients + first.optimizer - embedding)[0::2] / 2**30
    assert gib[1:] == pytest.approx(np.array(STATE_GIB)[1:], rel=0.01)


def test_experts_spread_over_ranks_are_sharded_over_their_replicas_alone() -> None:
    few, many = (expert_states(ep) for ep in (1.0, 8.0))
    assert many == pytest.approx(few, rel=1e-6)


def expert_states(ep: float) -> float:
    """Return the states of a mixture of experts on one of 16 ranks that shard everything."""
    rows = {
        "model": "mistralai/Mixtral-8x7B-v0.1", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 16.0,
        "framework": "torchtitan", "sharding": "fsdp", "n_micro_batch_sequence": 1.0, "ep": ep,
        "recomputation": "full", "n_global_batch_sequence": 16.0,
    }  # fmt: skip
    catalog = load_catalog()
    columns = {
        name: np.array([value], dtype=float if isinstance(value, float) else object) for name, value in rows.items()
    }
    jobs = build_jobs(columns, catalog.models, catalog.accelerators)
    first = choose_plans(jobs).memory.first
    return float((first.weights + first.gradients + first.optimizer)[0])


def test_embeddings_of_quantised_models_stay_in_16_bits() -> None:
    """bitsandbytes quantises the products of the layers: 4.5 bits a weight; Llama-2-7B embeds 2 x 32,000 x 4,096."""
    first = estimate_memory(runs_of({"method": "qlora", "framework": "peft", "sharding": "ddp"})).first
    byte = runs_of({"method": "qlora"}).job.frozen_byte[0]
    n_wide = 2 * 32_000 * 4096
    adapters = first.gradients[0]
    assert first.weights[0] - adapters == pytest.approx(byte * (6.738e9 - n_wide) + 2 * n_wide, rel=1e-3)


def test_sharded_stages_of_a_pipeline_stay_gathered() -> None:
    """torchtitan: weights in 16 bits and gradients in 32 bits of half of the layers."""
    plain, staged = (
        estimate_memory(runs_of({"framework": "torchtitan", "sharding": "fsdp", "pp": pp})).first.buffers[0]
        for pp in (1, 2)
    )
    assert staged == pytest.approx(6 * 3.369e9 + 0.5e9, rel=1e-3)
    assert plain < staged / 10


def test_gradients_that_are_freed_grow_while_activations_shrink() -> None:
    single = {"framework": "torchtune", "method": "full", "n_accelerator": 1, "sharding": "ddp", "compiled": "on"}
    steps = [
        single | {"n_global_batch_sequence": n, "recomputation": level} for n in (1, 2) for level in ("none", "full")
    ]
    first = estimate_memory(runs_of(*steps)).first
    assert list(first.gradients > 0) == [False, True, True, True]
    assert first.logits[1] == 0
    assert (first.allocated[:2] < first.allocated[2:]).all()


def test_deepspeed_holds_gradients_in_32_bits_and_buckets() -> None:
    """Buckets of 5e8 weights of gradients and of updated weights."""
    first = estimate_memory(runs_of({"framework": "deepspeed", "sharding": "zero2"})).first
    assert first.buffers[0] == pytest.approx(4 * 6.738e9 / 8 + 2 * 2 * 5e8 + 0.5e9, rel=1e-3)


@pytest.mark.parametrize("ratio", [0.4, 0.9, 1.3])
@pytest.mark.parametrize("framework", ["torchtune", "fsdp", "transformers", "torchtitan"])
def test_parts_add_up_where_no_states_are_on_the_device(framework: str, ratio: float) -> None:
    offloaded = {
        "framework": framework, "method": "full", "n_accelerator": 1, "sharding": "fsdp",
        "offload": "optimizer+parameters", "n_global_batch_sequence": 1, "n_token_per_sequence": 32_768,
    }  # fmt: skip
    memory = estimate_memory(runs_of(offloaded))
    assert memory.first.states[0] == 0
    corrected = correct_memory(memory, ratio * memory.device)
    assert corrected.device[0] == pytest.approx(ratio * memory.device[0])
    assert corrected.first.states[0] == 0
    assert corrected.first.activations[0] == pytest.approx(ratio * memory.first.activations[0])


@pytest.mark.parametrize("ratio", [0.4, 0.9, 1.3])
def test_parts_add_up_to_a_corrected_peak(ratio: float) -> None:
    memory = estimate_memory(runs_of({"pp": 2, "tp": 2}))
    corrected = correct_memory(memory, ratio * memory.device)
    assert corrected.device[0] == pytest.approx(ratio * memory.device[0])
    assert corrected.reserved[0] == pytest.approx(ratio * memory.reserved[0])
    moved = corrected.first.states[0] / memory.first.states[0]
    assert moved == pytest.approx(1.0) if ratio > 0.5 else ratio < moved < 1.0
    assert corrected.first.activations[0] >= 0.5 * min(ratio, 1.0) * memory.first.activations[0]


def test_gpipe_holds_all_micro_batches_in_flight() -> None:
    """32 instead of 4 of 1F1B on the first of four stages, and 32 instead of 1 on the last."""
    staged = {"pp": 4, "n_accelerator": 8, "n_global_batch_sequence": 64}
    one, other = (estimate_memory(runs_of(staged | {"pipeline_schedule": name})) for name in ("1f1b", "gpipe"))
    assert other.first.activations[0] == pytest.approx(32 / 4 * one.first.activations[0])
    assert other.last.activations[0] == pytest.approx(32 * one.last.activations[0])
    assert other.last.logits[0] == pytest.approx((32 + 1) / 2 * one.last.logits[0])


def test_gradient_accumulation_without_a_pipeline_holds_one_micro_batch() -> None:
    one, other = (estimate_memory(runs_of({"pipeline_schedule": name})).device[0] for name in ("1f1b", "gpipe"))
    assert one == other


def test_adapters_of_experts_spread_with_their_experts() -> None:
    """Rank 16 on gate, up and down: 226.5e6 weights at 16 bytes, one eighth on each of eight ranks."""
    lora = {
        "model": "mistralai/Mixtral-8x7B-v0.1", "accelerator": "nvidia-h100-sxm-80gb", "method": "lora",
        "framework": "megatron-lm", "sharding": "ddp", "adapter_targets": "gate up down", "recomputation": "full",
    }  # fmt: skip
    first = estimate_memory(runs_of(*(lora | {"ep": ep} for ep in (1, 8)))).first
    states = 2 * first.gradients + first.optimizer
    assert list(states) == pytest.approx([16 * 226_492_416, 16 * 226_492_416 / 8])
