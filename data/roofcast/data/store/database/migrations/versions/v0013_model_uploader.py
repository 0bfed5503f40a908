"""Key that registered a model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; earlier models count as an operator's."""
    op.add_column("model", sa.Column("uploader", sa.String(100), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("model", "uploader")
