"""The catalogue as it is now: shipped entries, files of the state folder and models that users register."""

from __future__ import annotations

import dataclasses
import logging
import threading
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, NotReadyError, SchemaError
from roofcast.data.job_campaigns import load_job_models
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.data.model_config.huggingface import model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.app_state.store_access import StoreAccess

if TYPE_CHECKING:
    from roofcast.data.store.registered_models import RegisteredModels

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
        from roofcast.features.validity.engine_support import measured_stacks  # noqa: PLC0415  (needs pandas)

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


Config = Mapping[str, Any]
"""Content of a ``config.json``."""


def find_model(catalog: Catalog, name: str) -> ModelSpec | None:
    """Return the model of exactly this name, or None if there is none."""
    return catalog.model(name) if catalog.knows_model(name) else None


def with_registered(
    catalog: Catalog, registered: Iterable[ModelSpec], unlisted: frozenset[str] = frozenset()
) -> Catalog:
    """Return the catalogue with the models registered in a store; models of the catalogue take precedence.

    `unlisted`: ids of those of API keys whose rows are apart.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> shipped = load_catalog().model("llama-3.1-8b")
    >>> mine = shipped.model_copy(update={"id": "my-8b"})
    >>> catalog = with_registered(load_catalog(), [mine, shipped.model_copy(update={"n_layer": 1})])
    >>> catalog.model("my-8b").n_layer, catalog.model("llama-3.1-8b").n_layer
    (32, 32)
    """
    free = [spec for spec in registered if find_model(catalog, spec.id) is None]
    if unlisted:
        catalog = dataclasses.replace(catalog, unlisted=unlisted.intersection(spec.id for spec in free))
    try:
        return catalog.with_models(free)
    except SchemaError as error:
        logger.warning("models whose names collide are left out: %s", error)
    for spec in free:
        if find_model(catalog, spec.id) is None:
            catalog = catalog.with_models([spec])
    return catalog


def build_model(name: str, config: Config, catalog: Catalog) -> ModelSpec:
    """Return the model of a ``config.json``, in the lineage of the catalogue's models of the same shape.

    Raises `InputError` if the configuration is not a language model's.
    """
    return with_known_lineage(model_from_config(config, name), catalog)


def with_own_models(catalog: Catalog, configs: Iterable[tuple[str, Config]]) -> tuple[Catalog, list[ModelSpec]]:
    """Return the catalogue with the models of a question's configurations, whose names have precedence, and these.

    Raises `InputError` if a configuration is not a language model's, or two have one name.
    """
    specs: list[ModelSpec] = []
    for name, config in configs:
        spec = build_model(name, config, catalog)
        own = Catalog(models={spec.id: spec}, accelerators={})
        same = [one for one in specs if own.knows_model(one.id)]
        if any(one != spec.model_copy(update={"id": one.id}) for one in same):
            raise InputError("models", f"the name {name!r} has two configs; give each a name of its own")
        specs += [] if same else [spec]
        models = {id_: one for id_, one in catalog.models.items() if not own.knows_model(id_)}
        aliases = {a: id_ for a, id_ in catalog.model_aliases.items() if id_ in models and not own.knows_model(a)}
        precisions = {alias: one for alias, one in catalog.alias_precisions.items() if alias in aliases}
        catalog = dataclasses.replace(
            catalog, models={**models, spec.id: spec}, model_aliases=aliases, alias_precisions=precisions
        )
    return catalog, specs


def with_configs(
    catalog: Catalog, configs: Iterable[tuple[str, Config]]
) -> tuple[Catalog, list[tuple[ModelSpec, Config]]]:
    """Return the catalogue with the models of named configurations, and those models that are new to it.

    Raises `InputError` if a configuration is not a language model's, or another model has its name.
    """
    new = []
    for name, config in configs:
        spec = build_model(name, config, catalog)
        known = find_model(catalog, name)
        if known is None:
            check_spelling(name)
            catalog = catalog.with_models([spec])
            new.append((spec, config))
        elif known != spec.model_copy(update={"lineage": known.lineage, "fold_group": known.fold_group}):
            raise InputError("models", f"the name {name!r} is taken; {_cure(known)}")
    return catalog, new


def check_spelling(name: str) -> None:
    r"""Refuse a new name with characters that look like ASCII letters: it may be taken for a name of the catalogue.

    These are letters with case of other alphabets and with accents, combining and invisible characters, Lisu letters,
    and variants of other characters (NFKC). Scripts without case, such as Chinese, resemble no ASCII letter.

    Raises `InputError` if there is one; names it.

    References
    ----------
    Unicode Technical Standard #39, "Unicode security mechanisms".

    Examples
    --------
    >>> check_spelling("qwen-千问")
    >>> check_spelling("llam\u00e1")
    Traceback (most recent call last):
    roofcast.data.errors.InputError: models: 'llamá' has LATIN SMALL LETTER A WITH ACUTE; use an ASCII letter
    """
    for character in name:
        title = unicodedata.name(character, "an unnamed character")
        is_variant = unicodedata.normalize("NFKC", character) != character
        is_letter = character.lower() != character.upper() or title.startswith("LISU LETTER")
        is_hidden = unicodedata.category(character) in {"Cf", "Mn", "Me"}
        if not character.isascii() and (is_variant or is_letter or is_hidden):
            raise InputError("models", f"{name!r} has {title}; use an ASCII letter")


def check_model_limit(models: RegisteredModels, limit: int, n_new: int, uploader: str = "") -> None:
    """Refuse new models beyond a limit.

    `uploader`: API key, which registers at most half of them; blank for an operator. Raises `InputError` if too many
    models would be registered.
    """
    if n_new and len(models.load()) + n_new > limit:
        cure = "use registered ones, remove some, or raise ROOFCAST_MAX_REGISTERED_MODEL"
        raise InputError("models", f"at most {limit} models can be registered; {cure}")
    if n_new and uploader and models.count_of(uploader) + n_new > limit // 2:
        cure = "use registered ones, remove some, or let an operator register them"
        raise InputError("models", f"at most {limit // 2} models can be registered by one key; {cure}")


def _cure(known: ModelSpec) -> str:
    from roofcast.data.job_campaigns import job_catalog  # noqa: PLC0415  (a list of models needs no pandas)

    if known.id in job_catalog().models:
        return "leave the config out to use the catalogue's model, or choose another name"
    return "it is registered with another config; choose another name"
