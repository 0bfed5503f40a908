"""Access to the measurement store: opened on first use, retried after a pause if it does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from roofcast.data.errors import NotReadyError
from roofcast.data.home import make_home
from roofcast.data.specs import ModelSpec
from roofcast.data.store.database.sqlite_listing import list_models, list_stacks, list_uploaders
from roofcast.serving.app_state.settings import Settings

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore

RETRY_PAUSE_S: Final = 5.0
"""Time without a new attempt after the store did not answer."""


def open_migrated(settings: Settings) -> MeasurementStore:
    """Open the measurement store and migrate its schema; create the state folder if it does not exist.

    Raises `NotReadyError` if the state folder cannot be created or the store cannot be opened.
    """
    from roofcast.data.store.measurement_store import MeasurementStore  # noqa: PLC0415  (needs SQLAlchemy)

    make_home(settings.home)
    return MeasurementStore(settings.store_url).migrate()


class StoreAccess:
    """The measurement store of some settings, shared by threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: MeasurementStore | None = None
        self._opening = threading.Lock()
        self._retry_at = 0.0
        self._problem = ""

    def open(self) -> MeasurementStore:
        """Return the store, opened and migrated by the first call.

        Raises `NotReadyError` if the store cannot be opened; during the pause after a failure, without another
        attempt.
        """
        with self._opening:
            if self._store is None:
                if self.is_paused:
                    raise NotReadyError(self._problem)
                try:
                    self._store = open_migrated(self._settings)
                except NotReadyError as error:
                    self.pause(str(error))
                    raise
            return self._store

    @contextmanager
    def unmigrated(self) -> Iterator[MeasurementStore]:
        """Open the store apart from other callers', neither created nor migrated: for a dry run."""
        from roofcast.data.store.measurement_store import MeasurementStore  # noqa: PLC0415  (needs SQLAlchemy)

        with MeasurementStore(self._settings.store_url) as store:
            yield store

    @property
    def is_paused(self) -> bool:
        """Whether the store failed less than `RETRY_PAUSE_S` ago."""
        return time.monotonic() < self._retry_at

    def pause(self, problem: str) -> None:
        """Start the pause after a failure."""
        self._problem, self._retry_at = problem, time.monotonic() + RETRY_PAUSE_S

    def load_models(self) -> tuple[list[ModelSpec], dict[str, str], list[tuple[Any, ...]]]:
        """Return the registered models, the uploader of each of them, and the stacks that were measured.

        An SQLite store that is not open yet is read without opening it. Uploaders are read last, so that no model
        lacks one.

        Raises `NotReadyError` if the store does not answer.
        """
        file = self._settings.store_file
        models = list_models(file) if self._store is None and file else None
        stacks = list_stacks(file) if models is not None and file else None
        uploaders = list_uploaders(file) if stacks is not None and file else None
        if models is None or stacks is None or uploaders is None:
            store = self.open()
            models, stacks, uploaders = store.models.load(), store.measured_stacks(), store.models.uploaders()
        return models, uploaders, stacks

    def close(self) -> None:
        """Close the store, if it is open."""
        if self._store is not None:
            self._store.close()
