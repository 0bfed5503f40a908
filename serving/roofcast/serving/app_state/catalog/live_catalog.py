"""The catalogue as it is now: shipped entries, files of the state folder and models registered in the store."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.job_campaigns import load_job_models
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.data.specs import ModelSpec
from roofcast.serving.app_state.catalog.registered_models import (
    Config,
    check_model_limit,
    with_configs,
    with_registered,
)
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
class NewModels:
    """Models of named configurations that may be registered, each with its ``config.json``.

    Parameters
    ----------
    catalog
        With these models.
    registered
        Ids of the models that were registered when the catalogue was read, for the transaction that stores rows of
        them: it notices one that was removed since.
    """

    catalog: Catalog
    models: list[tuple[ModelSpec, dict[str, Any]]]
    registered: set[str]


@dataclass(frozen=True, slots=True)
class _Cached:
    base: Catalog
    registered: Registered
    catalog: Catalog


class LiveCatalog:
    """Catalogue that follows changes of the user's files and of the store, whichever process makes them.

    Parameters
    ----------
    share
        Whether callers see the models that others' keys registered.
    max_model
        Most models that may be registered: every process holds all of them.
    """

    def __init__(self, files: UserFiles, store: StoreAccess, *, share: bool, max_model: int) -> None:
        self._files = files
        self._store = store
        self._share = share
        self._max_model = max_model
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
            cached = self._cached[target] = _Cached(base, registered, self._build(base, target, registered))
        return cached.catalog

    def _build(self, base: Catalog, target: Target, registered: Registered) -> Catalog:
        shipped = base.with_models(load_job_models()) if target == TRAINING else base
        unlisted = frozenset[str]() if self._share else registered.of_keys
        return with_registered(shipped, registered.models, unlisted)

    def admit_models(
        self, configs: Iterable[tuple[str, Config]], uploader: str = "", target: Target = INFERENCE
    ) -> NewModels:
        """Return the models of named configurations that are new, within the limits of their number.

        Parameters
        ----------
        uploader
            API key; blank for an operator.

        Raises
        ------
        InputError
            If a configuration is not a language model's, another model has its name, or too many would be registered.
        NotReadyError
            If the store does not answer.
        """
        store = self._store.open()
        registered = {spec.id for spec in store.models.load()}
        catalog, new = with_configs(self.catalog_of(target), configs)
        check_model_limit(store.models, self._max_model, len(new), uploader)
        return NewModels(catalog, [(spec, dict(config)) for spec, config in new], registered)

    def unmigrated_catalog(self, target: Target = INFERENCE) -> Catalog:
        """Return the catalogue from a store that is neither created nor migrated."""
        with self._store.unmigrated() as store:
            schema = store.database.schema_state()
            models = [] if schema == "none" else store.models.load()
            uploaders = store.models.uploaders() if schema == "current" else {}
        return self._build(self._files.catalog, target, Registered(models, uploaders))

    def remove_model(self, name: str, by: str, only_of: str | None = None, seen_by: str | None = None) -> ModelSpec:
        """Remove a registered model and return it: see `RegisteredModels.remove`.

        Raises
        ------
        UnknownNameError
            If there is no model of this name.
        InputError
            If it is not a registered model, or cannot be removed.
        """
        models = self._store.open().models
        registered = {spec.id: spec for spec in models.load()}
        id_ = name if name in registered else self.catalog_of(INFERENCE).model(name).id
        if id_ not in registered:
            listed = ", ".join(sorted(registered.keys() - self.hidden_from(seen_by))) or "none"
            problem = f"{id_!r} is a model of the package, which stays; registered are {listed}"
            raise InputError("model", problem)
        models.remove(id_, by, only_of, seen_by)
        self.reload_models()
        return registered[id_]

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
