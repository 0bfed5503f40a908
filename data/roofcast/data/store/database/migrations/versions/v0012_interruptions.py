"""Number of interruptions of a retraining."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; earlier retrainings count none."""
    op.add_column("retraining", sa.Column("n_interruption", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("retraining", "n_interruption")
