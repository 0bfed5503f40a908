"""The state folder and its measurement store. Imports no learning library, so listings start quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roofcast.data.home import make_home
from roofcast.serving.app_state.settings import Settings

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore


def open_store(settings: Settings) -> MeasurementStore:
    """Open the measurement store and migrate its schema; create the state folder if it does not exist.

    Raises `NotReadyError` if the state folder cannot be created or the store cannot be opened.
    """
    from roofcast.data.store.measurement_store import MeasurementStore  # noqa: PLC0415  (needs SQLAlchemy)

    make_home(settings.home)
    return MeasurementStore(settings.store_url).migrate()
