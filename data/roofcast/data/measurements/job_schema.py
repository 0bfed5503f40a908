"""Columns of the training table: one row per training or fine-tuning run of one configuration.

Batches are in sequences, throughput in tokens of the whole job, FLOP/s and memory per accelerator. A token counts
once per pass over it; padding of measured runs counts if the source counts it, so that rates of padded runs are not
judged, see `packing`.
"""

from typing import Final

from roofcast.data.measurements.column_types import of_role, read_columns
from roofcast.data.measurements.schema import SCHEMA

TRAINING_SCHEMA: Final = read_columns("training_columns.csv", SCHEMA)
TRAINING_COLUMNS: Final = tuple(TRAINING_SCHEMA)

ADAPTER_TARGETS: Final = ("q", "k", "v", "o", "gate", "up", "down", "embedding", "head")
"""Projections that an adapter changes, and embedding and head, which are trained in full beside it; a cell names some
of them, separated by spaces."""

TRAINING_CONFIG_COLUMNS: Final = of_role(TRAINING_SCHEMA, "setting")
"""Model, hardware, method and configuration: pretraining; fine-tuning of all weights, with LoRA, with LoRA on
quantised weights, or with another adapter. Replicas are sharded or not; `n_gradient_accumulation` counts the micro
batches of a pipeline too.

`all_reduce_bandwidth_byte_per_s` is over the accelerators of the run, measured by the run itself;
`link_bandwidth_byte_per_s` is that within a node, per accelerator. Throughput does not count the padding of
``padded`` sequences, whose `n_token_per_sequence` is the longest."""

TRAINING_OUTCOME_COLUMNS: Final = of_role(TRAINING_SCHEMA, "outcome")
"""Observed outcomes. A step processes one global batch; throughput is that of the whole job. Hardware FLOP include
recomputation, model FLOP do not; the ratios are over the peak that the source states. Memory is the largest peak of
an accelerator that the source reports; see `memory_kind`. `duration_s` is the time of the whole run.

Results, the context of a run: `memory_kind` tells how memory was read: allocated tensors, memory that the framework's
allocator reserved, or memory in use on the device. `derived` names the outcomes that were computed from others,
separated by spaces; `date` is the day of the measurement, or the day of its first publication in the source. `stack`
names who built, configured and measured: ``owner`` or ``owner/part``; stacks of one owner are held out together."""

TRAINING_KEY_COLUMNS: Final = (
    "model", "accelerator", "n_accelerator", "method", "compute_precision", "precision_recipe",
    "n_token_per_sequence", "n_global_batch_sequence", "n_micro_batch_sequence", "tp", "pp", "cp", "ep", "date",
    "note", "step_time_s", "throughput_token_per_s", "memory_byte_per_accelerator",
)  # fmt: skip
"""Order of the rows of a campaign."""
