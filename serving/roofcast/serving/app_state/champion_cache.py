"""The champion that was in service last, for processes that start: asking the registry takes long, or is in vain.

A bundle is code once it is loaded. What names it and what it is are therefore believed only if nobody but this user
can have written them.
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
    """Return why a file may be another user's work; blank if it is not, or if the platform does not tell.

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
    """A file in the state folder that names a version, as the registry told of it, with its bundle's checksum.

    Parameters
    ----------
    home
        State folder.
    """

    def __init__(self, home: Path) -> None:
        self._file = home / FILE_NAME

    def keep(self, champion: Champion, stamp: str = "") -> None:
        """Name the champion from now on; where that cannot be written, service goes on without.

        Parameters
        ----------
        champion
            Of the registry.
        stamp
            Of the registry when it told of it; blank if it has none.
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
        """Return the champion that was kept and the stamp, or None if there is none that can be read and believed."""
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
