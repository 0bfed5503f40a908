"""Measurements, registered models and retraining records."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TEXTS_AND_NUMBERS: dict[type[Any], tuple[str, ...]] = {
    sa.Text: (
        "model", "accelerator", "engine", "engine_version", "weight_precision", "kv_precision", "statistic", "load",
        "status", "activation_precision", "speculation", "prefix_caching", "chunked_prefill", "date", "software",
        "derived", "campaign", "note",
    ),
    sa.Double: (
        "n_accelerator", "tp", "pp", "dp", "ep", "n_input_token", "n_output_token", "concurrency", "request_rate",
        "ttft_s", "nttft_s_per_token", "itl_s", "tpot_s", "e2e_s", "output_throughput_token_per_s",
        "total_throughput_token_per_s", "request_throughput_per_s", "power_w", "memory_byte", "n_node", "cp",
        "moe_tp", "n_prefill_accelerator", "n_decode_accelerator", "n_speculative_token", "prefix_cache_ratio",
        "lora_rank", "duration_s", "n_request", "n_failed", "n_input_token_at_statistic",
        "n_output_token_at_statistic",
    ),
}  # fmt: skip


def upgrade() -> None:
    """Create the three tables."""
    moment = sa.DateTime(timezone=True)
    columns: list[sa.Column[Any]] = [
        sa.Column(name, kind, nullable=kind is sa.Double)
        for kind, names in _TEXTS_AND_NUMBERS.items()
        for name in names
    ]
    op.create_table(
        "measurement",
        sa.Column("id", sa.String(32), primary_key=True),
        *columns,
        sa.Column("flash_attention", sa.Boolean, nullable=False),
        sa.Column("added_at", moment, nullable=False),
    )
    op.create_index("measurement_campaign", "measurement", ["campaign"])
    op.create_table(
        "model",
        sa.Column("id", sa.String(200), primary_key=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("config", sa.JSON, nullable=False),
        sa.Column("added_at", moment, nullable=False),
    )
    op.create_table(
        "retraining",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("requested_at", moment, nullable=False),
        sa.Column("started_at", moment, nullable=True),
        sa.Column("finished_at", moment, nullable=True),
        sa.Column("report", sa.JSON, nullable=True),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("owner", sa.String(32), nullable=False),
    )


def downgrade() -> None:
    """Drop the three tables."""
    for table in ("retraining", "model", "measurement"):
        op.drop_table(table)
