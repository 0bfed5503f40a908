"""Tables of the store; `migrations` has the steps to them."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from roofcast.data.measurements.column_types import Column
from roofcast.data.measurements.job_schema import TRAINING_SCHEMA
from roofcast.data.measurements.schema import SCHEMA
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target


class UtcDateTime(sa.TypeDecorator[dt.datetime]):
    """A UTC time with its zone, also on SQLite, which stores none."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: sa.Dialect) -> dt.datetime | None:  # noqa: ARG002
        """Return the time in UTC; refuse a time without zone, which is a bug of the caller."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a time must carry its zone")
        return value.astimezone(dt.UTC) if value else None

    def process_result_value(self, value: dt.datetime | None, dialect: sa.Dialect) -> dt.datetime | None:  # noqa: ARG002
        """Return the time with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def _column(name: str, column: Column) -> sa.Column[Any]:
    if column.kind == "float":
        return sa.Column(name, sa.Double, nullable=True)
    return sa.Column(name, sa.Boolean if column.kind == "bool" else sa.Text, nullable=False)


def _claim_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("added_at", UtcDateTime, nullable=False),
        sa.Column("import_id", sa.String(32), nullable=False),
        sa.Column("quarantine", sa.Text, nullable=False),
        sa.Column("confirmed_by", sa.Text, nullable=False),
        sa.Column("withdrawn_by", sa.Text, nullable=False),
        sa.Column("withdrawn_at", UtcDateTime, nullable=True),
        sa.Column("is_withdrawn_by_operator", sa.Boolean, nullable=False),
    ]


METADATA: Final = sa.MetaData()


@dataclass(frozen=True)
class MeasurementTables:
    """Tables of the measurements of one target.

    - `schema`: Columns of the measurements.
    - `measurement`: Measurements with the claim that prevails: see `roofcast.data.store.claims`.
    - `claim`: Claims to measurements, by their id, that another claim precedes.
    """

    target: Target
    schema: Mapping[str, Column]
    measurement: sa.Table
    claim: sa.Table


def _measurement_tables(target: Target, schema: Mapping[str, Column], prefix: str) -> MeasurementTables:
    measurement, claim = f"{prefix}measurement", f"{prefix}claim"
    return MeasurementTables(
        target,
        schema,
        sa.Table(
            measurement,
            METADATA,
            sa.Column("id", sa.String(32), primary_key=True),
            *(_column(name, column) for name, column in schema.items()),
            sa.Column("uploader", sa.String(100), nullable=False),
            sa.Column("is_operator", sa.Boolean, nullable=False),
            *_claim_columns(),
            sa.Index(f"{measurement}_campaign", "campaign"),
            sa.Index(f"{measurement}_import", "import_id"),
            sa.Index(f"{measurement}_of_key", "model", "uploader", "added_at"),
            sa.Index(f"{measurement}_of_operator", "model", "is_operator", "added_at"),
        ),
        sa.Table(
            claim,
            METADATA,
            sa.Column("id", sa.String(32), primary_key=True),
            sa.Column("uploader", sa.String(100), primary_key=True),
            sa.Column("is_operator", sa.Boolean, primary_key=True),
            *_claim_columns(),
            sa.Index(f"{claim}_import", "import_id"),
            sa.Index(f"{claim}_of_key", "uploader", "added_at"),
            sa.Index(f"{claim}_of_operator", "is_operator", "added_at"),
        ),
    )


INFERENCE_TABLES: Final = _measurement_tables(INFERENCE, SCHEMA, "")
TRAINING_TABLES: Final = _measurement_tables(TRAINING, TRAINING_SCHEMA, "training_")
ALL_TABLES: Final = (INFERENCE_TABLES, TRAINING_TABLES)

CLAIM_COLUMNS: Final = tuple(column.name for column in INFERENCE_TABLES.claim.c if column.name != "id")
"""Columns that measurements and claims share, besides the id."""

MODEL: Final = sa.Table(
    "model",
    METADATA,
    sa.Column("id", sa.String(200), primary_key=True),
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("config", sa.JSON, nullable=False),
    sa.Column("added_at", UtcDateTime, nullable=False),
    sa.Column("uploader", sa.String(100), nullable=False),
)

RETRAINING: Final = sa.Table(
    "retraining",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("requested_at", UtcDateTime, nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=True),
    sa.Column("finished_at", UtcDateTime, nullable=True),
    sa.Column("report", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("target", sa.String(16), nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("n_step_done", sa.Integer, nullable=False),
    sa.Column("n_step", sa.Integer, nullable=False),
    sa.Column("n_interruption", sa.Integer, nullable=False),
    sa.Column("learnable_digest", sa.String(32), nullable=False),
)

API_KEY: Final = sa.Table(
    "api_key",
    METADATA,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    sa.Column("scope", sa.String(16), nullable=False),
    sa.Column("last_four", sa.String(4), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=True),
    sa.Column("revoked_at", UtcDateTime, nullable=True),
)

STACK_ROW: Final = sa.Table(
    "stack_row",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(100), nullable=False),
    sa.Column("stack", sa.String(100), nullable=False),
    sa.Column("cells", sa.JSON, nullable=False),
    sa.Column("added_at", UtcDateTime, nullable=False),
    sa.Index("stack_row_owner_stack", "owner", "stack"),
)
"""Rows of stack profiles; the owner is the name of an API key, empty for the command line."""

SHADOW_COUNT: Final = sa.Table(
    "shadow_count",
    METADATA,
    sa.Column("champion", sa.String(64), primary_key=True),
    sa.Column("challenger", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("metric", sa.String(40), primary_key=True),
    sa.Column("bin", sa.Integer, primary_key=True),
    sa.Column("n", sa.BigInteger, nullable=False),
    sa.Column("since", UtcDateTime, nullable=False),
)
"""Rows that champion and challenger, both by their SHA-256, answered, by the bin of the ratio of their answers."""
