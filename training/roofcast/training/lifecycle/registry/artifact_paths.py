"""Places of files in an embedded MLflow store, absolute ones: a copy would write into the original's folder."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

COLUMNS: Final = (
    ("experiments", "artifact_location"), ("runs", "artifact_uri"), ("model_versions", "source"),
    ("model_versions", "storage_location"), ("logged_models", "artifact_location"),
)  # fmt: skip
"""Tables and columns of MLflow's schema with places."""


def relocate(database: Path, experiment: str, location: str) -> bool:
    """Rewrite the places of an experiment's files to those of this state folder; return whether they were others.

    A new store, without the experiment, stays as it is.

    `location`: address of the folder of artefacts in this state folder. Raises `sqlite3.Error` if the store cannot be
    read or written.
    """
    with closing(sqlite3.connect(database)) as connection, connection:
        columns = [(table, column) for table, column in COLUMNS if column in _columns(connection, table)]
        if COLUMNS[0] not in columns:
            return False
        query = "SELECT artifact_location FROM experiments WHERE name = ?"
        row = connection.execute(query, (experiment,)).fetchone()
        if row is None or row[0] == location:
            return False
        before = str(row[0])
        for table, column in columns:
            connection.execute(
                f"UPDATE {table} SET {column} = ? || substr({column}, ?)"  # noqa: S608  (names of `COLUMNS`)
                f" WHERE {column} = ? OR substr({column}, 1, ?) = ?",
                (location, len(before) + 1, before, len(before) + 1, f"{before}/"),
            )
        return True


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")}
