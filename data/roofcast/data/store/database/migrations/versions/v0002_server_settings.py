"""Server settings of a measurement (polling, streaming, chunks, waits), and its length variation."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_COLUMNS = (
    "chunk_size_token", "poll_interval_step", "stream_interval_token", "attention_dp_wait_step", "batch_wait_step",
    "length_variation",
)  # fmt: skip


def upgrade() -> None:
    """Add the columns, blank in existing rows."""
    for name in _COLUMNS:
        op.add_column("measurement", sa.Column(name, sa.Double, nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    for name in _COLUMNS:
        op.drop_column("measurement", name)
