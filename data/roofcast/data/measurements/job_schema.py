"""Columns of the training table: one row per training or fine-tuning run of one configuration.

Batches are in sequences, throughput in tokens of the whole job, FLOP/s and memory per accelerator. A token counts
once per pass over it; padding of measured runs counts if the source counts it, so that rates of padded runs are not
judged, see `packing`.
"""

from __future__ import annotations

from typing import Final

from roofcast.data.measurements.column_types import number, precision, required_number, required_text, text
from roofcast.data.measurements.schema import STATUSES, SWITCHES

METHODS: Final = ("pretrain", "full", "lora", "qlora", "adapter")
"""Pretraining; fine-tuning of all weights, with LoRA, with LoRA on quantised weights, or with another adapter."""

SHARDINGS: Final = ("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp")
RECOMPUTATIONS: Final = ("none", "selective", "full")
OFFLOADS: Final = ("none", "optimizer", "parameters", "activations", "optimizer+parameters")
PACKINGS: Final = ("packed", "padded")
NETWORKS: Final = ("infiniband", "roce", "ethernet", "efa", "slingshot", "nvlink", "ici")
SCHEDULES: Final = ("gpipe", "1f1b", "interleaved", "zero_bubble")
LOSSES: Final = ("full", "chunked", "fused")
MEMORY_KINDS: Final = ("allocated", "reserved", "device")
ADAPTER_TARGETS: Final = ("q", "k", "v", "o", "gate", "up", "down", "embedding", "head")
"""Projections that an adapter changes, and embedding and head, which are trained in full beside it; a cell names some
of them, separated by spaces."""

_MAX_S: Final = 1e7
_MAX_COUNT: Final = 1_000_000
_MAX_FLOP_PER_S: Final = 1e17

TRAINING_CONFIG_COLUMNS: Final = {
    "model": required_text(meaning="Catalogue name, path of a config.json, or owner/name on the Hugging Face hub"),
    "accelerator": required_text(meaning="Catalogue name"),
    "n_accelerator": required_number(1, _MAX_COUNT, "Accelerators of the run; 1 by default"),
    "n_node": number(1, _MAX_COUNT, "Hosts of the run"),
    "n_accelerator_per_node": number(1, _MAX_COUNT, "Accelerators of a host"),
    "network": text(*NETWORKS, meaning="Network between hosts"),
    "node_bandwidth_byte_per_s": number(1e6, 1e14, "Nominal network bandwidth of a host and direction"),
    "all_reduce_bandwidth_byte_per_s": number(1e6, 1e14, "Measured bus bandwidth of an all-reduce"),
    "link_bandwidth_byte_per_s": number(1e6, 1e14, "Link bandwidth in place of the data sheet's, one direction"),
    "power_limit_w": number(
        1, 1e5, "Power limit of one accelerator: a quarter of its design power to one and a half of it"
    ),
    "framework": text(meaning="Such as torchtitan, megatron-lm, transformers or deepspeed"),
    "framework_version": text(meaning="Version of the framework"),
    "method": required_text(*METHODS, meaning="How it is trained, pretrain by default"),
    "adapter": text(meaning="lora-fa, bottleneck or prompt-tuning; other variants count as LoRA"),
    "adapter_rank": number(1, 100_000, "Rank of LoRA, 16 by default; width or virtual tokens of other adapters"),
    "adapter_targets": text(
        meaning="Projections that adapters change, such as 'q k v o'; embedding and head are trained in full. With "
        "latent attention k or v are both projections that give them"
    ),
    "n_param_trained": number(1, 1e14, "Trained parameters, if not those of the adapter's rank"),
    "weight_precision": precision("Precision of the weights in memory"),
    "compute_precision": precision("Precision of the products"),
    "precision_recipe": text(meaning="Scaling of that precision, such as mxfp8"),
    "gradient_precision": precision("Precision in which gradients accumulate and are reduced"),
    "state_precision": precision("Precision of the optimizer's moments, by default the optimizer's"),
    "tp": number(1, _MAX_COUNT, "Tensor parallelism"),
    "sequence_parallel": text(*SWITCHES, meaning="Norms split over the tensor-parallel ranks"),
    "pp": number(1, _MAX_COUNT, "Pipeline parallelism"),
    "vp": number(1, _MAX_COUNT, "Model chunks of a pipeline stage"),
    "pipeline_schedule": text(
        *SCHEDULES, meaning="Schedule of the pipeline, of which the estimate takes the last as 1f1b"
    ),
    "cp": number(1, _MAX_COUNT, "Context parallelism"),
    "dp": number(1, _MAX_COUNT, "Data-parallel replicas"),
    "ep": number(1, _MAX_COUNT, "Expert parallelism"),
    "sharding": text(*SHARDINGS, meaning="Sharding of the states over the replicas"),
    "recomputation": text(*RECOMPUTATIONS, meaning="Recomputation of activations"),
    "recomputed_layer_ratio": number(0, 1, "Share of the layers that recompute"),
    "offload": text(*OFFLOADS, meaning="What the host's memory holds"),
    "n_micro_batch_sequence": number(1, _MAX_COUNT, "Sequences of a micro-batch"),
    "n_global_batch_sequence": number(1, 1e8, "Sequences of an optimizer step"),
    "n_token_per_sequence": number(1, 1e8, "Tokens of a sequence; 2048 by default"),
    "n_gradient_accumulation": number(1, _MAX_COUNT, "Micro-batches of a replica in a step"),
    "optimizer": text(meaning="Such as adamw or adamw-8bit"),
    "packing": text(*PACKINGS, meaning="Sequences; half of padded ones is taken for padding"),
    "flash_attention": text(*SWITCHES, meaning="Attention without stored scores"),
    "loss": text(*LOSSES, meaning="Loss, of which a chunked or fused one never holds all logits"),
    "compiled": text(*SWITCHES, meaning="Compiled kernels"),
}
"""Model, hardware, method and configuration. Replicas are sharded or not; `n_gradient_accumulation` counts the micro
batches of a pipeline too.

`all_reduce_bandwidth_byte_per_s` is over the accelerators of the run, measured by the run itself;
`link_bandwidth_byte_per_s` is that within a node, per accelerator. Throughput does not count the padding of
``padded`` sequences, whose `n_token_per_sequence` is the longest."""

