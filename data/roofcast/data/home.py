"""State folder of roofcast on this machine."""

import os
import tempfile
from pathlib import Path
from typing import Final

import platformdirs

from roofcast.data.errors import NotReadyError
from roofcast.data.private_files import make_private_folder

HOME_VARIABLE: Final = "ROOFCAST_HOME"

DATABASE_NAME: Final = "roofcast.sqlite"
"""File of the store in the state folder."""


def home_path() -> Path:
    """Return the path of the state folder: `ROOFCAST_HOME`, else the platform's user data folder."""
    path = os.environ.get(HOME_VARIABLE, "")
    return Path(path).expanduser().absolute() if path else platformdirs.user_data_path("roofcast")


def make_home(home: Path) -> Path:
    """Create the state folder if it does not exist, for its owner alone, and return it.

    Raises `NotReadyError` if it cannot be created.
    """
    try:
        make_private_folder(home, DATABASE_NAME)
    except OSError as error:
        problem = f"the state folder {home} cannot be created: {error.strerror}"
        raise NotReadyError(f"{problem}; set {HOME_VARIABLE} to a folder that can be written") from error
    return home


def writable_home(home: Path) -> Path:
    """Create the state folder if needed, check that it is writable and return it.

    Call it before a computation that takes hours, or a service that writes later.

    Raises `NotReadyError` if the folder cannot be created or written.
    """
    try:
        with tempfile.TemporaryFile(dir=make_home(home)):
            return home
    except OSError as error:
        problem = f"the state folder {home} cannot be written: {error.strerror or error}"
        raise NotReadyError(f"{problem}; set {HOME_VARIABLE} to another folder") from error


def roofcast_home() -> Path:
    """Return the state folder, created if absent; raises as `make_home`."""
    return make_home(home_path())
