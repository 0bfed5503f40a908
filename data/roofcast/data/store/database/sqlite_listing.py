"""Read-only queries of the store's SQLite file by the standard library.

A command that only lists takes less time with them than SQLAlchemy, Alembic and pandas take to import.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec

Row = tuple[Any, ...]

STACKS: Final = """
SELECT engine, engine_version, accelerator, weight_precision, model, is_operator, MAX(date) FROM measurement
WHERE engine <> '' AND withdrawn_at IS NULL AND (quarantine = '' OR confirmed_by <> '')
GROUP BY engine, engine_version, accelerator, weight_precision, model, is_operator
"""
"""Query of the stacks that were measured, with whether an operator imported the rows and their last date."""


def list_models(file: Path) -> list[ModelSpec] | None:
    """Return the registered models by id; None if the file cannot be read this way."""
    rows = _query(file, "SELECT spec, config FROM model ORDER BY id")
    return None if rows is None else [current_spec(json.loads(spec), json.loads(config)) for spec, config in rows]


def list_uploaders(file: Path) -> dict[str, str] | None:
    """Return the API key that registered each model, blank for an operator; None if the file cannot be read so."""
    rows = _query(file, "SELECT id, uploader FROM model")
    return None if rows is None else dict(rows)


def list_stacks(file: Path) -> list[Row] | None:
    """Return the rows of `STACKS`; None if the file cannot be read so."""
    return _query(file, STACKS)


def count_by_campaign(file: Path) -> dict[str, int] | None:
    """Return the number of measurements of each campaign not withdrawn; None if the file cannot be read so."""
    count = "SELECT campaign, SUM(withdrawn_at IS NULL) FROM measurement GROUP BY campaign ORDER BY campaign"
    rows = _query(file, count)
    return None if rows is None else dict(rows)


def current_spec(stored: dict[str, Any], config: dict[str, Any]) -> ModelSpec:
    """Return a registered model as this version reads its configuration, or as stored if it cannot read it."""
    spec = ModelSpec.parse(stored)
    try:
        current = model_from_config(config, spec.id)
    except InputError:
        return spec
    return current.model_copy(update={"lineage": spec.lineage, "fold_group": spec.fold_group})


def _query(file: Path, statement: str) -> list[Row] | None:
    if not file.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(statement).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):  # the message of a damaged file may be no text
        return None
