"""The catalogue as it is now: shipped entries, files of the state folder and models registered in the store."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import NotReadyError
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.data.specs import ModelSpec
from roofcast.data.training_campaigns import load_training_models
from roofcast.serving.app_state.catalog.registered_models import with_registered
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.app_state.store_access import StoreAccess

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Cached:
    """A catalogue, and the catalogue and registered models that it was built from."""

    base: Catalog
    models: list[ModelSpec]
    catalog: Catalog


class LiveCatalog:
    """Catalogue that follows changes of the user's files and of the store, whichever process makes them."""

    def __init__(self, files: UserFiles, store: StoreAccess) -> None:
        self._files = files
        self._store = store
        self._polling = threading.Lock()
        self._models: list[ModelSpec] = []
        self._cached: dict[Target, _Cached] = {INFERENCE: _Cached(load_catalog(), [], load_catalog())}

    def catalog_of(self, target: Target) -> Catalog:
        """Return the catalogue of a target; the same object until something changes.

        That of training jobs also has the models of the training campaigns, which precede registered ones.

        One thread polls the store; the others, and all while the store does not answer, get the models of the last
        poll.
        """
        base, models = self._files.catalog, self._poll_models()
        cached = self._cached.get(target)
        if cached is None or base is not cached.base or models != cached.models:
            shipped = base.with_models(load_training_models()) if target == TRAINING else base
            cached = self._cached[target] = _Cached(base, models, with_registered(shipped, models))
        return cached.catalog

    def _poll_models(self) -> list[ModelSpec]:
        if not self._store.is_paused and self._polling.acquire(blocking=False):
            try:
                self._models = self._store.load_models()
            except NotReadyError as error:
                logger.warning("registered models not refreshed: %s", error)
                self._store.pause(str(error))
            finally:
                self._polling.release()
        return self._models

    def reload_models(self) -> None:
        """Load the registered models now, so that the next reader gets them; waits for a poll in progress."""
        with self._polling, contextlib.suppress(NotReadyError):
            self._models = self._store.open().models.load()
