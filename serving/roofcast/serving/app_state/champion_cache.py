"""Local caches of the last served champion and of the challenger, used at startup when MLflow is slow or down.

The registry cannot confirm the checksum at startup, so the cache and the bundle are used only if no other user can
have written them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from roofcast.training.lifecycle.registry.registry import Champion

logger = logging.getLogger(__name__)

FILE_NAME: Final = "champion.json"
CHALLENGER_FILE_NAME: Final = "challenger.json"


def ownership_problem(file: Path) -> str:
    """Return why another user may have written a file; blank if none can, or if the platform has no owners.

    Raises `OSError` if the file's status cannot be read.
    """
    if not hasattr(os, "getuid"):
        return ""
    status = file.stat()
    if status.st_uid != os.getuid():
        return f"{file} must belong to the user {os.getuid()} that serves, got {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{file} must not be writable by others; chmod go-w it"
    return ""


class ChampionCache:
    """File in the state folder with a version, the checksum of its bundle and the registry's stamp."""

    def __init__(self, home: Path, name: str = FILE_NAME) -> None:
        self._file = home / name

    def write(self, champion: Champion | None, stamp: str = "") -> None:
        """Write a version, or that there is none, and the registry's stamp, which is blank if it has none.

        A failure is logged.
        """
        draft = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump({**(asdict(champion) if champion else {}), "stamp": stamp}, stream)
            draft.replace(self._file)
        except OSError as error:
            logger.warning("%s not written: %s", self._file.name, error)
            with contextlib.suppress(OSError):
                draft.unlink()

    def read(self) -> tuple[Champion | None, str] | None:
        """Return the stored version, if any, and stamp; None if the file is missing, damaged or not trusted."""
        from roofcast.training.lifecycle.registry.registry import Champion  # noqa: PLC0415  (the learning libraries)

        try:
            problem = ownership_problem(self._file)
            if problem:
                logger.warning("%s ignored: %s", self._file.name, problem)
                return None
            fields = json.loads(self._file.read_text(encoding="utf-8"))
            stamp = str(fields.get("stamp", ""))
            if "version" not in fields:
                return None, stamp
            version, run_id, checksum = (str(fields[name]) for name in ("version", "run_id", "sha256"))
            champion = Champion(version, run_id, checksum, str(fields.get("signature", "")))
            return champion, stamp
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
