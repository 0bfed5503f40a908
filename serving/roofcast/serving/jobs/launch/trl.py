"""Launch command of accelerate, with its configuration, that fine-tunes with TRL and PEFT."""

import math
import shlex
from collections.abc import Iterator
from typing import Final

from roofcast.features.jobs.methods import DEFAULT_RANK, DEFAULT_TARGETS
from roofcast.features.jobs.run_table import FROZEN_METHODS
from roofcast.serving.jobs.job_messages import JobPlanResponse
from roofcast.serving.jobs.launch.shell import (
    LEARNING_RATE,
    LOGIN,
    NODES,
    OUTPUT,
    PORT,
    Arguments,
    command,
    here_document,
    subshell,
)
from roofcast.serving.jobs.rows import FSDP
from roofcast.serving.jobs.search.candidates import Hardware, JobDemand

PACKAGES: Final = ("trl==1.16.0", "transformers==5.23.0", "accelerate==1.15.0")
"""Versions whose arguments the command has."""

ADAPTER_PACKAGE: Final = "peft==0.21.2"
QUANTISATION_PACKAGE: Final = "bitsandbytes==0.50.2"
ATTENTION_PACKAGE: Final = "flash-attn==2.8.3.post2"
"""The latest on PyPI on 2026-11-23; TRL 1.16.0 asks for peft 0.13.0 and bitsandbytes 0.45.1 at least."""

BEFORE_AMPERE: Final = ("nvidia-p100", "nvidia-v100", "nvidia-t4", "nvidia-rtx-20")
"""Beginnings of the ids of accelerators without FlashAttention-2, which supports Ampere, Ada and Hopper: README of
``flash-attn``."""

PRECISIONS: Final = ("bf16", "fp16")
SHARDED: Final = ("fsdp", "hsdp", "zero3")
MLP_TARGETS: Final = ("gate", "up", "down")
LLAMA_LIKE: Final = (
    "llama", "mistral", "ministral3", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2", "granite",
    "seed_oss",
)  # fmt: skip
"""Types whose layers have ``q_proj`` to ``down_proj``: transformers 5.23, ``models/*/modeling_*.py``."""


def trl_problem(plan: JobPlanResponse, _: Hardware, demand: JobDemand) -> str:
    """Return why accelerate with TRL cannot run a plan; blank if it can."""
    precision, sharding = plan.compute_precision, plan.sharding
    problems = {
        "starts TRL, which trains checkpoints further": demand.method == "pretrain",
        f"multiplies in {' or '.join(PRECISIONS)} with TRL, not in {precision}": precision not in PRECISIONS,
        "splits no sequences, experts, layers or heads with TRL": plan.cp * plan.ep * plan.tp * plan.pp > 1,
        "recomputes whole layers or nothing with TRL": plan.recomputation == "selective",
        f"shards as {', '.join(SHARDED)} here, not as {sharding}": sharding not in (*SHARDED, "ddp"),
    }
    first = next((reason for reason, holds in problems.items() if holds), "")
    return first or (_adapter_problem(demand) if demand.method in FROZEN_METHODS else "")


def _adapter_problem(demand: JobDemand) -> str:
    model, targets = demand.model, lora_targets(demand)
    if model.model_type not in LLAMA_LIKE:
        return f"needs the names of the projections, which are not known of models of type {model.model_type}"
    if model.n_expert and set(targets) & set(MLP_TARGETS):
        return "has no names of the experts' projections for PEFT: Transformers stores them together"
    return ""


def lora_targets(demand: JobDemand) -> list[str]:
    """Return the projections that adapters change."""
    return demand.adapter_targets.split() or list(DEFAULT_TARGETS)


def trl_command(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand) -> str:
    """Return the configuration of accelerate and the command that fine-tunes.

    References
    ----------
    accelerate 1.15.0: ``commands/config/cluster.py`` and ``commands/launch.py``; TRL 1.16.0: ``scripts/sft.py``,
    ``trainer/sft_config.py`` (``activation_offloading``; ``loss_type``; ``padding_free``, which the default packing
    implies: FlashAttention 2 or 3 alone) and
    ``trainer/model_config.py`` (``attn_implementation``); Transformers 5.23: ``training_args.py``
    (``activation_checkpointing``).
    """
    names = {
        "DATA": "name or folder of a data set with a column text or messages",
        **OUTPUT,
        **LEARNING_RATE,
        **(NODES if hardware.n_node > 1 else {}),
    }
    head = "accelerate launch --config_file accelerate.yaml -m trl.scripts.sft"
    config = here_document("accelerate.yaml", _config_lines(plan, hardware))
    return subshell(names, config + command(head, _arguments(plan, hardware, demand)), _remarks(hardware, demand))


