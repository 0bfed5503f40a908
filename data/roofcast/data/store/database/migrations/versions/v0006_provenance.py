"""Import and uploader of a measurement, its quarantine and its withdrawal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TEXTS = (
    ("import_id", sa.String(32)), ("uploader", sa.String(100)), ("quarantine", sa.Text), ("confirmed_by", sa.Text),
    ("withdrawn_by", sa.Text),
)  # fmt: skip


def upgrade() -> None:
    """Add the columns; existing rows count as imported by the operator."""
    for name, kind in _TEXTS:
        op.add_column("measurement", sa.Column(name, kind, nullable=False, server_default=""))
    op.add_column("measurement", sa.Column("is_operator", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column("measurement", sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("measurement_import", "measurement", ["import_id"])


def downgrade() -> None:
    """Drop the columns, and measurements withdrawn or in quarantine: an earlier roofcast would learn from them."""
    is_held = "quarantine <> '' AND confirmed_by = ''"
    op.execute(f"DELETE FROM measurement WHERE withdrawn_at IS NOT NULL OR ({is_held})")  # noqa: S608
    op.drop_index("measurement_import", "measurement")
    for name in (*(name for name, _ in _TEXTS), "is_operator", "withdrawn_at"):
        op.drop_column("measurement", name)