TRAINING_OUTCOME_COLUMNS: Final = {
    "step_time_s": number(1e-6, _MAX_S),
    "throughput_token_per_s": number(1e-6, 1e12),
    "model_flop_per_s_per_accelerator": number(1e6, _MAX_FLOP_PER_S),
    "hardware_flop_per_s_per_accelerator": number(1e6, _MAX_FLOP_PER_S),
    "mfu_ratio": number(1e-6, 1.0),
    "hfu_ratio": number(1e-6, 1.0),
    "memory_byte_per_accelerator": number(1e6, 1e13),
    "duration_s": number(1e-3, 1e9),
}
"""Observed outcomes. A step processes one global batch; throughput is that of the whole job. Hardware FLOP include
recomputation, model FLOP do not; the ratios are over the peak that the source states. Memory is the largest peak of
an accelerator that the source reports; see `memory_kind`. `duration_s` is the time of the whole run."""

TRAINING_CONTEXT_COLUMNS: Final = {
    "status": required_text(*STATUSES),
    "memory_kind": text(*MEMORY_KINDS),
    "date": text(),
    "software": text(),
    "derived": text(),
    "campaign": required_text(),
    "stack": text(),
    "note": text(),
}
"""Context of a run. `memory_kind` tells how memory was read: allocated tensors, memory that the framework's allocator
reserved, or memory in use on the device. `derived` names the outcomes that were computed from others, separated by
spaces; `date` is the day of the measurement, or the day of its first publication in the source. `stack` names who
built, configured and measured: ``owner`` or ``owner/part``; stacks of one owner are held out together."""

TRAINING_SCHEMA: Final = {**TRAINING_CONFIG_COLUMNS, **TRAINING_OUTCOME_COLUMNS, **TRAINING_CONTEXT_COLUMNS}
TRAINING_COLUMNS: Final = tuple(TRAINING_SCHEMA)

TRAINING_WHOLE_COLUMNS: Final = (
    "n_accelerator", "n_node", "n_accelerator_per_node", "adapter_rank", "n_param_trained", "tp", "pp", "vp", "cp",
    "dp", "ep", "n_micro_batch_sequence", "n_gradient_accumulation", "n_token_per_sequence",
)  # fmt: skip

TRAINING_DEFAULTS: Final[dict[str, object]] = {
    **dict.fromkeys((name for name, column in TRAINING_SCHEMA.items() if not column.is_nullable), ""),
    "method": "pretrain",
    "status": "ok",
}

TRAINING_KEY_COLUMNS: Final = (
    "model", "accelerator", "n_accelerator", "method", "compute_precision", "precision_recipe",
    "n_token_per_sequence", "n_global_batch_sequence", "n_micro_batch_sequence", "tp", "pp", "cp", "ep", "date",
    "note", "step_time_s", "throughput_token_per_s", "memory_byte_per_accelerator",
)  # fmt: skip
"""Order of the rows of a campaign."""
