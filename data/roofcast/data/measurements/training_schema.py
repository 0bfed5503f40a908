"""Columns of the training table: one row per training or fine-tuning run of one configuration.

Batches are in sequences, throughput in tokens of the whole job, FLOP/s and memory per accelerator. A token counts
once per pass over it; padding counts if the source counts it, see `packing`.
"""

from __future__ import annotations

from typing import Final

from roofcast.data.measurements.columns import number, required_number, required_text, text
from roofcast.data.measurements.schema import STATUSES, SWITCHES
from roofcast.data.specs import PRECISIONS

METHODS: Final = ("pretrain", "full", "lora", "qlora", "adapter")
"""Pretraining; fine-tuning of all weights, with LoRA, with LoRA on quantised weights, or with another adapter."""

SHARDINGS: Final = ("ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp")
RECOMPUTATIONS: Final = ("none", "selective", "full")
OFFLOADS: Final = ("none", "optimizer", "parameters", "activations", "optimizer+parameters")
PACKINGS: Final = ("packed", "padded")

_MAX_S: Final = 1e7
_MAX_COUNT: Final = 1_000_000
_MAX_FLOP_PER_S: Final = 1e17

TRAINING_CONFIG_COLUMNS: Final = {
    "model": required_text(),
    "accelerator": required_text(),
    "n_accelerator": required_number(1, _MAX_COUNT),
    "n_node": number(1, _MAX_COUNT),
    "framework": text(),
    "framework_version": text(),
    "method": required_text(*METHODS),
    "adapter_rank": number(1, 100_000),
    "weight_precision": text(*PRECISIONS),
    "compute_precision": text(*PRECISIONS),
    "precision_recipe": text(),
    "tp": number(1, _MAX_COUNT),
    "pp": number(1, _MAX_COUNT),
    "vp": number(1, _MAX_COUNT),
    "cp": number(1, _MAX_COUNT),
    "dp": number(1, _MAX_COUNT),
    "ep": number(1, _MAX_COUNT),
    "sharding": text(*SHARDINGS),
    "recomputation": text(*RECOMPUTATIONS),
    "offload": text(*OFFLOADS),
    "n_micro_batch_sequence": number(1, _MAX_COUNT),
    "n_global_batch_sequence": number(1, 1e8),
    "n_token_per_sequence": number(1, 1e8),
    "n_gradient_accumulation": number(1, _MAX_COUNT),
    "optimizer": text(),
    "packing": text(*PACKINGS),
    "flash_attention": text(*SWITCHES),
}
"""Model, hardware, method and configuration. `vp` counts the model chunks of a pipeline stage, `dp` the data-parallel
replicas (sharded or not), `n_gradient_accumulation` the micro batches of a replica in a step, those of a pipeline
too; `precision_recipe` is the scaling of a precision (``mxfp8``, ``fp8-tensor``)."""

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
an accelerator that the source reports. `duration_s` is the time of the whole run."""

TRAINING_CONTEXT_COLUMNS: Final = {
    "status": required_text(*STATUSES),
    "date": text(),
    "software": text(),
    "derived": text(),
    "campaign": required_text(),
    "note": text(),
}
"""Context of a run. `derived` names the outcomes that were computed from others, separated by spaces; `date` is the
day of the measurement, or the day of its first publication in the source."""

TRAINING_SCHEMA: Final = {**TRAINING_CONFIG_COLUMNS, **TRAINING_OUTCOME_COLUMNS, **TRAINING_CONTEXT_COLUMNS}
TRAINING_COLUMNS: Final = tuple(TRAINING_SCHEMA)

TRAINING_WHOLE_COLUMNS: Final = (
    "n_accelerator", "n_node", "adapter_rank", "tp", "pp", "vp", "cp", "dp", "ep", "n_micro_batch_sequence",
    "n_gradient_accumulation", "n_token_per_sequence",
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
