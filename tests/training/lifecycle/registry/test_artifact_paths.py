import sqlite3
from pathlib import Path

import pytest

from roofcast.training.lifecycle.registry.artifact_paths import COLUMNS, relocate

OLD, NEW = "file:///first/artifacts", "file:///second%20place/artifacts"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return a store with a place in each column, and places of somebody else."""
    file = tmp_path / "mlflow.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE experiments (name TEXT, artifact_location TEXT)")
    connection.execute("INSERT INTO experiments VALUES ('mine', ?), ('other', '/elsewhere')", (OLD,))
    for table, column in COLUMNS[1:]:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (id INTEGER)")
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
        rows = [(f"{OLD}/1/bundle",), (f"{OLD}-of-another/1",), ("models:/m-1",), (None,)]
        connection.executemany(f"INSERT INTO {table} ({column}) VALUES (?)", rows)  # noqa: S608
    connection.commit()
    connection.close()
    return file


def places(file: Path, table: str, column: str) -> list[str]:
    connection = sqlite3.connect(file)
    query = f"SELECT {column} FROM {table} WHERE {column} NOT NULL"  # noqa: S608
    rows = [row[0] for row in connection.execute(query)]
    connection.close()
    return rows


def test_the_places_of_a_copied_store_are_rewritten(database: Path) -> None:
    assert relocate(database, "mine", NEW)
    assert places(database, "experiments", "artifact_location") == [NEW, "/elsewhere"]
    for table, column in COLUMNS[1:]:
        assert places(database, table, column) == [f"{NEW}/1/bundle", f"{OLD}-of-another/1", "models:/m-1"]
    assert not relocate(database, "mine", NEW)


def test_a_store_without_the_experiment_stays(database: Path, tmp_path: Path) -> None:
    before = database.read_bytes()
    assert not relocate(database, "nobody's", NEW)
    assert database.read_bytes() == before
    assert not relocate(tmp_path / "new.db", "mine", NEW)
