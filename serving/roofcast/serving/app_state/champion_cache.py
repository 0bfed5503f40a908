"""Local cache of the last served champion, used at startup when MLflow is slow or down.

The registry's checksum cannot be compared then, so the cache and the bundle are used only if nobody but this user can
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
    from roofcast.training.lifecycle.registry import Champion

logger = logging.getLogger(__name__)

FILE_NAME: Final = "champion.json"


def distrusted(file: Path) -> str:
    """Return why another user may have written a file; blank if none can, or if the platform has no owners.

    Raises
    ------
    OSError
        If it cannot be looked at.
    """
    if not hasattr(os, "getuid"):
        return ""
    found = file.stat()
    if found.st_uid != os.getuid():
        return f"{file} must belong to the user {os.getuid()} that serves, got {found.st_uid}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{file} must not be writable by others; chmod go-w it"
    return ""


class ChampionCache:
    """File in the state folder that names a version, with the checksum that the registry has of its bundle.

    Parameters
    ----------
    home
        State folder.
    """

    def __init__(self, home: Path) -> None:
        self._file = home / FILE_NAME

    def keep(self, champion: Champion, stamp: str = "") -> None:
        """Write the champion's name; a failure is logged.

        Parameters
        ----------
        champion
            Of the registry.
        stamp
            Of the registry at that time; blank if it has none.
        """
        draft = self._file.with_name(f".{FILE_NAME}.{os.getpid()}")
        try:
            draft.unlink(missing_ok=True)
            opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="utf-8") as stream:
                json.dump({**asdict(champion), "stamp": stamp}, stream)
            draft.replace(self._file)
        except OSError as error:
            logger.warning("the champion's name cannot be kept: %s", error)
            with contextlib.suppress(OSError):
                draft.unlink()

    def read(self) -> tuple[Champion, str] | None:
        """Return the stored champion and stamp, or None if there is none that can be read and trusted."""
        from roofcast.training.lifecycle.registry import Champion  # noqa: PLC0415  (the learning libraries)

        try:
            why_not = distrusted(self._file)
            if why_not:
                logger.warning("the champion that served here last is not believed: %s", why_not)
                return None
            fields = json.loads(self._file.read_text(encoding="utf-8"))
            champion = Champion(str(fields["version"]), str(fields["run_id"]), str(fields["sha256"]))
            return champion, str(fields.get("stamp", ""))
        except (OSError, ValueError, TypeError, KeyError):
            return None
