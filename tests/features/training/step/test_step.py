from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.features.training.step.coefficients import DEFAULT_TRAINING_COEFFICIENTS
from roofcast.features.training.step.communication import gradient_s
from roofcast.features.training.step.flops import forward_flop, model_flop
from roofcast.features.training.step.memory import estimate_memory
from roofcast.features.training.step.step import estimate_training, mfu_ratio, throughput_token_per_s
from tests.features.training.samples import runs_of

PLANS: list[dict[str, Any]] = [
    {},
    {"tp": 4},
    {"tp": 2, "pp": 4},
    {"sharding": "fsdp", "framework": "llm-foundry"},
    {"recomputation": "full"},
    {"cp": 2, "n_token_per_sequence": 16384},
    {"model": "mistralai/Mixtral-8x7B-v0.1", "n_accelerator": 32, "ep": 8},
    {"method": "lora", "framework": "peft", "sharding": "ddp"},
    {"method": "qlora", "framework": "peft", "sharding": "ddp"},
]


def time_s(*changes: dict[str, Any]) -> list[float]:
    return list(estimate_training(runs_of(*changes)).total_s)


@pytest.mark.parametrize("plan", PLANS)
def test_parts_add_up_and_are_not_negative(plan: dict[str, Any]) -> None:
    time = estimate_training(runs_of(plan))
    parts = [getattr(time, name)[0] for name in time.__slots__]
    assert min(parts) >= 0
    assert time.total_s[0] == pytest.approx(sum(parts))


@settings(max_examples=20)
@given(st.sampled_from(PLANS), st.sampled_from([128, 192, 512]), st.sampled_from([4096, 8192]))
def test_more_work_never_takes_less_time(plan: dict[str, Any], batch: int, n_token: int) -> None:
    more = {
        **plan,
        "n_global_batch_sequence": batch,
        "n_token_per_sequence": max(n_token, plan.get("n_token_per_sequence", 0)),
    }
    less_s, more_s = time_s(plan, more)
    assert more_s >= less_s


@pytest.mark.parametrize("change", [{"recomputation": "full"}, {"recomputation": "selective"}])
def test_recomputation_takes_time(change: dict[str, Any]) -> None:
    without_s, with_s = time_s({}, change)
    assert with_s > without_s


@pytest.mark.parametrize("level", ["selective", "full"])
def test_recomputation_of_some_layers_lies_between(level: str) -> None:
    none, half, every = (
        runs_of({"recomputation": level, "recomputed_layer_ratio": ratio, "flash_attention": "off"})
        for ratio in (0, 0.5, 1)
    )
    again = [estimate_training(runs).recomputation_s[0] for runs in (none, half, every)]
    assert again == pytest.approx([0.0, again[2] / 2, again[2]])
    kept = [estimate_memory(runs).first.allocated[0] for runs in (none, half, every)]
    assert kept[0] > kept[1] > kept[2]
    plain = runs_of({"recomputation": "none", "flash_attention": "off"})
    assert kept[0] == pytest.approx(estimate_memory(plain).first.allocated[0])


def test_frozen_weights_need_no_gradient() -> None:
    full, lora = (runs_of({"method": m, "sharding": "ddp", "framework": "peft"}) for m in ("full", "lora"))
    assert model_flop(lora.model, lora.job)[0] < 0.7 * model_flop(full.model, full.job)[0]
    assert estimate_training(lora).compute_s[0] < 0.85 * estimate_training(full).compute_s[0]


def test_flop_of_llama_2_7b_by_hand() -> None:
    """32 layers x (4 x 4096^2 + 3 x 4096 x 11008) weights, a head of 32000 x 4096; 2048 tokens attended."""
    runs = runs_of({})
    n_weight = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 32000 * 4096
    attention = 32 * 2 * 2048 * 32 * 256
    assert forward_flop(runs.model, runs.job).total[0] == pytest.approx(2 * n_weight + attention, rel=1e-3)
    assert model_flop(runs.model, runs.job)[0] == pytest.approx(3 * (2 * n_weight + attention), rel=1e-3)


