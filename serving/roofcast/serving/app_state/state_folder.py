"""The state folder and its measurement store. Imports no learning library, so listings start quickly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roofcast.data.errors import NotReadyError
from roofcast.data.home import DATABASE_NAME
from roofcast.data.private_files import make_private_folder
from roofcast.serving.app_state.settings import Settings

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore


def open_store(settings: Settings) -> MeasurementStore:
    """Open the measurement store and migrate its schema; create the state folder if it does not exist.

    Raises
    ------
    NotReadyError
        If the state folder cannot be created or the store cannot be opened.
    """
    from roofcast.data.store.measurement_store import MeasurementStore  # noqa: PLC0415  (needs SQLAlchemy)

    make_home(settings.home)
    return MeasurementStore(settings.store_url).migrate()


def make_home(home: Path) -> Path:
    """Create the state folder if it does not exist, for its owner alone, and return it.

    Raises
    ------
    NotReadyError
        If it cannot be created.
    """
    try:
        make_private_folder(home, DATABASE_NAME)
    except OSError as error:
        problem = f"the state folder {home} cannot be created: {error.strerror}"
        raise NotReadyError(f"{problem}; set ROOFCAST_HOME to another folder") from error
    return home
