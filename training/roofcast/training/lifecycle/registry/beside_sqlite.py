"""Descriptors of SQLite files for reading them beside connections of the same process."""

import os
import threading
from pathlib import Path

_descriptors: dict[tuple[int, int], int] = {}
_opening = threading.Lock()


def open_beside_sqlite(path: Path) -> int:
    """Return a descriptor of a database file for reading, the same one for each call; it stays open.

    A process that closes any descriptor of a file loses all its POSIX locks on it, so those of its connections too:
    another process may then write within a transaction of this one.

    Raises `OSError` if the file cannot be opened.

    References
    ----------
    "How To Corrupt An SQLite Database File", section 2.2, sqlite.org.
    """
    with _opening:
        status = path.stat()
        identity = status.st_dev, status.st_ino
        if identity not in _descriptors:
            _descriptors[identity] = os.open(path, os.O_RDONLY)
        return _descriptors[identity]
