"""The store's database: opening it, its transactions, its schema; SQLite or PostgreSQL."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.pool import StaticPool

from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.store.database_problems import LOCKED, problem_of
from roofcast.data.units import ms_from_s

BUSY_TIMEOUT_S: Final = 60.0

SchemaState = Literal["none", "old", "current"]
"""What a database holds: no schema, one that `Database.migrate` would bring up to date, or this version's."""

_PATIENCE: Final = {"connect_timeout": 5, "tcp_user_timeout": int(ms_from_s(10))}
"""Of PostgreSQL, in its own units, where the URL says nothing: a server that is gone is not waited for."""

_MIGRATION_LOCK: Final = 0x726F6F66
_DIALECTS: Final = ("sqlite", "postgresql")
_IN_MEMORY: Final = (None, "", ":memory:")


class Database:
    """A database by its URL; connects when first used.

    Parameters
    ----------
    url
        Such as ``sqlite:////var/lib/roofcast/roofcast.sqlite`` or ``postgresql+psycopg://user@host/name``.
        ``sqlite://`` lives in memory, for one thread at a time.

    Raises
    ------
    InputError
        If the URL is malformed, of another kind of database, or its driver is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = _parse_url(url)
        options: dict[str, Any] = {"pool_pre_ping": True}
        if not self._is_sqlite:
            options["connect_args"] = {name: value for name, value in _PATIENCE.items() if name not in self.url.query}
        if self._is_sqlite and self.url.database in _IN_MEMORY:
            options = {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
        try:
            self.engine = sa.create_engine(self.url, **options)
        except ModuleNotFoundError as error:
            raise InputError("url", f"the database driver {error.name!r} is not installed") from error
        if self._is_sqlite:
            sa.event.listen(self.engine, "connect", _configure_sqlite)
            sa.event.listen(self.engine, "begin", _begin_sqlite)
        self._watching: sa.PoolProxiedConnection | None = None
        self._watch = threading.Lock()
        self._is_closed = False

    @property
    def _is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection for queries.

        Raises
        ------
        NotReadyError
            If the database cannot be reached or read, or has no schema yet.
        """
        with self._translating(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give a connection whose changes are all kept at the end, or none if an error escapes.

        Raises
        ------
        NotReadyError
            If the database cannot be reached or written, or has no schema yet.
        """
        with self._translating(), self.engine.connect() as connection:
            writer = connection.execution_options(begin="BEGIN IMMEDIATE")
            with writer.begin():
                yield writer

    def version(self) -> int | None:
        """Return what is another number after every change that anyone keeps; None where nothing tells.

        A file of SQLite tells a connection of what others changed: one is kept for that, and writes nothing.

        References
        ----------
        "PRAGMA data_version", sqlite.org.
        """
        if not self._is_sqlite or self.url.database in _IN_MEMORY:
            return None
        with self._watch:
            if self._is_closed:
                return None
            try:
                if self._watching is None:
                    self._watching = self.engine.raw_connection()
                return int(self._watching.driver_connection.execute("PRAGMA data_version").fetchone()[0])  # type: ignore[union-attr]
            except (sqlite3.Error, sa.exc.SQLAlchemyError):
                self._stop_watching()
                return None

    def schema_state(self) -> SchemaState:
        """Return what the database holds; writes nothing, and makes no file.

        Raises
        ------
        NotReadyError
            If the database cannot be read, or comes from a newer version of roofcast.
        """
        name = self.url.database
        if self._is_sqlite and name not in _IN_MEMORY and not (name.startswith("file:") or Path(name).exists()):
            return "none"
        with self.reading() as connection:
            current = _known_revision(connection)
        head = ScriptDirectory.from_config(_alembic_config()).get_current_head()
        return "none" if current is None else "current" if current == head else "old"

    def migrate(self) -> None:
        """Bring the schema up to date; several processes may do so at once.

        Raises
        ------
        NotReadyError
            If the database cannot be written, or comes from a newer version of roofcast.
        """
        if self._is_sqlite:
            self._use_write_ahead_log()
        with self.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            _known_revision(connection)
            config = _alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def close(self) -> None:
        """Close every connection; what another thread is asking is waited for."""
        with self._watch:
            self._is_closed = True
            self._stop_watching()
        self.engine.dispose()

    def _stop_watching(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.invalidate()

    def _use_write_ahead_log(self) -> None:
        """Switch SQLite to write-ahead logging, which stays; SQLite does not wait for others on its own here."""
        deadline = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                with self._translating(), self.engine.connect() as connection:
                    outside = connection.execution_options(begin="")
                    outside.exec_driver_sql("PRAGMA journal_mode = WAL")
                return
            except NotReadyError as error:
                if LOCKED not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            problem = problem_of(error)
            if not problem:
                raise
            place = self.url.render_as_string(hide_password=True)
            raise NotReadyError(f"the database {place} {problem}") from error


def _known_revision(connection: sa.Connection) -> str | None:
    """Return the schema's revision, None without a schema; refuse one that this version does not know."""
    known = {script.revision for script in ScriptDirectory.from_config(_alembic_config()).walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        problem = f"the database has schema {current!r} of a newer roofcast"
        raise NotReadyError(f"{problem}; upgrade roofcast, or use another database")
    return current


def _parse_url(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise InputError("url", "must be a database URL such as sqlite:///roofcast.sqlite") from error
    if parsed.get_backend_name() not in _DIALECTS:
        raise InputError("url", f"must be of {' or '.join(_DIALECTS)}, got {parsed.get_backend_name()!r}")
    return parsed


def _configure_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(ms_from_s(BUSY_TIMEOUT_S))}")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Begin as the execution option says; writers take the lock at once, as a later upgrade of a read may fail."""
    statement = connection.get_execution_options().get("begin", "BEGIN")
    if statement:
        connection.exec_driver_sql(statement)


def _alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
