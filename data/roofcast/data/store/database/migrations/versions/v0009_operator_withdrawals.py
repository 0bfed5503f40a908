"""Withdrawals by an operator apart from those by keys; indices for the measurements of an import, a key, a model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_NAME = "is_withdrawn_by_operator"
_INDICES = {
    "measurement": {
        "measurement_of_key": ["model", "uploader", "added_at"],
        "measurement_of_operator": ["model", "is_operator", "added_at"],
    },
    "claim": {
        "claim_import": ["import_id"],
        "claim_of_key": ["uploader", "added_at"],
        "claim_of_operator": ["is_operator", "added_at"],
    },
}


def upgrade() -> None:
    """Add the column and the indices; a withdrawal by another than the row's own key counts as an operator's."""
    by_operator = "withdrawn_at IS NOT NULL AND (is_operator OR withdrawn_by <> 'key:' || uploader)"
    for table, indices in _INDICES.items():
        op.add_column(table, sa.Column(_NAME, sa.Boolean, nullable=False, server_default=sa.false()))
        op.execute(f"UPDATE {table} SET {_NAME} = true WHERE {by_operator}")  # noqa: S608
        for name, columns in indices.items():
            op.create_index(name, table, columns)


def downgrade() -> None:
    """Drop them; the earlier roofcast tells withdrawals by the caller's name alone."""
    for table, indices in _INDICES.items():
        for name in indices:
            op.drop_index(name, table)
        op.drop_column(table, _NAME)
