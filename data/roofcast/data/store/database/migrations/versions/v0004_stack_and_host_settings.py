"""Stack of a measurement, and settings of the engine and of the host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TEXTS = ("graphs", "peer_to_peer", "stack")
_NUMBERS = (
    "acceptance_ratio", "max_num_seqs", "max_context_token", "link_bandwidth_byte_per_s", "power_limit_w",
)  # fmt: skip


def upgrade() -> None:
    """Add the columns, blank in existing rows."""
    for name in _TEXTS:
        op.add_column("measurement", sa.Column(name, sa.Text, nullable=False, server_default=""))
    for name in _NUMBERS:
        op.add_column("measurement", sa.Column(name, sa.Double, nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    for name in (*_TEXTS, *_NUMBERS):
        op.drop_column("measurement", name)
