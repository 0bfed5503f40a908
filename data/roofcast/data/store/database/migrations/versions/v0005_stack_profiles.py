"""Rows of stack profiles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "stack_row",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("owner", sa.String(100), nullable=False),
        sa.Column("stack", sa.String(100), nullable=False),
        sa.Column("cells", sa.JSON, nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("stack_row_owner_stack", "stack_row", ["owner", "stack"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("stack_row")
