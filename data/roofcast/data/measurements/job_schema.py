"""Columns of the training table: one row per training or fine-tuning run of one configuration.

Batches are in sequences, throughput in tokens of the whole job, FLOP/s and memory per accelerator. A token counts
once per pass over it; padding of measured runs counts if the source counts it, so that rates of padded runs are not
judged, see `packing`.
"""

from __future__ import annotations

from typing import Final

from roofcast.data.measurements.column_types import number, required_number, required_text, text
from roofcast.data.measurements.schema import STATUSES, SWITCHES
from roofcast.data.specs import PRECISIONS

METHODS: Final = ("pretrain", "full", "lora", "qlora", "adapter")
"""Pretraining; fine-tuning of all weights, with LoRA, with LoRA on quantised weights, or with another adapter."""

SHARDINGS: Final = ("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp")
RECOMPUTATIONS: Final = ("none", "selective", "full")
OFFLOADS: Final = ("none", "optimizer", "parameters", "activations", "optimizer+parameters")
PACKINGS: Final = ("packed", "padded")
NETWORKS: Final = ("infiniband", "roce", "ethernet", "efa", "slingshot", "nvlink", "ici")
SCHEDULES: Final = ("gpipe", "1f1b", "interleaved", "zero_bubble")
LOSSES: Final = ("full", "chunked")
MEMORY_KINDS: Final = ("allocated", "reserved", "device")
ADAPTER_TARGETS: Final = ("q", "k", "v", "o", "gate", "up", "down", "embedding", "head")
"""Projections that an adapter changes, and embedding and head, which are trained in full beside it; a cell names some
of them, separated by spaces."""

_MAX_S: Final = 1e7
_MAX_COUNT: Final = 1_000_000
_MAX_FLOP_PER_S: Final = 1e17

TRAINING_CONFIG_COLUMNS: Final = {
    "model": required_text(),
    "accelerator": required_text(),
    "n_accelerator": required_number(1, _MAX_COUNT),
    "n_node": number(1, _MAX_COUNT),
    "n_accelerator_per_node": number(1, _MAX_COUNT),
    "network": text(*NETWORKS),
    "node_bandwidth_byte_per_s": number(1e6, 1e14),
    "all_reduce_bandwidth_byte_per_s": number(1e6, 1e14),
    "link_bandwidth_byte_per_s": number(1e6, 1e14),
    "power_limit_w": number(1, 1e5),
    "framework": text(),
    "framework_version": text(),
    "method": required_text(*METHODS),
    "adapter": text(),
    "adapter_rank": number(1, 100_000),
    "adapter_targets": text(),
    "n_param_trained": number(1, 1e14),
    "weight_precision": text(*PRECISIONS),
    "compute_precision": text(*PRECISIONS),
    "precision_recipe": text(),
    "gradient_precision": text(*PRECISIONS),
    "state_precision": text(*PRECISIONS),
    "tp": number(1, _MAX_COUNT),
    "sequence_parallel": text(*SWITCHES),
    "pp": number(1, _MAX_COUNT),
    "vp": number(1, _MAX_COUNT),
    "pipeline_schedule": text(*SCHEDULES),
    "cp": number(1, _MAX_COUNT),
    "dp": number(1, _MAX_COUNT),
    "ep": number(1, _MAX_COUNT),
    "sharding": text(*SHARDINGS),
    "recomputation": text(*RECOMPUTATIONS),
    "recomputed_layer_ratio": number(0, 1),
    "offload": text(*OFFLOADS),
    "n_micro_batch_sequence": number(1, _MAX_COUNT),
    "n_global_batch_sequence": number(1, 1e8),
    "n_token_per_sequence": number(1, 1e8),
    "n_gradient_accumulation": number(1, _MAX_COUNT),
    "optimizer": text(),
    "packing": text(*PACKINGS),
    "flash_attention": text(*SWITCHES),
    "loss": text(*LOSSES),
    "compiled": text(*SWITCHES),
}
"""Model, hardware, method and configuration. `vp` counts the model chunks of a pipeline stage, `dp` the data-parallel
replicas (sharded or not), `n_gradient_accumulation` the micro batches of a replica in a step, those of a pipeline
too; `precision_recipe` is the scaling of a precision (``mxfp8``, ``fp8-tensor``).

`network` joins the nodes, `node_bandwidth_byte_per_s` is its nominal bandwidth per node and direction;
`all_reduce_bandwidth_byte_per_s` is the bus bandwidth of an all-reduce over the accelerators of the run, measured by
the run itself. `link_bandwidth_byte_per_s` overrides the data sheet's link within a node, per accelerator and
direction, and `power_limit_w` the thermal design power of an accelerator.

`adapter` names the variant of an adapter method (``lora-fa``, ``dora``, ``prompt-tuning``), `n_param_trained` counts
the trained parameters. `gradient_precision` is that in which gradients accumulate and are reduced, `state_precision`
that of the optimizer's moments. Throughput does not count the padding of ``padded`` sequences, whose
`n_token_per_sequence` is the longest. `recomputed_layer_ratio` is the share of layers to which `recomputation`
applies. A chunked `loss` never holds all logits of a micro batch."""

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
