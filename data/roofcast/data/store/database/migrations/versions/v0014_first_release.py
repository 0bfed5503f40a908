"""The schema of the first release; its number is that of the last schema before, which is the same."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = None
branch_labels = None
depends_on = None

_MEASUREMENT: dict[type[Any], tuple[str, ...]] = {
    sa.Text: (
        "model", "accelerator", "engine", "engine_version", "weight_precision", "kv_precision", "statistic", "load",
        "status", "activation_precision", "speculation", "prefix_caching", "chunked_prefill", "date", "software",
        "derived", "campaign", "note", "graphs", "peer_to_peer", "stack",
    ),
    sa.Double: (
        "n_accelerator", "tp", "pp", "dp", "ep", "n_input_token", "n_output_token", "concurrency", "request_rate",
        "ttft_s", "nttft_s_per_token", "itl_s", "tpot_s", "e2e_s", "output_throughput_token_per_s",
        "total_throughput_token_per_s", "request_throughput_per_s", "power_w", "memory_byte", "n_node", "cp",
        "moe_tp", "n_prefill_accelerator", "n_decode_accelerator", "n_speculative_token", "prefix_cache_ratio",
        "lora_rank", "duration_s", "n_request", "n_failed", "n_input_token_at_statistic",
        "n_output_token_at_statistic", "chunk_size_token", "poll_interval_step", "stream_interval_token",
        "attention_dp_wait_step", "batch_wait_step", "length_variation", "acceptance_ratio", "max_num_seqs",
        "max_context_token", "link_bandwidth_byte_per_s", "power_limit_w",
    ),
    sa.Boolean: ("flash_attention",),
}  # fmt: skip

_TRAINING_MEASUREMENT: dict[type[Any], tuple[str, ...]] = {
    sa.Text: (
        "model", "accelerator", "network", "framework", "framework_version", "method", "adapter",
        "adapter_targets", "weight_precision", "compute_precision", "precision_recipe", "gradient_precision",
        "state_precision", "sequence_parallel", "pipeline_schedule", "sharding", "recomputation", "offload",
        "optimizer", "packing", "flash_attention", "loss", "compiled", "status", "memory_kind", "date",
        "software", "derived", "campaign", "stack", "note",
    ),
    sa.Double: (
        "n_accelerator", "n_node", "n_accelerator_per_node", "node_bandwidth_byte_per_s",
        "all_reduce_bandwidth_byte_per_s", "link_bandwidth_byte_per_s", "power_limit_w", "adapter_rank",
        "n_param_trained", "tp", "pp", "vp", "cp", "dp", "ep", "recomputed_layer_ratio",
        "n_micro_batch_sequence", "n_global_batch_sequence", "n_token_per_sequence",
        "n_gradient_accumulation", "step_time_s", "throughput_token_per_s",
        "model_flop_per_s_per_accelerator", "hardware_flop_per_s_per_accelerator", "mfu_ratio", "hfu_ratio",
        "memory_byte_per_accelerator", "duration_s",
    ),
}  # fmt: skip

_MEASUREMENT_INDICES = {
    "campaign": ["campaign"],
    "import": ["import_id"],
    "of_key": ["model", "uploader", "added_at"],
    "of_operator": ["model", "is_operator", "added_at"],
}
_CLAIM_INDICES = {
    "import": ["import_id"],
    "of_key": ["uploader", "added_at"],
    "of_operator": ["is_operator", "added_at"],
}
_MOMENT = sa.DateTime(timezone=True)


def _required(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def _claim_columns() -> list[sa.Column[Any]]:
    return [
        *_required(_MOMENT, "added_at"),
        *_required(sa.String(32), "import_id"),
        *_required(sa.Text, "quarantine", "confirmed_by", "withdrawn_by"),
        sa.Column("withdrawn_at", _MOMENT, nullable=True),
        *_required(sa.Boolean, "is_withdrawn_by_operator"),
    ]


def _create_measurements(prefix: str, columns: dict[type[Any], tuple[str, ...]]) -> None:
    measurement, claim = f"{prefix}measurement", f"{prefix}claim"
    op.create_table(
        measurement,
        sa.Column("id", sa.String(32), primary_key=True),
        *(sa.Column(name, kind, nullable=kind is sa.Double) for kind, names in columns.items() for name in names),
        *_required(sa.String(100), "uploader"),
        *_required(sa.Boolean, "is_operator"),
        *_claim_columns(),
    )
    op.create_table(
        claim,
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("uploader", sa.String(100), primary_key=True),
        sa.Column("is_operator", sa.Boolean, primary_key=True),
        *_claim_columns(),
    )
    for table, indices in ((measurement, _MEASUREMENT_INDICES), (claim, _CLAIM_INDICES)):
        for name, names in indices.items():
            op.create_index(f"{table}_{name}", table, names)


def upgrade() -> None:
    """Create the tables and their indices."""
    _create_measurements("", _MEASUREMENT)
    _create_measurements("training_", _TRAINING_MEASUREMENT)
    op.create_table(
        "model",
        sa.Column("id", sa.String(200), primary_key=True),
        *_required(sa.JSON, "spec", "config"),
        *_required(_MOMENT, "added_at"),
        *_required(sa.String(100), "uploader"),
    )
    op.create_table(
        "retraining",
        sa.Column("id", sa.String(32), primary_key=True),
        *_required(sa.String(16), "state", "target"),
        *_required(_MOMENT, "requested_at"),
        sa.Column("started_at", _MOMENT, nullable=True),
        sa.Column("finished_at", _MOMENT, nullable=True),
        sa.Column("report", sa.JSON, nullable=True),
        *_required(sa.Text, "error", "stage"),
        *_required(sa.String(32), "owner", "learnable_digest"),
        *_required(sa.Integer, "n_step_done", "n_step", "n_interruption"),
    )
    op.create_table(
        "api_key",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        *_required(sa.String(16), "scope"),
        *_required(sa.String(4), "last_four"),
        *_required(_MOMENT, "created_at"),
        sa.Column("expires_at", _MOMENT, nullable=True),
        sa.Column("revoked_at", _MOMENT, nullable=True),
    )
    op.create_table(
        "stack_row",
        sa.Column("id", sa.String(32), primary_key=True),
        *_required(sa.String(100), "owner", "stack"),
        *_required(sa.JSON, "cells"),
        *_required(_MOMENT, "added_at"),
    )
    op.create_index("stack_row_owner_stack", "stack_row", ["owner", "stack"])
    op.create_table(
        "shadow_count",
        *(sa.Column(name, sa.String(64), primary_key=True) for name in ("champion", "challenger")),
        sa.Column("kind", sa.String(40), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("metric", sa.String(40), primary_key=True),
        sa.Column("bin", sa.Integer, primary_key=True),
        *_required(sa.BigInteger, "n"),
        *_required(_MOMENT, "since"),
    )
