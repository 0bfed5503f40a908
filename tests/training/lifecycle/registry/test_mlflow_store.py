import contextlib
import sqlite3
from pathlib import Path

import mlflow.store.db.utils
import pytest

from roofcast.data.errors import NotReadyError
from roofcast.training.lifecycle.registry.mlflow_store import create_store
from roofcast.training.lifecycle.registry.registry import Registry


def execute(file: Path, *statements: str) -> list[tuple[object, ...]]:
    """Execute statements and return the rows of the last."""
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        return [database.execute(statement).fetchall() for statement in statements][-1]


def is_whole(file: Path) -> bool:
    return all(execute(file, f"SELECT * FROM {table}") for table in ("alembic_version", "experiments"))  # noqa: S608


def drafts(folder: Path) -> list[Path]:
    return sorted(folder.glob("mlflow.db.*"))


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "-journal", "-a-wal"])
def test_a_store_whose_creation_was_killed_is_created_anew(end: str, tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    (registry.home / f"mlflow.db.new{end}").write_bytes(b"a part")
    with registry.run("a test") as run_id:
        pass
    assert run_id
    assert drafts(registry.home) == []


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, pytest.param(sqlite3.OperationalError("disk is full"), marks=pytest.mark.slow)]
)
def test_a_store_has_its_name_once_it_is_whole(
    error: type[BaseException] | BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(tmp_path)

    def killed(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(mlflow.store.db.utils, "_upgrade_db", killed)  # after the first tables, before the others
        with pytest.raises((KeyboardInterrupt, NotReadyError)):
            registry.run("a test").__enter__()
    assert len(drafts(registry.home)) == 1
    assert registry.is_empty
    (registry.home / "mlflow.db.new-a1_b").write_bytes(b"a part of an earlier one")
    with registry.run("a test"):
        assert is_whole(tmp_path / "mlflow.db")
    assert drafts(registry.home) == []


@pytest.mark.parametrize(
    "statements", [pytest.param((), marks=pytest.mark.slow), ("CREATE TABLE alembic_version (version_num TEXT)",)]
)
def test_a_half_made_store_of_an_earlier_version_is_replaced(statements: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    execute(file, "CREATE TABLE experiments (experiment_id INTEGER)", *statements)
    create_store(file)
    assert is_whole(file)


@pytest.mark.parametrize("table", ["experiments", "runs", "registered_models"])
def test_a_store_that_holds_something_stays(table: str, tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    execute(file, f"CREATE TABLE {table} (name TEXT)", f"INSERT INTO {table} VALUES ('kept')")  # noqa: S608
    create_store(file)
    assert execute(file, f"SELECT name FROM {table}") == [("kept",)]  # noqa: S608


def test_a_file_that_is_no_database_stays(tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    file.write_text("no database, but the notes of somebody who chose this name for them")
    with pytest.raises(sqlite3.DatabaseError):
        create_store(file)
    assert file.read_text().startswith("no database")
