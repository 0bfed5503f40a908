"""Counts of the answers of champion and challenger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "shadow_count",
        sa.Column("champion", sa.String(64), primary_key=True),
        sa.Column("challenger", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(40), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("metric", sa.String(40), primary_key=True),
        sa.Column("bin", sa.Integer, primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    """Drop the table, and the counts with it."""
    op.drop_table("shadow_count")
