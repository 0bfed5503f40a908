"""Launch arguments of a plan: torchrun with FSDP2, accelerate, Megatron-LM."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from typing import Any, Final

from roofcast.data.specs import ModelSpec
from roofcast.features.training.run_table import FROZEN_METHODS
from roofcast.serving.training_jobs.candidates import Hardware, TrainingDemand
from roofcast.serving.training_jobs.conventions import ADAPTERS, FSDP, MEGATRON
from roofcast.serving.training_jobs.response import TrainingPlanResponse

ADDRESS: Final = "$HEAD_NODE:29500"
"""Where the nodes of a run meet: the reader sets the variable."""

SHARD_PER_NODE: Final = 8
MODULES: Final = {
    "q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj", "gate": "gate_proj", "up": "up_proj",
    "down": "down_proj",
}  # fmt: skip
"""Modules of LoRA's targets in models like Llama."""

Arguments = list[tuple[str, Any]]
"""Names with their values; None for switches."""


def launch_arguments(plan: TrainingPlanResponse, hardware: Hardware, demand: TrainingDemand) -> dict[str, str]:
    """Return the launch arguments of a plan by launcher: those on one node, to be run on each.

    Megatron-LM's and torchtitan's own scripts pretrain, so that methods with adapters have accelerate alone, and
    adapters other than LoRA nothing.

    References
    ----------
    torchtitan, ``torchtitan/config/configs.py`` and ``run_train.sh``; Hugging Face's pages on accelerate's
    configuration, FSDP2 and TRL's command line; Megatron-LM, ``megatron/training/arguments.py``.
    """
    is_frozen = demand.method in FROZEN_METHODS
    if demand.method == "adapter" or (is_frozen and plan.framework == MEGATRON):
        return {}
    if plan.framework == MEGATRON:
        return {"megatron-lm": _megatron(plan, hardware, demand)}
    if plan.framework == FSDP:
        torchrun = {} if is_frozen else {"torchrun": _torchtitan(plan, hardware, demand)}
        return torchrun | {"accelerate": _accelerate(plan, hardware, demand)}
    if plan.framework == ADAPTERS:
        return {"accelerate": _accelerate(plan, hardware, demand)}
    return {}


def _accelerate(plan: TrainingPlanResponse, hardware: Hardware, demand: TrainingDemand) -> str:
    return f"{_accelerate_config(plan, hardware)}\n{_trl(plan, demand)}"


def _command(head: str, arguments: Iterable[tuple[str, Any]]) -> str:
    parts = [f"--{name}" if value is None else f"--{name} {value}" for name, value in arguments]
    return " \\\n  ".join([head, *parts]) + "\n"


def _torchrun(hardware: Hardware) -> str:
    nodes = f"--nnodes {hardware.n_node} --nproc-per-node {hardware.n_per_node}"
    place = f"--rdzv-backend c10d --rdzv-endpoint {ADDRESS}" if hardware.n_node > 1 else "--standalone"
    return f"torchrun {nodes} {place}"


