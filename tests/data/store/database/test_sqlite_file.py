import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from roofcast.data.errors import NotReadyError
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.sqlite_file import DatabaseLostError

INSERT = """
INSERT INTO retraining (
    id, state, target, requested_at, error, stage, owner, learnable_digest, n_step_done, n_step, n_interruption
) VALUES ('{}', 'done', 'inference', '2026-01-01', '', '', '', '', 0, 0, 0)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def database(file: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{file}")
    database.migrate()
    write(database, "first")
    yield database
    database.close()


def write(database: Database, name: str) -> None:
    with database.writing() as connection:
        connection.execute(sa.text(INSERT.format(name)))


def damage(file: Path) -> None:
    """Write over the middle of each page but the first, after the write-ahead log was merged."""
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    content = bytearray(file.read_bytes())
    for page in range(size, len(content), size):
        content[page + 8 : page + 24] = b"\xff" * 16
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_deleted_under_its_connections_is_noticed(
    is_replaced: bool, file: Path, database: Database
) -> None:
    copy = file.read_bytes()
    file.unlink()
    if is_replaced:
        file.write_bytes(copy)
    with pytest.raises(DatabaseLostError, match="replaced" if is_replaced else "deleted"):
        write(database, "second")
    with pytest.raises(DatabaseLostError), database.reading():
        pass
    with pytest.raises(DatabaseLostError):
        database.check()
    assert file.exists() == is_replaced, "no empty database takes its place"


def test_a_file_that_is_deleted_within_a_transaction_is_not_acknowledged(file: Path, database: Database) -> None:
    def write_and_delete() -> None:
        with database.writing() as connection:
            connection.execute(sa.text(INSERT.format("second")))
            file.unlink()

    with pytest.raises(DatabaseLostError):
        write_and_delete()


def test_a_deleted_write_ahead_log_is_noticed(file: Path, database: Database) -> None:
    file.with_name("state.sqlite-wal").unlink()
    with pytest.raises(DatabaseLostError, match="-wal was deleted"):
        write(database, "second")


def test_a_file_that_comes_back_is_not_trusted(file: Path, database: Database) -> None:
    away = file.rename(file.with_name("away"))
    with pytest.raises(DatabaseLostError):
        write(database, "second")
    assert not file.exists()
    away.rename(file)
    with pytest.raises(DatabaseLostError):
        write(database, "second")


def test_a_damaged_file_is_not_written(file: Path, database: Database) -> None:
    database.close()
    damage(file)
    before = file.read_bytes()
    damaged = Database(f"sqlite:///{file}")
    for _ in range(2):
        with pytest.raises(NotReadyError, match="damaged"):
            write(damaged, "second")
    damaged.close()
    assert file.read_bytes() == before


def test_a_file_is_checked_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *event: statements.append(event[2]))
    again = Database(database.url.render_as_string())
    sa.event.listen(again.engine, "before_cursor_execute", lambda *event: statements.append(event[2]))
    for name in ("second", "third"):
        write(again, name)
        write(database, f"{name} here")
    again.close()
    assert sum("integrity_check" in statement for statement in statements) == 1


def test_a_new_database_is_private(file: Path, database: Database) -> None:
    for name in ("", "-wal", "-shm"):
        assert file.with_name(f"state.sqlite{name}").stat().st_mode & 0o777 == 0o600
