"""Measurements state the memory settings of their server."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    for name in ("gpu_memory_utilization", "n_gpu_layer", "n_cpu_moe", "cpu_offload_gib"):
        op.add_column("measurement", sa.Column(name, sa.Double, nullable=True))
