"""Measurements of training jobs, with their claims; the target of a retraining."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_TEXTS_AND_NUMBERS: dict[type[Any], tuple[str, ...]] = {
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

_OWNER = (("uploader", sa.String(100)), ("is_operator", sa.Boolean))
_INDICES = {
    "training_measurement": {
        "training_measurement_campaign": ["campaign"],
        "training_measurement_import": ["import_id"],
        "training_measurement_of_key": ["model", "uploader", "added_at"],
        "training_measurement_of_operator": ["model", "is_operator", "added_at"],
    },
    "training_claim": {
        "training_claim_import": ["import_id"],
        "training_claim_of_key": ["uploader", "added_at"],
        "training_claim_of_operator": ["is_operator", "added_at"],
    },
}


def _claim_columns() -> list[sa.Column[Any]]:
    moment = sa.DateTime(timezone=True)
    texts = [sa.Column(name, sa.Text, nullable=False) for name in ("quarantine", "confirmed_by", "withdrawn_by")]
    return [
        sa.Column("added_at", moment, nullable=False),
        sa.Column("import_id", sa.String(32), nullable=False),
        *texts,
        sa.Column("withdrawn_at", moment, nullable=True),
        sa.Column("is_withdrawn_by_operator", sa.Boolean, nullable=False),
    ]


def upgrade() -> None:
    """Create the tables and their indices; retrainings so far are of inference."""
    columns = [
        sa.Column(name, kind, nullable=kind is sa.Double)
        for kind, names in _TEXTS_AND_NUMBERS.items()
        for name in names
    ]
    identity = sa.String(32)
    op.create_table(
        "training_measurement",
        sa.Column("id", identity, primary_key=True),
        *columns,
        *(sa.Column(name, kind, nullable=False) for name, kind in _OWNER),
        *_claim_columns(),
    )
    op.create_table(
        "training_claim",
        sa.Column("id", identity, primary_key=True),
        *(sa.Column(name, kind, primary_key=True) for name, kind in _OWNER),
        *_claim_columns(),
    )
    for table, indices in _INDICES.items():
        for name, names in indices.items():
            op.create_index(name, table, names)
    op.add_column("retraining", sa.Column("target", sa.String(16), nullable=False, server_default="inference"))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("retraining", "target")
    op.drop_table("training_claim")
    op.drop_table("training_measurement")
