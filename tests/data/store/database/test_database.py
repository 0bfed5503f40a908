from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.store.database import database as database_module
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.sqlite_listing import list_models
from roofcast.data.store.database.tables import METADATA
from tests.data.row_builders import PROCESSES


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def migrate(url: str) -> None:
    database = Database(url)
    database.migrate()
    database.close()


def test_migrations_create_the_tables_of_the_metadata(tmp_path: Path) -> None:
    database = Database(url_of(tmp_path / "state.sqlite"))
    database.migrate()
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    database.close()


def test_sqlite_has_durable_settings(tmp_path: Path) -> None:
    database = Database(url_of(tmp_path / "state.sqlite"))
    database.migrate()
    with database.reading() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    database.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5_000}


def test_several_processes_may_migrate_at_once(tmp_path: Path) -> None:
    url = url_of(tmp_path / "state.sqlite")
    with PROCESSES.Pool(2) as pool:
        pool.map(migrate, [url] * 4, chunksize=1)
    with Database(url).reading() as connection:
        assert set(sa.inspect(connection).get_table_names()) == {
            "alembic_version", "api_key", "claim", "measurement", "model", "retraining", "shadow_count",
            "stack_row", "training_claim", "training_measurement",
        }  # fmt: skip
        connection.engine.dispose()


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    migrate(url_of(file))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(NotReadyError, match="schema '9999' of a newer roofcast; upgrade roofcast"):
        migrate(url_of(file))


@pytest.mark.parametrize("content", [b"this is no database at all " * 200, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_file_is_not_usable(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "state.sqlite"
    file.write_bytes(content)
    with pytest.raises(NotReadyError, match=r"is no database or a damaged one .*; restore it from a copy"):
        migrate(url_of(file))


def test_a_file_whose_damaged_names_are_no_text_is_not_usable(tmp_path: Path) -> None:
    """SQLite quotes the name in a message that Python cannot decode."""
    file = tmp_path / "state.sqlite"
    migrate(url_of(file))
    content = file.read_bytes()
    assert b"sqlite_autoindex_claim_1" in content
    file.write_bytes(content.replace(b"sqlite_autoindex_claim_1", b"sqlite_auto\xa2ndex_claim_1"))
    with pytest.raises(NotReadyError, match=r"is a damaged one .*; restore it from a copy"):
        migrate(url_of(file))
    assert list_models(file) is None


def test_the_error_of_a_missing_folder_says_how_to_fix_it(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"cannot be opened .*; check that its folder is there"):
        migrate(url_of(tmp_path / "none" / "state.sqlite"))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Database, sqlite3.Connection]]:
    """Return a database, and the connection of another process that holds the lock of its writers."""
    monkeypatch.setattr(database_module, "LOCK_WAIT_S", 0.5)
    monkeypatch.setattr(database_module, "CHECK_WAIT_S", 0.01)
    url = url_of(tmp_path / "state.sqlite")
    migrate(url)
    database, other = Database(url), sqlite3.connect(tmp_path / "state.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield database, other
    database.close()
    other.close()


def test_only_the_first_write_waits_for_a_lock_that_another_process_holds(
    held: tuple[Database, sqlite3.Connection],
) -> None:
    database, other = held
    waits_s = []
    for _ in range(4):
        start = time.monotonic()
        with pytest.raises(NotReadyError, match=r"is locked by another process .*; try again"), database.writing():
            pass
        waits_s.append(time.monotonic() - start)
    assert waits_s[0] >= 0.5 > sum(waits_s[1:])
    with database.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM model")).scalar_one() == 0
    other.execute("ROLLBACK")
    with database.writing():
        pass


def test_the_check_of_a_database_tells_whether_another_process_holds_it(
    held: tuple[Database, sqlite3.Connection],
) -> None:
    database, other = held
    database.check()
    with pytest.raises(NotReadyError, match="is locked by another process"):
        database.check_writable()
    other.execute("ROLLBACK")
    database.check_writable()


def test_a_statement_that_a_newer_schema_refuses_is_not_ready(tmp_path: Path) -> None:
    database = Database(url_of(tmp_path / "state.sqlite"))
    database.migrate()
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    newer = pytest.raises(NotReadyError, match="of a newer roofcast; upgrade roofcast and restart it")
    with newer as caught, database.writing() as connection:
        connection.execute(sa.text("INSERT INTO model (id) VALUES ('x')"))
    assert isinstance(caught.value.__cause__, sa.exc.IntegrityError)
    database.close()


def test_an_error_rolls_the_transaction_back(tmp_path: Path) -> None:
    database = Database(url_of(tmp_path / "state.sqlite"))
    database.migrate()
    insert = sa.text(
        "INSERT INTO model (id, spec, config, added_at, uploader) VALUES ('x', '1', '1', '2025-01-01', '')"
    )

    def fail_after_insert() -> None:
        with database.writing() as connection:
            connection.execute(insert)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_insert()
    with database.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM model")).scalar_one() == 0
    database.close()


@pytest.mark.parametrize(
    ("url", "problem"),
    [("nonsense", "must be a database URL"), ("mysql://x/y", "must be of sqlite or postgresql, got 'mysql'")],
)
def test_other_urls_are_refused(url: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Database(url)


def test_error_messages_hold_no_password() -> None:
    try:
        database = Database("postgresql+psycopg://me:secret@127.0.0.1:1/x?connect_timeout=1")
    except InputError as error:
        assert "driver 'psycopg' is not installed" in str(error)  # noqa: PT017
        return
    with pytest.raises(NotReadyError) as caught, database.reading() as connection:
        connection.execute(sa.text("SELECT 1"))
    assert "secret" not in str(caught.value)


def test_a_server_that_does_not_answer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setattr(database_module, "_PATIENCE", {"connect_timeout": 2})
    with socket.create_server(("127.0.0.1", 0)) as server:
        database = Database(f"postgresql+psycopg://me@127.0.0.1:{server.getsockname()[1]}/x")
        with pytest.raises(NotReadyError, match="timeout"), database.reading():
            pass
        database.close()