def _is_sharded(plan: JobPlanResponse) -> bool:
    return plan.sharding in SHARDED and plan.dp > 1


def _config_lines(plan: JobPlanResponse, hardware: Hardware) -> list[str]:
    n = hardware.n_accelerator
    kind = "FSDP" if _is_sharded(plan) else ("MULTI_GPU" if n > 1 else "'NO'")
    lines = [
        "compute_environment: LOCAL_MACHINE",
        f"distributed_type: {kind}",
        f"mixed_precision: {plan.compute_precision}",
        f"num_machines: {hardware.n_node}",
        f"num_processes: {n}",
        "main_training_function: main",
    ]
    if hardware.n_node > 1:
        lines += ["machine_rank: $NODE_RANK", "main_process_ip: $HEAD_NODE", f"main_process_port: {PORT}"]
        lines.append("rdzv_backend: static")
    if kind == "FSDP":
        lines += [
            "fsdp_config:",
            "  fsdp_version: 2",
            "  fsdp_reshard_after_forward: true",
            f"  fsdp_offload_params: {str('parameters' in plan.offload).lower()}",
            "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            f"  fsdp_activation_checkpointing: {str(plan.recomputation == 'full').lower()}",
            "  fsdp_cpu_ram_efficient_loading: true",
            "  fsdp_state_dict_type: SHARDED_STATE_DICT",
        ]
    if kind == "FSDP" and plan.sharding == "hsdp":
        lines += [
            "parallelism_config:",
            f"  parallelism_config_dp_replicate_size: {hardware.n_node}",
            f"  parallelism_config_dp_shard_size: {hardware.n_per_node}",
            "  parallelism_config_tp_size: 1",
            "  parallelism_config_cp_size: 1",
        ]
    return lines


def _remarks(hardware: Hardware, demand: JobDemand) -> Iterator[str]:
    packages = [*PACKAGES, *([ADAPTER_PACKAGE] if demand.method in FROZEN_METHODS else [])]
    packages += [QUANTISATION_PACKAGE] if demand.method == "qlora" else []
    yield f"pip install {' '.join(packages)}"
    if _has_flash_attention(hardware):
        yield f"pip install {ATTENTION_PACKAGE} --no-build-isolation"
    yield LOGIN


def _has_flash_attention(hardware: Hardware) -> bool:
    return not hardware.accelerator.startswith(BEFORE_AMPERE)


def _arguments(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand) -> Arguments:
    is_frozen = demand.method in FROZEN_METHODS
    is_half = plan.compute_precision == "fp16"
    yield "model_name_or_path", shlex.quote(demand.model.id)
    yield "dataset_name", '"$DATA"'
    yield "output_dir", '"$OUT"'
    yield "learning_rate", "$LEARNING_RATE"
    yield "optim", "adamw_torch_fused"
    yield "packing", None
    if _has_flash_attention(hardware):
        yield "attn_implementation", "flash_attention_2"  # the default packing keeps sequences apart by it alone
    else:
        yield "attn_implementation", "sdpa"
        yield "packing_strategy", "wrapped"
    yield "max_length", demand.n_token
    yield "per_device_train_batch_size", f"{plan.n_micro_batch_sequence:g}"
    yield "gradient_accumulation_steps", f"{plan.n_gradient_accumulation:g}"
    yield "max_steps", demand.n_step
    yield ("fp16" if is_half else "bf16"), "true"
    yield ("bf16" if is_half else "fp16"), "false"
    half = "float16" if is_half else "bfloat16"
    yield "dtype", half if is_frozen or plan.framework != FSDP else "float32"  # as the plan's memory counts them
    recomputes = plan.recomputation == "full" and not _is_sharded(plan)  # accelerate does it for shards
    # TRL's default, True, is that of the deprecated name, which counts only where this one is left out
    yield "activation_checkpointing", str(recomputes).lower()
    if plan.offload == "activations":
        yield "activation_offloading", "true"
    if is_frozen:
        yield "use_peft", None
        yield "lora_r", f"{DEFAULT_RANK if math.isnan(demand.adapter_rank) else demand.adapter_rank:g}"
        yield "lora_target_modules", " ".join(f"{target}_proj" for target in lora_targets(demand))
    if demand.method == "qlora":
        yield "load_in_4bit", None
        yield "bnb_4bit_quant_type", "nf4"
        if _is_sharded(plan):
            yield "bnb_4bit_quant_storage", half
