"""Stage of a running retraining, and its steps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; the stage of earlier retrainings is blank."""
    op.add_column("retraining", sa.Column("stage", sa.Text, nullable=False, server_default=""))
    for name in ("n_step_done", "n_step"):
        op.add_column("retraining", sa.Column(name, sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the columns."""
    for name in ("stage", "n_step_done", "n_step"):
        op.drop_column("retraining", name)