def _torchtitan(plan: TrainingPlanResponse, hardware: Hardware, demand: TrainingDemand) -> str:
    shard = min(SHARD_PER_NODE, plan.dp) if plan.sharding == "hsdp" else plan.dp
    arguments: Arguments = [
        ("training.seq_len", demand.n_token),
        ("training.local_batch_size", f"{plan.n_micro_batch_sequence:g}"),
        ("training.global_batch_size", f"{plan.n_global_batch_sequence:g}"),
        ("training.steps", demand.n_step),
        ("parallelism.data_parallel_shard_degree", shard),
        ("parallelism.data_parallel_replicate_degree", plan.dp // shard),
    ]
    degrees = {"tensor": plan.tp, "pipeline": plan.pp, "context": plan.cp, "expert": plan.ep}
    arguments += [(f"parallelism.{name}_parallel_degree", n) for name, n in degrees.items() if n > 1]
    arguments += [("activation_checkpoint.mode", plan.recomputation), ("compile.enable", None)]
    return _command(f"{_torchrun(hardware)} -m torchtitan.train", arguments)


def _accelerate_config(plan: TrainingPlanResponse, hardware: Hardware) -> str:
    """Return a configuration of accelerate, as a shell document."""
    n, is_sharded = hardware.n_accelerator, plan.sharding in {"fsdp", "hsdp", "zero3"}
    kind = "FSDP" if is_sharded and n > 1 else ("MULTI_GPU" if n > 1 else "'NO'")
    lines = [
        "compute_environment: LOCAL_MACHINE",
        f"distributed_type: {kind}",
        f"mixed_precision: {_mixed(plan)}",
        f"num_machines: {hardware.n_node}",
        f"num_processes: {n}",
    ]
    if hardware.n_node > 1:
        lines += ["machine_rank: $NODE_RANK", "main_process_ip: $HEAD_NODE", "main_process_port: 29500"]
    if kind == "FSDP":
        lines += [
            "fsdp_config:",
            "  fsdp_version: 2",
            "  fsdp_reshard_after_forward: true",
            "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            f"  fsdp_activation_checkpointing: {str(plan.recomputation != 'none').lower()}",
            "  fsdp_state_dict_type: SHARDED_STATE_DICT",
        ]
    return "\n".join(["cat > accelerate.yaml <<END", *lines, "END"])


def _mixed(plan: TrainingPlanResponse) -> str:
    return plan.compute_precision if plan.compute_precision in {"bf16", "fp16", "fp8"} else "bf16"


def _trl(plan: TrainingPlanResponse, demand: TrainingDemand) -> str:
    arguments: Arguments = [
        ("model_name_or_path", shlex.quote(demand.model.id)),
        ("dataset_name", "$DATASET"),
        ("packing", None),
        ("max_length", demand.n_token),
        ("per_device_train_batch_size", f"{plan.n_micro_batch_sequence:g}"),
        ("gradient_accumulation_steps", f"{plan.n_gradient_accumulation:g}"),
        ("max_steps", demand.n_step),
    ]
    if plan.compute_precision != "fp16":  # TRL loads 32-bit weights otherwise
        arguments.append(("dtype", "bfloat16"))
    is_sharded = plan.sharding in {"fsdp", "hsdp", "zero3"} and plan.dp > 1
    recomputes = plan.recomputation != "none" and not is_sharded  # accelerate does it for shards
    arguments.append(("gradient_checkpointing", str(recomputes).lower()))
    if demand.method in FROZEN_METHODS:
        targets = demand.adapter_targets.split() or ["q", "v"]
        rank = 16 if math.isnan(demand.adapter_rank) else int(demand.adapter_rank)
        arguments += [("use_peft", None), ("lora_r", rank)]
        arguments.append(("lora_target_modules", " ".join(MODULES[target] for target in targets)))
    if demand.method == "qlora":
        arguments += [("load_in_4bit", None), ("bnb_4bit_quant_type", "nf4")]
    return _command("accelerate launch --config_file accelerate.yaml -m trl.scripts.sft", arguments)


def _megatron(plan: TrainingPlanResponse, hardware: Hardware, demand: TrainingDemand) -> str:
    arguments: Arguments = [
        *_architecture(demand.model),
        ("seq-length", demand.n_token),
        ("max-position-embeddings", demand.n_token),
        ("micro-batch-size", f"{plan.n_micro_batch_sequence:g}"),
        ("global-batch-size", f"{plan.n_global_batch_sequence:g}"),
        ("train-iters", demand.n_step),
        ("tensor-model-parallel-size", plan.tp),
        ("pipeline-model-parallel-size", plan.pp),
        ("context-parallel-size", plan.cp),
        ("use-distributed-optimizer", None),
        ("overlap-grad-reduce", None),
        ("overlap-param-gather", None),
        ("attention-backend", "flash"),
        ("fp16" if plan.compute_precision == "fp16" else "bf16", None),
    ]
    if plan.vp > 1:
        arguments.append(("num-layers-per-virtual-pipeline-stage", demand.model.n_layer // (plan.pp * plan.vp)))
    if plan.ep > 1:
        arguments += [("expert-model-parallel-size", plan.ep), ("expert-tensor-parallel-size", 1)]
    if plan.sequence_parallel:
        arguments.append(("sequence-parallel", None))
    if plan.compute_precision == "fp8":
        arguments.append(("fp8-format", "hybrid"))
    if plan.recomputation == "full":
        arguments += [("recompute-granularity", "full"), ("recompute-method", "uniform"), ("recompute-num-layers", 1)]
    elif plan.recomputation == "selective":
        arguments.append(("recompute-granularity", "selective"))
        arguments.append(("recompute-modules", "layernorm mlp" if not demand.model.n_expert else "layernorm moe_act"))
    return _command(f"{_torchrun(hardware)} pretrain_gpt.py", arguments)


def _architecture(model: ModelSpec) -> Arguments:
    arguments: Arguments = [
        ("num-layers", model.n_layer),
        ("hidden-size", model.hidden_size),
        ("ffn-hidden-size", model.intermediate_size or model.moe_intermediate_size),
        ("num-attention-heads", model.n_head),
        ("kv-channels", model.head_dim),
    ]
    if model.n_kv_head < model.n_head:
        arguments += [("group-query-attention", None), ("num-query-groups", model.n_kv_head)]
    if model.mlp_gated:
        arguments.append(("swiglu", None))
    if not model.tie_word_embeddings:
        arguments.append(("untie-embeddings-and-output-weights", None))
    if model.n_expert:
        arguments += [
            ("num-experts", model.n_expert),
            ("moe-ffn-hidden-size", model.moe_intermediate_size),
            ("moe-router-topk", model.n_expert_per_token),
            ("moe-grouped-gemm", None),
        ]
    return arguments