def test_flop_of_frozen_weights_by_hand() -> None:
    """Backward computes the gradient of each product's input, not of its weight; attention has no weight."""
    runs = runs_of({"method": "lora", "framework": "peft", "sharding": "ddp"})
    n_weight = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 32000 * 4096
    attention = 32 * 2 * 2048 * 32 * 256
    assert model_flop(runs.model, runs.job)[0] == pytest.approx(2 * 2 * n_weight + 3 * attention, rel=1e-3)


def test_a_token_attends_to_its_sliding_window_at_most() -> None:
    """Mistral-7B: 32 layers of 32 heads of width 128, a window of 4,096 tokens."""
    changes = ({"model": "mistralai/Mistral-7B-v0.1", "n_token_per_sequence": n} for n in (4096, 16_384, 65_536))
    runs = runs_of(*changes)
    by_hand = [32 * 2 * n_attended * 32 * 256 for n_attended in (2048, 4096, 4096)]
    assert forward_flop(runs.model, runs.job).attention == pytest.approx(np.array(by_hand))


def test_7b_on_eight_a100() -> None:
    """Published MFU of 7B models on eight A100 with FSDP or Megatron-LM lie between .43 and .60."""
    runs = runs_of({"n_micro_batch_sequence": 2})
    time = estimate_training(runs)
    mfu = mfu_ratio(runs, time)[0]
    assert 0.43 < mfu < 0.62
    assert throughput_token_per_s(runs, time)[0] == pytest.approx(
        mfu * 8 * 312e12 / model_flop(runs.model, runs.job)[0]
    )


def test_the_bubble_of_equal_stages() -> None:
    """Without head, messages and overhead a pipeline of p stages and m micro-batches waits (p - 1) / (m v)."""
    c = DEFAULT_TRAINING_COEFFICIENTS
    plan = {"pp": 8, "vp": 2, "n_global_batch_sequence": 32, "n_token_per_sequence": 4096}
    runs = runs_of(plan)
    time = estimate_training(runs, c.with_values(pp_exposed=1e-9, dp_exposed=1e-9, step_s=1e-9))
    work = time.compute_s + time.recomputation_s
    assert time.bubble_s[0] / work[0] == pytest.approx(7 / (32 * 2), rel=0.15)


def test_context_parallel_ranks_reduce_gradients_as_data_parallel_ranks_do() -> None:
    """Both hold all weights, so eight ranks of either kind reduce the same gradients."""
    runs = runs_of(*({"sharding": sharding, "cp": cp} for sharding in ("ddp", "zero1") for cp in (1, 2, 4)))
    time = gradient_s(runs, DEFAULT_TRAINING_COEFFICIENTS, np.full(6, 1e9), np.zeros(6))
    assert time[:3] == pytest.approx(np.full(3, time[0]))
    assert time[3:] == pytest.approx(np.full(3, time[3]))


@pytest.mark.parametrize("sharding", ["zero1", "zero2", "zero3"])
def test_ranks_that_share_optimizer_states_update_a_share_of_the_weights(sharding: str) -> None:
    replica_s, share_s = estimate_training(
        runs_of({"framework": "deepspeed", "sharding": "ddp"}, {"framework": "deepspeed", "sharding": sharding})
    ).optimizer_s
    assert share_s == pytest.approx(replica_s / 8)


def test_a_slower_network_never_helps() -> None:
    fast, slow = (
        {"n_accelerator": 64, "tp": 8, "node_bandwidth_byte_per_s": bandwidth} for bandwidth in (400e9, 10e9)
    )
    fast_s, slow_s = time_s(fast, slow)
    assert slow_s > fast_s


def test_fewer_micro_batches_than_stages_cannot_interleave() -> None:
    """A pipeline of p stages and m micro-batches works for at most m of m + p - 1 intervals."""
    runs = runs_of(*({"pp": 8, "vp": 4, "n_global_batch_sequence": m} for m in (1, 4)))
    mfu = mfu_ratio(runs, estimate_training(runs))
    assert mfu[0] < 1 / 8
    assert mfu[1] < 4 / 11
