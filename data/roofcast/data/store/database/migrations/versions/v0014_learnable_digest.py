"""Digest of the measurements that a retraining could learn from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; that of earlier retrainings is unknown."""
    op.add_column("retraining", sa.Column("learnable_digest", sa.String(32), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("retraining", "learnable_digest")
