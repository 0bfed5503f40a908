"""Acceptance of speculated tokens under three names: of a step, of the drafts, and of a chain."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the probability of a chain, and add what engines print."""
    op.alter_column("measurement", "acceptance_ratio", new_column_name="chain_acceptance_ratio")
    for name in ("draft_acceptance_ratio", "acceptance_length"):
        op.add_column("measurement", sa.Column(name, sa.Double, nullable=True))
