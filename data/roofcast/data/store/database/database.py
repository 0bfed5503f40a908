"""The store's database, SQLite or PostgreSQL: connections, transactions, schema version."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import StaticPool

from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.store.database.database_problems import DAMAGED, LOCKED, problem_of
from roofcast.data.store.database.sqlite_file import DatabaseLostError, SqliteFile
from roofcast.data.units import ms_from_s

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy.dialects import postgresql

logger = logging.getLogger(__name__)

LOCK_WAIT_S: Final = 5.0
"""Longest wait for a lock that another process holds; after it, writes for so long do not wait at all, because
requests keep their slots while they wait."""

CHECK_WAIT_S: Final = 1.0
"""The same of the check whether the database can be written."""


_PATIENCE: Final = {"connect_timeout": 5, "tcp_user_timeout": int(ms_from_s(10))}
"""Connection options of PostgreSQL, in its units, if the URL has none: a lost server fails fast."""

_MIGRATION_LOCK: Final = 0x726F6F66
_DIALECTS: Final = ("sqlite", "postgresql")
_IN_MEMORY: Final = (None, "", ":memory:")


class Database:
    """A database by its URL; it connects at first use.

    `url`: such as ``sqlite:////var/lib/roofcast/roofcast.sqlite`` or ``postgresql+psycopg://user@host/name``.
    ``sqlite://`` is in memory, for one thread at a time. Raises `InputError` if the URL is malformed, of another kind
    of database, or its driver is not installed.
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
        name = self.url.database
        is_file = self._is_sqlite and name not in _IN_MEMORY and not str(name).startswith("file:")
        self._file = SqliteFile(Path(str(name))) if is_file else None
        self._held_until = 0.0

    @property
    def _is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a connection for queries.

        Raises `NotReadyError` if the database cannot be reached or read, or has no schema yet; `DatabaseLostError` if
        its file was deleted.
        """
        self._check_present()
        with self._translated_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a transaction for writing: committed at the end, rolled back if an error escapes.

        An SQLite file is checked for damage before the first transaction; before and after each one, that it was not
        deleted.

        Raises `NotReadyError` if the database cannot be reached or written, is damaged, or has no schema yet;
        `DatabaseLostError` if its file was deleted, or deleted during the transaction.
        """
        self.check()
        with self._write_transaction(0.0 if time.monotonic() < self._held_until else LOCK_WAIT_S) as writer:
            if not self._is_sqlite:
                writer.exec_driver_sql(f"SET LOCAL lock_timeout = {int(ms_from_s(LOCK_WAIT_S))}")
            yield writer
            if self._file:
                self._file.check_log_present()
        self._check_present()

    @contextmanager
    def _write_transaction(self, wait_s: float) -> Iterator[sa.Connection]:
        try:
            with self._translated_errors(), self.engine.connect() as connection:
                writer = connection.execution_options(begin="BEGIN IMMEDIATE", wait_s=wait_s)
                with writer.begin():
                    self._held_until = 0.0
                    yield writer
        except NotReadyError as error:
            if LOCKED in str(error):
                self._held_until = time.monotonic() + LOCK_WAIT_S
            raise

    def check(self) -> None:
        """Check that an SQLite file is still there and, once, that it is undamaged.

        Raises `NotReadyError` if it is damaged or cannot be read; `DatabaseLostError` if it was deleted or replaced.
        """
        if self._file is None:
            return
        self._check_present()
        if not self._file.is_checked:
            with self._translated_errors(), self.engine.connect() as connection:
                self._file.check_content(connection)
        self._file.check_undamaged()

    def check_writable(self) -> None:
        """Check that an SQLite file can be written now, besides `check`; writes nothing.

        Raises `NotReadyError` as of `check`, or if another process holds the lock of writers, or the file may not be
        written.
        """
        self.check()
        if self._file is None:
            return
        with self._write_transaction(CHECK_WAIT_S):
            pass

    def _check_present(self) -> None:
        if self._file is None:
            return
        try:
            self._file.check_present()
        except DatabaseLostError:
            self.engine.dispose()
            raise

    def lock(self, connection: sa.Connection, name: str) -> None:
        """Wait until no other transaction holds the lock of a name, and hold it to the end of this one.

        On SQLite a transaction of `writing` excludes all others anyway.
        """
        if not self._is_sqlite:
            key = sa.func.hashtextextended(name, 0)
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """Return an insertion in the dialect of the database, which may have an `on_conflict` clause."""
        if self._is_sqlite:
            return sqlite.insert(table)
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415  (takes .1 s, and SQLite does without)

        return postgresql.insert(table)

    def insert_new(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """Return the insertion of the rows whose `id` is new."""
        return self.insert(table).on_conflict_do_nothing(index_elements=["id"])

    def by_code_point(self, column: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        """Return the column ordered by code points: SQLite's default, where PostgreSQL's is that of a language."""
        return column if self._is_sqlite else column.collate("C")

    def has_schema(self) -> bool:
        """Return whether the database has tables; writes nothing and creates no file.

        Raises `NotReadyError` if the database cannot be read, or its schema is of another version of roofcast.
        """
        return self._revision() is not None

    def _revision(self) -> str | None:
        if self._file and not self._file.path.exists():
            return None
        with self.reading() as connection:
            return _known_revision(connection)

    def migrate(self) -> None:
        """Bring the schema up to date; several processes may do so at once.

        Raises `NotReadyError` if the database cannot be written, or comes from a newer version of roofcast.
        """
        if self._is_sqlite:
            self._use_write_ahead_log()
        if self._revision() == revisions()[-1]:
            return
        with self.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            if _known_revision(connection) == revisions()[-1]:
                return
            from alembic import command  # noqa: PLC0415  (a schema that is up to date does without)

            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def _use_write_ahead_log(self) -> None:
        # here SQLite does not wait for locks itself
        deadline = time.monotonic() + LOCK_WAIT_S
        if self._file:
            self._file.create()
        while True:
            try:
                with self._translated_errors(), self.engine.connect() as connection:
                    outside = connection.execution_options(begin="")
                    mode = outside.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one()
                if self._file:
                    self._file.has_write_ahead_log = mode == "wal"
                return
            except NotReadyError as error:
                if LOCKED not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError, UnicodeDecodeError) as error:
            problem = DAMAGED if isinstance(error, UnicodeDecodeError) else problem_of(error)
            if not problem:
                self._check_not_newer(error)
                raise
            place = self.url.render_as_string(hide_password=True)
            raise NotReadyError(f"the database {place} {problem}") from error

    def _check_not_newer(self, error: Exception) -> None:
        # the rules of a schema that a newer roofcast has migrated refuse our statements
        try:
            with self.engine.connect() as connection:
                _known_revision(connection)
        except NotReadyError as newer:
            raise newer from error
        except sa.exc.SQLAlchemyError:
            logger.warning("schema not checked after an error of a statement", exc_info=True)


def _known_revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    current: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    if current is not None and current not in revisions():
        problem = f"the database has schema {current!r}"
        if current < revisions()[0]:
            cure = "import its files again into another state folder"
            raise NotReadyError(f"{problem} from before the first release; {cure}")
        raise NotReadyError(
            f"{problem} of a newer roofcast; upgrade roofcast and restart it, or use another database"
        )
    return current


@functools.cache
def revisions() -> tuple[str, ...]:
    """Return the revisions of the schema, oldest first: the numbers of the files in ``migrations/versions``.

    An upgrade of the package adds files; a process that runs knows those of its start.
    """
    return tuple(sorted(file.stem[1:5] for file in Path(__file__).with_name("migrations").glob("versions/v*.py")))


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
    cursor.execute(f"PRAGMA busy_timeout = {int(ms_from_s(LOCK_WAIT_S))}")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA cell_size_check = ON")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # a writer takes its lock at once, since upgrading a read lock later may fail
    options = connection.get_execution_options()
    statement = options.get("begin", "BEGIN")
    if "wait_s" in options:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(ms_from_s(options['wait_s']))}")
    if statement:
        connection.exec_driver_sql(statement)


def alembic_config() -> Config:
    """Return the configuration of the migrations; `attributes["connection"]` is theirs."""
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
