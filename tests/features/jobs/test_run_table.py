from typing import Any

import numpy as np
import pytest

from roofcast.features.jobs.frameworks import FRAMEWORKS
from roofcast.features.jobs.run_table import CONTENT_RATIO
from roofcast.features.jobs.step.communication import tensor_latency_s
from roofcast.features.jobs.step.job_coefficients import (
    DEFAULT_TRAINING_COEFFICIENTS,
    FRAMEWORK_PRIORS,
    MEMORY_NAMES,
    TRAINING_NAMES,
)
from roofcast.features.jobs.step.job_memory import estimate_memory
from roofcast.features.jobs.step.step import estimate_training, mfu_ratio, throughput_token_per_s
from tests.features.jobs.samples import jobs_of, runs_of

BLANK = {"tp": None, "pp": None, "cp": None, "sharding": "", "recomputation": "", "compute_precision": ""}
H100 = {"accelerator": "nvidia-h100-sxm-80gb"}


def test_blanks_of_the_plan_stay_unknown() -> None:
    stated = jobs_of(BLANK).stated
    assert np.isnan([stated.tp[0], stated.pp[0], stated.recomputation[0]]).all()


@pytest.mark.parametrize(
    "change", [{"sharding": "fsdp"}, {"framework": "llm-foundry"}, {"dp": 8}, {"n_accelerator": 1}]
)
def test_data_parallel_runs_are_not_split(change: dict[str, Any]) -> None:
    stated = jobs_of({**BLANK, **change}).stated
    assert (stated.tp[0], stated.pp[0], stated.cp[0]) == (1, 1, 1)


def test_a_precision_that_is_not_stated() -> None:
    """NeMo's is FP8 where the accelerator has it."""
    nemo = {**BLANK, "framework": "nemo"}
    jobs = jobs_of(nemo, {**nemo, **H100}, {**BLANK, **H100})
    assert list(jobs.job.is_eight_bit) == [0, 1, 0]
    assert jobs.hardware.flop_per_s[1] == pytest.approx(2 * jobs.hardware.flop_per_s[2], rel=0.01)


def test_replicas_of_megatron_bridge_shard_the_optimizer() -> None:
    stated = jobs_of({"framework": "megatron-bridge", "sharding": "ddp"}, {"sharding": "ddp"}).stated
    assert list(stated.zero_stage) == [1, 0]


def test_variants_of_adapters() -> None:
    """Llama-2-7B: 32 layers, hidden size 4,096."""
    adapter = {"method": "adapter", "sharding": ""}
    jobs = jobs_of(
        {**adapter, "adapter": "prompt-tuning"},
        {**adapter, "adapter": "Prompt-Tuning", "adapter_rank": 20},
        {**adapter, "adapter": "bottleneck", "adapter_rank": 8},
        {**adapter, "adapter": "prompt-tuning", "n_param_trained": 5e5},
        {"method": "lora", "adapter": "LoRA-FA", "adapter_rank": 8},
    ).job
    assert list(jobs.n_param_trained) == [
        100 * 4096, 20 * 4096, 32 * 2 * (2 * 4096 * 8 + 4096 + 8), 5e5, 32 * 8 * 2 * 4096
    ]  # fmt: skip
    assert list(jobs.is_input_frozen) == [0, 0, 0, 0, 1]
    assert list(jobs.n_adapter_width[:3]) == [0, 0, 4 * 4096]


def test_a_prompt_lengthens_the_sequence() -> None:
    """Rates count the 4,096 tokens of the data set; 409,600 trained weights are 100 virtual tokens."""
    prompt = {"method": "adapter", "adapter": "prompt-tuning", "sharding": ""}
    jobs = jobs_of({**prompt, "adapter_rank": 200}, {**prompt, "n_param_trained": 409600}, {"method": "lora"}).job
    assert list(jobs.n_token) == [4296, 4196, 4096]
    assert list(jobs.n_token * jobs.content_ratio) == pytest.approx([4096] * 3)


def test_a_prompt_takes_less_memory_than_lora_on_all_projections_but_more_time_than_none() -> None:
    short = {"method": "adapter", "adapter": "prompt-tuning", "adapter_rank": 1, "sharding": ""}
    runs = runs_of(
        short, short | {"adapter_rank": 1024}, {"method": "lora", "adapter_targets": "q k v o gate up down"}
    )
    memory, time = estimate_memory(runs).first.activations, estimate_training(runs)
    assert memory[0] < memory[1]
    assert memory[0] < memory[2]
    rate = throughput_token_per_s(runs, time)
    assert rate[1] < 0.85 * rate[0]


def test_padding_is_not_counted() -> None:
    runs = runs_of({}, {"packing": "padded"})
    time = estimate_training(runs)
    assert time.total_s[1] == time.total_s[0]
    padded = throughput_token_per_s(runs, time)[1] / throughput_token_per_s(runs, time)[0]
    assert padded == CONTENT_RATIO
    assert mfu_ratio(runs, time)[1] == mfu_ratio(runs, time)[0]


def test_embedding_and_head_are_trained_in_full_in_the_precision_of_the_model() -> None:
    """Llama-2-7B: 32,000 columns of 4,096; rank 16 on queries and values has 8,388,608 weights."""
    lora = {"method": "lora", "framework": "peft", "sharding": ""}
    jobs = jobs_of(
        lora, lora | {"adapter_targets": "q v head"}, lora | {"adapter_targets": "embedding head"}
    ).of_table.job
    assert list(jobs.n_param_trained) == [8388608, 8388608 + 32000 * 4096, 2 * 32000 * 4096]
    states = jobs.n_param_trained * (jobs.weight_byte + jobs.gradient_byte + jobs.optimizer_byte)
    assert list(states) == pytest.approx([16 * 8388608, 16 * 8388608 + 8 * 32000 * 4096, 16 * 32000 * 4096])


