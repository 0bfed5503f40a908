"""The catalogue as it is now: shipped entries, files of the state folder and models registered in the store."""

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.job_campaigns import load_job_models
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.data.specs import ModelSpec
from roofcast.features.validity.engine_support import measured_stacks
from roofcast.serving.app_state.catalog.model_admission import (
    Config,
    check_model_limit,
    with_configs,
    with_registered,
)
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.app_state.store_access import StoreAccess

logger = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 5.0
"""Longest wait of a reader for the first refresh, which another thread runs."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The registered models, the API key that registered each, by id; blank for an operator, and measured stacks."""

    models: list[ModelSpec] = field(default_factory=list)
    uploaders: dict[str, str] = field(default_factory=dict)
    stacks: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def of_keys(self) -> frozenset[str]:
        """Ids of the models that keys registered."""
        return frozenset(id_ for id_, uploader in self.uploaders.items() if uploader)


@dataclass(frozen=True, slots=True)
class NewModels:
    """Models of named configurations that may be registered, each with its ``config.json``.

    `catalog`: with these models. `registered`: ids of the models that were registered when the catalogue was read,
    for the transaction that stores rows of them: it notices one that was removed since.
    """

    catalog: Catalog
    models: list[tuple[ModelSpec, dict[str, Any]]]
    registered: set[str]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    base: Catalog
    registered: Registered
    catalogs: dict[Target, Catalog] = field(default_factory=dict)


class LiveCatalog:
    """The catalogue with the user's files and the models of the store, as they were at the last `refresh`.

    A service refreshes it by a timer and after each registration of its own, so that no request asks the store; a
    command reads both at the first use.

    `share`: whether callers see the models that others' keys registered. `max_model`: most models that may be
    registered: every process holds all of them.
    """

    def __init__(self, files: UserFiles, store: StoreAccess, *, share: bool, max_model: int) -> None:
        self._files = files
        self._store = store
        self._share = share
        self._max_model = max_model
        self._refreshing = threading.Lock()
        self._snapshot: _Snapshot | None = None

    def catalog_of(self, target: Target) -> Catalog:
        """Return the catalogue of a target; the same object until something changes.

        That of training jobs also has the models of the training campaigns, which precede registered ones.
        """
        snapshot = self._read()
        if target not in snapshot.catalogs:
            snapshot.catalogs[target] = self._build(snapshot.base, target, snapshot.registered)
        return snapshot.catalogs[target]

    def refresh(self, wait_s: float = -1.0) -> None:
        """Read the files and the registered models again; while the store does not answer, the last ones stay.

        `wait_s`: longest wait for another thread's refresh; without a limit by default.
        """
        if not self._refreshing.acquire(timeout=wait_s):
            return
        try:
            last, registered, base = self._snapshot, self._load_registered(), self._files.catalog
            if last is None or base is not last.base or registered != last.registered:
                self._snapshot = _Snapshot(base, registered)
        finally:
            self._refreshing.release()

    def _read(self) -> _Snapshot:
        if self._snapshot is None:
            self.refresh(FIRST_WAIT_S)
        if self._snapshot is None:  # the store hangs, and another thread waits for it
            self._snapshot = _Snapshot(self._files.catalog, Registered())
        return self._snapshot

    def _load_registered(self) -> Registered:
        if not self._store.is_paused:
            try:
                return Registered(*self._store.load_models())
            except NotReadyError as error:
                logger.warning("registered models not refreshed: %s", error)
                self._store.pause(str(error))
        return self._snapshot.registered if self._snapshot else Registered()

    def _build(self, base: Catalog, target: Target, registered: Registered) -> Catalog:
        shipped = base.with_models(load_job_models()) if target == TRAINING else base
        unlisted = frozenset[str]() if self._share else registered.of_keys
        catalog = with_registered(shipped, registered.models, unlisted)
        seen = ((*stack, date) for *stack, is_operator, date in registered.stacks if is_operator or self._share)
        return replace(catalog, measured=measured_stacks(seen, catalog.accelerators, catalog.models))

    def admit_models(
        self, configs: Iterable[tuple[str, Config]], uploader: str = "", target: Target = INFERENCE
    ) -> NewModels:
        """Return the models of named configurations that are new, within the limits of their number.

        `uploader`: API key; blank for an operator. Raises `InputError` if a configuration is not a language model's,
        another model has its name, or too many would be registered; `NotReadyError` if the store does not answer.
        """
        store = self._store.open()
        registered = {spec.id for spec in store.models.load()}
        self.refresh()
        catalog, new = with_configs(self.catalog_of(target), configs)
        check_model_limit(store.models, self._max_model, len(new), uploader)
        return NewModels(catalog, [(spec, dict(config)) for spec, config in new], registered)

    def unmigrated_catalog(self, target: Target = INFERENCE) -> Catalog:
        """Return the catalogue from a store that is neither created nor migrated."""
        with self._store.unmigrated() as store:
            has_models = store.database.has_schema()
            registered = Registered(store.models.load(), store.models.uploaders()) if has_models else Registered()
        return self._build(self._files.catalog, target, registered)

    def remove_model(self, name: str, by: str, only_of: str | None = None, seen_by: str | None = None) -> ModelSpec:
        """Remove a registered model and return it: see `RegisteredModels.remove`.

        Raises `UnknownNameError` if there is no model of this name; `InputError` if it is not a registered model, or
        cannot be removed.
        """
        models = self._store.open().models
        registered = {spec.id: spec for spec in models.load()}
        id_ = name if name in registered else self.catalog_of(INFERENCE).model(name).id
        if id_ not in registered:
            listed = ", ".join(sorted(registered.keys() - self.hidden_from(seen_by))) or "none"
            problem = f"{id_!r} is a model of the package, which stays; registered are {listed}"
            raise InputError("model", problem)
        models.remove(id_, by, only_of, seen_by)
        self.refresh()
        return registered[id_]

    def hidden_from(self, key: str | None) -> set[str]:
        """Return the ids of the models that other keys registered: see `roofcast.data.store.claims`."""
        uploaders = self._read().registered.uploaders
        return {id_ for id_, uploader in uploaders.items() if key is not None and uploader not in {"", key}}
