from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.features.jobs.step.communication import gradient_s, layer_traffic
from roofcast.features.jobs.step.flops import forward_flop, model_flop
from roofcast.features.jobs.step.job_coefficients import DEFAULT_TRAINING_COEFFICIENTS
from roofcast.features.jobs.step.job_memory import estimate_memory
from roofcast.features.jobs.step.layer import estimate_layer
from roofcast.features.jobs.step.local_parameters import local_parameters, trained_parameters
from roofcast.features.jobs.step.step import estimate_training, mfu_ratio, throughput_token_per_s
from tests.features.jobs.samples import runs_of

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


@pytest.mark.parametrize("level", ["selective", "full"])
def test_recomputation_of_some_layers_lies_between(level: str) -> None:
    none, half, every = (
        runs_of({"recomputation": level, "recomputed_layer_ratio": ratio, "flash_attention": "off"})
        for ratio in (0, 0.5, 1)
    )
    again = [estimate_training(runs).recomputation_s[0] for runs in (none, half, every)]
    assert again == pytest.approx([0.0, again[2] / 2, again[2]])
    assert again[2] > 0
    kept = [estimate_memory(runs).first.allocated[0] for runs in (none, half, every)]
    assert kept[0] > kept[1] > kept[2]
    plain = runs_of({"recomputation": "none", "flash_attention": "off"})
    assert kept[0] == pytest.approx(estimate_memory(plain).first.allocated[0])


def test_frozen_weights_need_no_gradient() -> None:
    full, lora = (runs_of({"method": m, "sharding": "ddp", "framework": "peft"}) for m in ("full", "lora"))
    assert model_flop(lora.model, lora.job)[0] < 0.7 * model_flop(full.model, full.job)[0]
    assert estimate_training(lora).compute_s[0] < 0.85 * estimate_training(full).compute_s[0]


def test_flop_of_llama_2_7b_by_hand() -> None:
    """32 layers x (4 x 4096^2 + 3 x 4096 x 11008) weights, a head of 32000 x 4096; 2048 tokens attended.

    Backward computes the gradient of each product's input, and of its weight unless that is frozen.
    """
    trained, frozen = runs_of({}), runs_of({"method": "lora", "framework": "peft", "sharding": "ddp"})
    n_weight = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 32000 * 4096
    attention = 32 * 2 * 2048 * 32 * 256
    assert forward_flop(trained.model, trained.job).total[0] == pytest.approx(2 * n_weight + attention, rel=1e-3)
    assert model_flop(trained.model, trained.job)[0] == pytest.approx(3 * (2 * n_weight + attention), rel=1e-3)
    assert model_flop(frozen.model, frozen.job)[0] == pytest.approx(2 * 2 * n_weight + 3 * attention, rel=1e-3)


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


MIXTURE: dict[str, Any] = {
    "model": "mistralai/Mixtral-8x7B-v0.1", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 64,
    "recomputation": "full",
}  # fmt: skip


@pytest.mark.parametrize("offload", ["none", "optimizer"])
@pytest.mark.parametrize(
    "plan", [{"sharding": "zero1"}, {"sharding": "zero1", "tp": 2}, {"sharding": "fsdp"}, {"sharding": "hsdp"}]
)
def test_a_rank_updates_as_many_weights_whatever_the_expert_parallelism(plan: dict[str, Any], offload: str) -> None:
    """One of 64 (HSDP: of 8) of 46.7e9 weights, and all of the two embeddings over TP."""
    time = estimate_training(runs_of(*(MIXTURE | plan | {"ep": ep, "offload": offload} for ep in (1, 2, 8))))
    assert list(time.optimizer_s) == pytest.approx([time.optimizer_s[0]] * 3)
    assert list(time.offload_s) == pytest.approx([time.offload_s[0]] * 3)


def test_the_optimizer_of_a_mixture_by_hand() -> None:
    """46.7e9 weights on 64 ranks, 24 bytes of states read and written and 14 beside, at 3.35 TB/s, times 1.5."""
    time = estimate_training(runs_of(MIXTURE | {"ep": 8}))
    assert time.optimizer_s[0] == pytest.approx(1.5 * 46.7e9 / 64 * (2 * 12 + 14) / 3.35e12, rel=0.01)


