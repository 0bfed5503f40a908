"""The file of an SQLite database while it is in use: whether it is still there, and undamaged.

SQLite keeps writing to a file that was deleted, as its connections hold it open; such writes end with the process.
"""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from roofcast.data.errors import NotReadyError
from roofcast.data.private_files import make_private_file

Identity = tuple[int, int]
"""Device and inode of a file."""

LOST: Final = "stop the service, put the file back, with its -wal file if there is one, and start the service again"


class DatabaseLostError(NotReadyError):
    """The file of the database was deleted or replaced while it was in use."""


class SqliteFile:
    """File of an SQLite database, which may not exist yet; `is_checked` once `check_content` has ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.has_write_ahead_log = False
        self._identity: Identity | None = None
        self._checking = threading.Lock()
        self.is_checked = False
        self._damage = ""
        self._loss = ""

    def create(self) -> None:
        """Create the file for its owner alone, unless it exists; SQLite reports it if that is impossible."""
        with suppress(OSError):
            make_private_file(self.path)

    def check_present(self) -> None:
        """Check that the path still names the file of the first call that found one.

        A loss is final, because the inode of a deleted file may be given to a new one.

        Raises `DatabaseLostError` if it was deleted or replaced.
        """
        present = _identity(self.path)
        if self._identity is None:
            self._identity = present
        elif not self._loss and present != self._identity:
            fate = "deleted" if present is None else "replaced by another file"
            self._loss = f"the database {self.path} was {fate} while it was in use; {LOST}"
        if self._loss:
            raise DatabaseLostError(self._loss)

    def check_log_present(self) -> None:
        """Check that the write-ahead log is there; call it within a transaction.

        Raises `DatabaseLostError` if it was deleted.
        """
        log = self.path.with_name(f"{self.path.name}-wal")
        if self.has_write_ahead_log and not log.exists():
            self._loss = f"the write-ahead log {log} was deleted while it was in use; {LOST}"
            raise DatabaseLostError(self._loss)

    def check_content(self, connection: sa.Connection) -> None:
        """Check all pages and indices, once: a write to a damaged file may be lost, or damage more of it.

        References
        ----------
        "PRAGMA integrity_check", sqlite.org.
        """
        with self._checking:
            if not self.is_checked:
                report = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one())
                self._damage = "" if report == "ok" else " ".join(report.split())
                self.is_checked = True

    def check_undamaged(self) -> None:
        """Raise `NotReadyError` if `check_content` found damage."""
        if self._damage:
            problem = f"the database {self.path} is damaged ({self._damage})"
            raise NotReadyError(f"{problem}; nothing is written to it; restore it from a copy and restart")


def _identity(path: Path) -> Identity | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
