from __future__ import annotations

import os
from pathlib import Path

import pytest
import sqlalchemy as sa

from roofcast.data.errors import NotReadyError
from roofcast.data.store.database.database import Database
from roofcast.data.store.database.database_problems import problem_of

SELECT = sa.text("SELECT 1")


class DriverError(Exception):
    """Error of a database driver, with PostgreSQL's code if it has one."""

    def __init__(self, text: str, sqlstate: str | None = None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("no such table: measurement", None, "has no schema yet"),
        ("table measurement has no column named batch_wait_step", None, "has an older schema"),
        ("database is locked", None, "is locked by another process"),
        ("file is not a database", None, "is no database or a damaged one"),
        ("database disk image is malformed", None, "is no database or a damaged one"),
        ("database or disk is full", None, "has no room left"),
        ("attempt to write a readonly database", None, "may not be written"),
        ("unable to open database file", None, "cannot be opened"),
        ("disk I/O error", None, "cannot be used"),
        ('FATAL:  password authentication failed for user "me"', None, "refuses the user or the password"),
        ('FATAL:  database "x" does not exist', None, "is not on its server"),
        ("connection refused\n\tIs the server running?", None, "does not answer"),
        ("connection timeout expired", None, "does not answer"),
        ("FATAL:  sorry, too many clients already", None, "has no connection free"),
        ("deadlock detected", "40P01", "was changed by another process"),
        ("cannot execute INSERT in a read-only transaction", "25006", "may not be written"),
        ("permission denied for table y", "42501", "may not be written"),
        ('prepared statement "_pg3_0" does not exist', "26000", "lost a prepared statement"),
    ],
)
def test_each_error_has_a_problem_and_how_to_fix_it(text: str, state: str | None, message: str) -> None:
    problem = problem_of(sa.exc.OperationalError("", None, DriverError(text, state)))
    assert problem.startswith(f"{message}")
    assert problem.count("; ") == 1
    assert "\n" not in problem


@pytest.mark.parametrize("kind", [sa.exc.IntegrityError, sa.exc.DataError, sa.exc.ProgrammingError])
def test_errors_of_statements_have_no_problem(kind: type[sa.exc.DBAPIError]) -> None:
    assert problem_of(kind("", None, DriverError("syntax error at or near 'x'", "42601"))) == ""


def test_an_exhausted_pool_has_a_problem() -> None:
    error = sa.exc.TimeoutError("QueuePool limit of size 5 overflow 10 reached, connection timed out")
    assert problem_of(error).startswith("has no connection free")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the super-user may write everything")
def test_a_read_only_file_is_not_ready(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'state.sqlite'}")
    database.migrate()
    database.close()
    (tmp_path / "state.sqlite").chmod(0o444)
    with pytest.raises(NotReadyError, match="may not be written"):
        database.migrate()


@pytest.mark.parametrize(
    ("part", "other", "message"),
    [
        ("postgres@", "nobody:secret@", r"refuses the user or the password .*; correct them in the URL"),
        ("/postgres", "/nothing", r"is not on its server .*; create it, or correct its name"),
        ("127.0.0.1", "nowhere.invalid", r"does not answer .*; check host and port"),
    ],
)
def test_a_refusal_of_the_server_has_its_reason(postgres_server: str, part: str, other: str, message: str) -> None:
    head, _, tail = postgres_server.rpartition(part)
    database = Database(f"{head}{other}{tail}")
    with pytest.raises(NotReadyError, match=message) as caught, database.reading() as connection:
        connection.execute(SELECT)
    assert "secret" not in str(caught.value)


def test_a_server_without_schema_is_not_ready(postgres_server: str) -> None:
    database = Database(postgres_server)
    assert not database.has_schema()
    with pytest.raises(NotReadyError, match=r"has no schema yet .*migrate\(\)"), database.reading() as connection:
        connection.execute(sa.text("SELECT * FROM measurement"))
    database.close()


def test_reading_a_missing_database_creates_no_file(tmp_path: Path) -> None:
    file = tmp_path / "none" / "state.sqlite"
    assert not Database(f"sqlite:///{file}").has_schema()
    assert not file.parent.exists()
    assert not Database("sqlite://").has_schema()