@pytest.mark.parametrize(
    ("change", "byte"),
    [
        ({"optimizer": "AdamW"}, 12), ({"optimizer": "adamw-8bit"}, 6), ({"optimizer": "sgd"}, 4),
        ({"optimizer": "adafactor"}, 4), ({"optimizer": "lion"}, 8), ({"state_precision": "bf16"}, 4 + 4),
        ({"state_precision": "int8"}, 4 + 2), ({"optimizer": "adamw4bit"}, 4 + 1),
        ({"optimizer": "adamw8bit", "state_precision": "fp32"}, 12),
        ({"optimizer": "lion", "state_precision": "bf16"}, 6),
        ({"method": "lora", "state_precision": "int8"}, 2), ({"method": "qlora", "optimizer": "paged_adamw_8bit"}, 2),
    ],
)  # fmt: skip
def test_moments_of_optimizers_in_the_stated_precision(change: dict[str, Any], byte: float) -> None:
    assert jobs_of(change).job.optimizer_byte[0] == byte


@pytest.mark.parametrize(
    ("framework", "stated", "byte"),
    [
        ("megatron-lm", "bf16", 2), ("megatron-lm", "fp32", 4), ("megatron-bridge", "fp32", 4),
        ("nanotron", "bf16", 4), ("torchtitan", "bf16", 4),
    ],
)  # fmt: skip
def test_gradients_in_the_stated_precision(framework: str, stated: str, byte: float) -> None:
    """nanotron keeps a copy of 16 bits beside them; torch's FSDP keeps them in the precision of the shards."""
    job = jobs_of({"framework": framework, "gradient_precision": stated}).job
    assert job.gradient_byte[0] == byte
    assert job.reduced_byte[0] == {"bf16": 2, "fp32": 4}[stated]


def test_adapters() -> None:
    jobs = jobs_of(
        {"method": "lora", "adapter_rank": 8, "adapter_targets": "q k v o"},
        {"method": "lora", "adapter": "lora-fa", "adapter_rank": 8, "adapter_targets": "q k v o"},
        {"method": "qlora", "n_param_trained": 1e6},
        {"method": "full"},
    ).job
    assert list(jobs.n_param_trained) == [32 * 8 * 4 * 8192, 32 * 8 * 4 * 4096, 1e6, 0]
    assert list(jobs.is_frozen) == [1, 1, 1, 0]
    assert list(jobs.is_quantised) == [0, 0, 1, 0]
    assert jobs.frozen_byte[2] < 0.6


def test_hardware_as_the_run_states_it() -> None:
    h = jobs_of(
        {},
        {"power_limit_w": 200.0},
        {"n_accelerator_per_node": 4},
        {"n_accelerator": 16, "all_reduce_bandwidth_byte_per_s": 80e9},
        {"node_bandwidth_byte_per_s": 100e9},
    ).hardware
    assert h.flop_per_s[1] < h.flop_per_s[0]
    assert h.domain_size[2] == 4
    assert h.network_byte_per_s[3] == pytest.approx(10e9)
    assert h.network_byte_per_s[4] == pytest.approx(12.5e9)


def test_tensor_parallelism_across_nodes_waits_for_each_hop() -> None:
    change = {"tp": 8, "n_accelerator": 16}
    runs = runs_of(change, {**change, "n_accelerator_per_node": 4}, {**change, "n_accelerator_per_node": 2})
    inside, two, four = tensor_latency_s(runs, DEFAULT_TRAINING_COEFFICIENTS)
    assert inside == 0
    assert four == 2 * two


def test_ratios_of_frameworks_and_families_scale_compute() -> None:
    runs = runs_of({})
    c = DEFAULT_TRAINING_COEFFICIENTS
    slower = c.with_values(megatron=2.0)
    assert estimate_training(runs, slower).compute_s[0] == pytest.approx(
        2 * estimate_training(runs, c).compute_s[0], rel=0.1
    )
    assert estimate_training(runs, c.with_values(Ampere=1.5)).total_s[0] > estimate_training(runs, c).total_s[0]
    assert estimate_training(runs, c.with_values(Hopper=1.5)).total_s[0] == estimate_training(runs, c).total_s[0]


def test_names_are_in_order() -> None:
    assert tuple(FRAMEWORK_PRIORS) == tuple(FRAMEWORKS)
    assert len(set(TRAINING_NAMES)) == len(TRAINING_NAMES)
    assert set(MEMORY_NAMES) <= set(TRAINING_NAMES)


def test_megatron_keeps_frozen_weights_in_8_bits() -> None:
    lora = {"method": "lora", "framework": "nemo", "compute_precision": "fp8", **H100}
    runs = runs_of(lora, lora | {"compute_precision": "bf16"}, lora | {"framework": "peft"})
    assert list(runs.job.frozen_byte) == [1, 2, 2]
    assert list(runs.job.is_quantised) == [0, 0, 0]


def test_galore_keeps_no_moments() -> None:
    full = {"method": "full", "framework": "litgpt", "sharding": "ddp", "weight_precision": "bf16"}
    assert list(runs_of(full, full | {"optimizer": "galore-adamw"}).job.optimizer_byte) == [4, 0]
