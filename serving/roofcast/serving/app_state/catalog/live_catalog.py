"""The catalogue as it is now: shipped entries, files of the state folder and models registered in the store."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass, field
from typing import Final

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import NotReadyError
from roofcast.data.job_campaigns import load_job_models
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.data.specs import ModelSpec
from roofcast.serving.app_state.catalog.registered_models import with_registered
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.app_state.store_access import StoreAccess

logger = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 5.0
POLL_WAIT_S: Final = 0.25
"""Longest time that a reader waits for the first and for a later poll of a database server."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The registered models, and the API key that registered each, by id; blank for an operator."""

    models: list[ModelSpec] = field(default_factory=list)
    uploaders: dict[str, str] = field(default_factory=dict)

    @property
    def of_keys(self) -> frozenset[str]:
        """Ids of the models that keys registered."""
        return frozenset(id_ for id_, uploader in self.uploaders.items() if uploader)


@dataclass(frozen=True, slots=True)
class _Cached:
    """A catalogue, and the catalogue and registered models that it was built from."""

    base: Catalog
    registered: Registered
    catalog: Catalog


class LiveCatalog:
    """Catalogue that follows changes of the user's files and of the store, whichever process makes them.

    Parameters
    ----------
    share
        Whether callers see the models that others' keys registered.
    """

    def __init__(self, files: UserFiles, store: StoreAccess, *, share: bool) -> None:
        self._files = files
        self._store = store
        self._share = share
        self._polling = threading.Lock()
        self._registered = Registered()
        self._wait_s = FIRST_WAIT_S
        self._cached: dict[Target, _Cached] = {INFERENCE: _Cached(load_catalog(), Registered(), load_catalog())}

    def catalog_of(self, target: Target) -> Catalog:
        """Return the catalogue of a target; the same object until something changes.

        That of training jobs also has the models of the training campaigns, which precede registered ones.

        One reader at a time polls the store; the others, and all while the store does not answer, get the models of
        the last poll.
        """
        base, registered = self._files.catalog, self._poll()
        cached = self._cached.get(target)
        if cached is None or base is not cached.base or registered != cached.registered:
            shipped = base.with_models(load_job_models()) if target == TRAINING else base
            unlisted = frozenset[str]() if self._share else registered.of_keys
            catalog = with_registered(shipped, registered.models, unlisted)
            cached = self._cached[target] = _Cached(base, registered, catalog)
        return cached.catalog

    def hidden_from(self, key: str | None) -> set[str]:
        """Return the ids of the models that other keys registered: see `roofcast.data.store.claims`."""
        uploaders = self._poll().uploaders
        return {id_ for id_, uploader in uploaders.items() if key is not None and uploader not in {"", key}}

    def _poll(self) -> Registered:
        if not self._store.is_paused and self._polling.acquire(blocking=False):
            if self._store.is_file:
                self._refresh()
            else:
                poll = threading.Thread(target=self._refresh, name="registered-models", daemon=True)
                poll.start()
                poll.join(self._wait_s)
                self._wait_s = POLL_WAIT_S
        return self._registered

    def _refresh(self) -> None:
        """Load the registered models, and release the lock of polls, which the caller holds."""
        try:
            self._registered = Registered(*self._store.load_models())
        except NotReadyError as error:
            logger.warning("registered models not refreshed: %s", error)
            self._store.pause(str(error))
        finally:
            self._polling.release()

    def reload_models(self) -> None:
        """Load the registered models now, so that the next reader gets them; waits for a poll in progress."""
        with self._polling, contextlib.suppress(NotReadyError):
            models = self._store.open().models
            self._registered = Registered(models.load(), models.uploaders())
