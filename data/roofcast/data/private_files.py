"""Folders and files that their owner alone may read: the state folder and its databases."""

import os
import stat
from pathlib import Path
from typing import Final

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_private_folder(folder: Path, marker: str) -> Path:
    """Create a folder that its owner alone may enter, unless it exists, and return it.

    `marker`: name of a file. An older folder that contains it is closed to others, see `close_to_others`. Raises
    `OSError` if it cannot be created.
    """
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(FOLDER_MODE, exist_ok=True)
    elif (folder / marker).exists():
        close_to_others(folder)
    return folder


def make_private_file(file: Path) -> Path:
    """Create an empty file that its owner alone may read, unless it exists, and return it.

    Raises `OSError` if it cannot be created.
    """
    if file.exists():
        close_to_others(file)
    else:
        file.touch(FILE_MODE)
    return file


def close_to_others(path: Path) -> None:
    """Take the rights of group and others away.

    A path of another owner stays as it is, and so does one that its group may write: it is shared on purpose.
    """
    status = path.stat()
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if is_own and status.st_mode & _OTHERS and not status.st_mode & stat.S_IWGRP:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
