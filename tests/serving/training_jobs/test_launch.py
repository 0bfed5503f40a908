from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.serving.training_jobs.candidates import Hardware, TrainingDemand
from roofcast.serving.training_jobs.launch import launch_arguments
from roofcast.serving.training_jobs.response import TrainingPlanResponse

TWO_NODES = Hardware("nvidia-h100-sxm-80gb", 8, 2)


def a_plan(framework: str, **changes: Any) -> TrainingPlanResponse:
    plan = {
        "framework": framework, "compute_precision": "bf16", "tp": 1, "pp": 1, "vp": 1, "cp": 1, "dp": 16, "ep": 1,
        "sharding": "fsdp", "recomputation": "full", "sequence_parallel": False, "n_micro_batch_sequence": 2.0,
        "n_gradient_accumulation": 4.0, "n_global_batch_sequence": 128.0,
    }  # fmt: skip
    return TrainingPlanResponse(**plan | changes)


def a_demand(method: str = "full", model: str = "meta-llama/Llama-3.1-8B") -> TrainingDemand:
    spec = load_catalog().model(model)
    return TrainingDemand(spec, method, 1e9, 4096, 128, np.inf, np.inf, np.nan, "", "", ())


def lines(text: str) -> list[str]:
    return [line.strip(" \\") for line in text.splitlines()]


def test_shards_start_with_torchrun_and_accelerate() -> None:
    launch = launch_arguments(a_plan("torchtitan"), TWO_NODES, a_demand())
    assert set(launch) == {"torchrun", "accelerate"}
    titan = lines(launch["torchrun"])
    assert titan[0].startswith("torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d")
    for expected in (
        "--training.local_batch_size 2", "--training.global_batch_size 128", "--training.steps 1908",
        "--parallelism.data_parallel_shard_degree 16", "--activation_checkpoint.mode full",
    ):  # fmt: skip
        assert expected in titan
    for expected in ("distributed_type: FSDP", "num_processes: 16", "fsdp_activation_checkpointing: true"):
        assert expected in lines(launch["accelerate"])


def test_hybrid_shards_are_of_one_node() -> None:
    text = launch_arguments(a_plan("torchtitan", sharding="hsdp"), TWO_NODES, a_demand())["torchrun"]
    assert "--parallelism.data_parallel_shard_degree 8" in lines(text)
    assert "--parallelism.data_parallel_replicate_degree 2" in lines(text)


@pytest.mark.parametrize(
    ("recomputation", "expected"), [("full", "--recompute-granularity full"), ("selective", "--recompute-modules")]
)
def test_megatron_has_model_and_plan(recomputation: str, expected: str) -> None:
    plan = a_plan(
        "megatron-lm", tp=2, pp=4, vp=2, dp=2, sharding="zero1", recomputation=recomputation, sequence_parallel=True
    )
    (text,) = launch_arguments(plan, TWO_NODES, a_demand()).values()
    for part in (
        "--num-layers 32", "--num-query-groups 8", "--tensor-model-parallel-size 2", "--sequence-parallel",
        "--num-layers-per-virtual-pipeline-stage 4", "--micro-batch-size 2", "--global-batch-size 128", expected,
    ):  # fmt: skip
        assert part in text


def test_quantised_lora_on_one_accelerator_needs_no_shards() -> None:
    plan = a_plan("transformers", dp=1, sharding="ddp", recomputation="none")
    (text,) = launch_arguments(plan, Hardware("nvidia-rtx-4090-24gb", 1, 1), a_demand("qlora")).values()
    assert "distributed_type: 'NO'" in text
    assert "fsdp_config" not in text
    for part in (
        "--use_peft",
        "--lora_r 16",
        "--lora_target_modules q_proj v_proj",
        "--load_in_4bit",
        "--dtype bfloat16",
    ):
        assert part in lines(text)


def test_other_frameworks_have_none() -> None:
    assert launch_arguments(a_plan("maxtext"), TWO_NODES, a_demand()) == {}


def test_experts_are_not_split_by_tensor_parallelism() -> None:
    plan = a_plan("megatron-lm", tp=2, ep=4, dp=8, sharding="zero1")
    (text,) = launch_arguments(plan, TWO_NODES, a_demand(model="mistralai/Mixtral-8x7B-v0.1")).values()
    assert "--expert-tensor-parallel-size 1" in lines(text)


@pytest.mark.parametrize(
    ("framework", "method", "launchers"),
    [
        ("megatron-lm", "lora", []),
        ("torchtitan", "lora", ["accelerate"]),
        ("transformers", "qlora", ["accelerate"]),
        ("transformers", "adapter", []),
    ],
)
def test_adapters_never_start_a_pretraining(framework: str, method: str, launchers: list[str]) -> None:
    assert list(launch_arguments(a_plan(framework), TWO_NODES, a_demand(method))) == launchers