def test_zero_2_scatters_gradients_in_every_micro_batch() -> None:
    """Gradients that are held sharded cannot wait: eight times the scatter, and one gathering of weights."""
    plans = [
        {"framework": "deepspeed", "sharding": stage, "n_accelerator": 64, "n_global_batch_sequence": 64 * m}
        for stage in ("zero1", "zero2")
        for m in (1, 8)
    ]
    runs, c = runs_of(*plans), DEFAULT_TRAINING_COEFFICIENTS
    n = np.full(4, 8e9)
    one, same, two, more = gradient_s(runs, c, n, np.zeros(4))
    assert same == one == two  # 16-bit gradients, and 16-bit weights: half of the time is the scatter
    assert more == pytest.approx((8 + 1) / 2 * one)
    data_s = estimate_training(runs).data_s
    assert data_s[1] == data_s[0]
    assert data_s[3] > 4 * data_s[2]


def test_replicas_of_sharded_experts_reduce_their_shard() -> None:
    """64 ranks, shards over 8: eight replicas of an eighth of all experts, whatever the expert parallelism."""
    runs = runs_of(*(MIXTURE | {"sharding": "hsdp", "ep": ep} for ep in (1, 8)))
    local, c = local_parameters(runs.model, runs.plan), DEFAULT_TRAINING_COEFFICIENTS
    n_dense, n_expert = trained_parameters(runs, local, runs.model.n_layer, np.zeros(2))
    time_s = gradient_s(runs, c, 0.0 * n_dense, n_expert)
    assert time_s[1] == pytest.approx(time_s[0])


def test_a_pipeline_of_pytorch_gathers_and_scatters_once_a_step() -> None:
    """torchtitan reshards after the last micro-batch alone: ``fsdp_reshard_after_forward`` is off in a pipeline."""
    staged = {"framework": "torchtitan", "sharding": "fsdp", "n_accelerator": 64, "pp": 4}
    runs = runs_of(*(staged | {"n_global_batch_sequence": 16 * m} for m in (4, 32)))
    c = DEFAULT_TRAINING_COEFFICIENTS.with_values(straggler=1e-9, dp_exposed=1.0)
    time = estimate_training(runs, c)
    assert time.data_s[1] == pytest.approx(time.data_s[0])
    traffic = layer_traffic(runs, c, local_parameters(runs.model, runs.plan))
    assert time.data_s[0] == pytest.approx(8 * (traffic.gather_s + traffic.reduce_s)[0])


def test_a_pipeline_of_maxtext_gathers_in_every_micro_batch() -> None:
    """Its ``pipeline_fsdp_ag_once`` is false by default: no stage stays gathered."""
    staged = {"framework": "maxtext", "sharding": "fsdp", "n_accelerator": 64, "pp": 4}
    runs = runs_of(*(staged | {"n_global_batch_sequence": 16 * m} for m in (4, 32)))
    time = estimate_training(runs)
    assert time.data_s[1] == pytest.approx(8 * time.data_s[0])
    single = estimate_memory(runs_of(staged | {"pp": 1, "n_global_batch_sequence": 64})).first
    assert estimate_memory(runs).first.buffers[0] == pytest.approx(single.buffers[0])


def test_full_recomputation_passes_keys_and_values_again() -> None:
    """Forward once, backward with their gradients twice, and once again where the forward pass is repeated."""
    plan = {"cp": 8, "n_token_per_sequence": 131_072, "n_accelerator": 64}
    full_level = {"recomputation": "full"}
    levels: list[dict[str, Any]] = [
        {"recomputation": "none"},
        full_level,
        full_level | {"recomputed_layer_ratio": 0.5},
    ]
    c = DEFAULT_TRAINING_COEFFICIENTS.with_values(cp_exposed=1.0)
    none, full, half = estimate_training(runs_of(*(plan | level for level in levels)), c).context_s
    assert full == pytest.approx(4 / 3 * none)
    assert half == pytest.approx(7 / 6 * none)


def test_quantised_experts_are_unpacked_in_each_pass() -> None:
    """Mixtral on one B200: 46.4e9 weights in 4 and in 16 bits at 7.7 TB/s, three times as slow as their bytes."""
    job = {
        "model": "mistralai/Mixtral-8x7B-v0.1", "accelerator": "nvidia-b200-sxm-180gb", "framework": "transformers",
        "sharding": "ddp", "n_accelerator": 1, "n_global_batch_sequence": 1, "n_token_per_sequence": 512,
    }  # fmt: skip
    runs = runs_of(job | {"method": "lora"}, job | {"method": "qlora"})
    layer = estimate_layer(runs, DEFAULT_TRAINING_COEFFICIENTS)
    by_pass = [float(np.diff(part.dense_s + part.expert_s)[0] * 32) for part in (layer.forward, layer.backward)]
    byte = (46.7e9 - 2 * 32_000 * 4096) * (runs.job.frozen_byte[1] + 2)
    assert by_pass == pytest.approx([3 * byte / 7.7e12] * 2, rel=0.01)
