"""Measurements state the bits of a weight where the name of its precision leaves them open."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("measurement", sa.Column("weight_bit", sa.Double, nullable=True))
