"""Claims of several callers to one measurement."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "claim",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("uploader", sa.String(100), primary_key=True),
        sa.Column("is_operator", sa.Boolean, primary_key=True),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("import_id", sa.String(32), nullable=False),
        sa.Column("quarantine", sa.Text, nullable=False),
        sa.Column("confirmed_by", sa.Text, nullable=False),
        sa.Column("withdrawn_by", sa.Text, nullable=False),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
    )


def downgrade() -> None:
    """Drop the table; an earlier roofcast knows the prevailing claims alone."""
    op.drop_table("claim")
