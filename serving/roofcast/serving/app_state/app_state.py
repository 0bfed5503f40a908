"""Application state that HTTP and command line share: store, registry, catalogue, active model."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import pandas as pd
from filelock import FileLock, Timeout

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import InputError, NotReadyError, RoofcastError
from roofcast.data.measurements.validation import row_ids
from roofcast.data.model_config.huggingface import model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec
from roofcast.data.store.sqlite_listing import list_models
from roofcast.serving.app_state.champion_cache import ChampionCache, distrusted
from roofcast.serving.app_state.process_memory import give_back_memory
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.app_state.state_folder import find_model, make_home, open_store, with_registered
from roofcast.serving.app_state.user_catalog import check_units
from roofcast.serving.app_state.user_files import OwnFiles
from roofcast.serving.predict.row_checks import fill_copy_precision
from roofcast.training.dataset.training_set import TRAINED_ON, TrainingSet, build_training_set
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.bundle import ModelBundle
from roofcast.training.lifecycle.registry import NO_CHAMPION, Champion, Registry
from roofcast.training.lifecycle.retraining import RetrainingReport, retrain
from roofcast.training.lifecycle.shipped import shipped_predictor

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore

logger = logging.getLogger(__name__)

Config = Mapping[str, Any]

STORE_PAUSE_S: Final = 5.0
"""How long a store that did not answer is left alone by those who can do without."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A champion with its loaded bundle."""

    champion: Champion
    bundle: ModelBundle


@dataclass(frozen=True, slots=True)
class _Known:
    """Catalogue with the files of the state folder, models registered here, and the catalogue that knows both."""

    base: Catalog
    own: list[ModelSpec]
    catalog: Catalog


class AppState:
    """Store, registry, catalogue and the champion, opened by their first use and shared by threads.

    Parameters
    ----------
    settings
        Where things are.
    warn
        Called with a message about a file of the state folder that is left out, a wait for another retraining, or an
        outdated store.
    """

    def __init__(self, settings: Settings, warn: Callable[[str], None] = logger.warning) -> None:
        self.settings = settings
        self._store: MeasurementStore | None = None
        self._opening = threading.Lock()
        self._registry = Registry(settings.home, settings.mlflow_tracking_uri or None, shipped_predictor())
        self._last_champion = ChampionCache(settings.home)
        self._active_model: LoadedModel | None = None
        self._stamp = ""
        self._why_none = NO_CHAMPION
        self._refreshing = threading.Lock()
        self._warn = warn
        self._own_files = OwnFiles(settings.home, warn)
        self._known = _Known(load_catalog(), [], load_catalog())
        self._asking = threading.Lock()
        self._registered_here: list[ModelSpec] = []
        self._store_asked_again_at = 0.0
        self._why_closed = ""

    def open(self) -> Self:
        """Make the state folder and bring the store up to date, if that is not done yet.

        Raises
        ------
        NotReadyError
            If the state folder cannot be made or the measurement store cannot be opened.
        """
        _ = self.store
        return self

    @property
    def store(self) -> MeasurementStore:
        """The measurement store; `open` says what its first use does. One that did not open is left alone a while."""
        with self._opening:
            if self._store is None:
                if time.monotonic() < self._store_asked_again_at:
                    raise NotReadyError(self._why_closed)
                try:
                    self._store = open_store(self.settings)
                except NotReadyError as error:
                    self._why_closed, self._store_asked_again_at = str(error), time.monotonic() + STORE_PAUSE_S
                    raise
            return self._store

    def close(self) -> None:
        """Close the store, if it is open."""
        if self._store is not None:
            self._store.close()

    @property
    def registry(self) -> Registry:
        """The registry of predictors, in a folder that is there."""
        make_home(self.settings.home)
        return self._registry

    @property
    def catalog(self) -> Catalog:
        """The shipped catalogue with the files of the state folder and the models registered here.

        Both may come from whichever process. While the store is asked or does not answer, its models stay as last
        known: one thread asks, and no other waits for it.
        """
        base, own = self._own_files.catalog, self._registered()
        known = self._known
        if base is not known.base or own != known.own:
            known = self._known = _Known(base, own, with_registered(base, own))
        return known.catalog

    def _registered(self) -> list[ModelSpec]:
        if time.monotonic() >= self._store_asked_again_at and self._asking.acquire(blocking=False):
            try:
                self._registered_here = self._load_registered()
            except NotReadyError as error:
                logger.warning("the models registered here stay as they were: %s", error)
                self._store_asked_again_at = time.monotonic() + STORE_PAUSE_S
            finally:
                self._asking.release()
        return self._registered_here

    def _load_registered(self) -> list[ModelSpec]:
        """Return the registered models; a store that is not open yet, in an SQLite file, is not opened for them."""
        file = self.settings.store_file
        models = list_models(file) if self._store is None and file else None
        return self.store.models.load() if models is None else models

    @property
    def active_model(self) -> LoadedModel:
        """The champion that answers.

        Raises
        ------
        NotReadyError
            If none is loaded.
        """
        loaded = self._active_model
        if loaded is None:
            raise NotReadyError(self._why_none)
        return loaded

    def refresh(self, tried: LoadedModel | None = None) -> bool:
        """Load the registry's champion if it is not the one in service; return whether one was loaded.

        A registry that has not changed since the last time is not asked.

        Parameters
        ----------
        tried
            A version whose bundle is loaded already, and is taken as it is.

        Raises
        ------
        NotReadyError
            If the registry does not answer; the champion in service stays.
        InputError
            If the champion cannot be read, as after an upgrade that changed the columns; the one in service stays.
        """
        with self._refreshing:
            stamp = self.registry.stamp()
            if stamp and stamp == self._stamp:
                return False
            champion = self.registry.champion()
            is_new = champion is not None and not (self._active_model and self._active_model.champion == champion)
            if champion is not None and is_new:
                self._activate(champion, tried.bundle if tried and tried.champion == champion else None)
            if champion is not None and (is_new or stamp != self._stamp):
                self._last_champion.keep(champion, stamp)
                self._stamp = stamp
            return is_new

    def _activate(self, champion: Champion, bundle: ModelBundle | None = None) -> None:
        try:
            bundle = bundle or self.registry.load(champion)
        except InputError as error:
            self._why_none = f"the champion, version {champion.version}, cannot be used: {error}"
            shipped = self._registry.shipped
            if shipped and not self._active_model and champion != shipped.champion:
                self._activate(shipped.champion)
                logger.warning("%s; version %s answers", self._why_none, shipped.champion.version)
            raise
        self._active_model = LoadedModel(champion, bundle)
        give_back_memory()

    def resume(self) -> bool:
        """Put the champion that served here last into service; return whether there is one and it can be used.

        Where nothing was ever registered that is the shipped predictor. MLflow is not imported; `refresh` looks for a
        newer champion.
        """
        with self._refreshing:
            shipped = self.registry.shipped.champion if self.registry.shipped else None
            champion, stamp = self._last_champion.read() or (shipped if self.registry.is_empty else None, "")
            if champion is None or self._active_model or not self.registry.has(champion):
                return self._active_model is not None
            why_not = "" if champion == shipped else distrusted(self.registry.file(champion))
            if why_not:
                logger.warning(
                    "version %s, which served here last, waits for the registry: %s", champion.version, why_not
                )
                return False
            try:
                self._activate(champion)
            except RoofcastError as error:
                logger.warning("version %s, which served here last, cannot be used: %s", champion.version, error)
                return False
            self._stamp = stamp
            return True

    def training_set(self) -> TrainingSet:
        """Return the shipped campaigns and the measurements in the store, each row once, as one training set."""
        catalog = self.catalog
        shipped, kept = load_campaigns(TRAINED_ON), self.store.load()
        own = kept[~pd.Series(row_ids(kept), index=kept.index).isin(row_ids(shipped))] if len(kept) else kept
        rows = pd.concat([shipped, own], ignore_index=True) if len(own) else shipped.reset_index(drop=True)
        return build_training_set(rows, catalog.models, catalog.accelerators, n_own=len(own))

    def retrain(self, progress: Progress | None = None) -> RetrainingReport:
        """Fit, judge and, if not worse, promote a predictor on everything known.

        One at a time does so in a state folder; who comes second says so and waits.
        """
        with self._only_trainer():
            return retrain(self.training_set(), self.registry, self.settings.training, progress)

    @contextlib.contextmanager
    def _only_trainer(self) -> Iterator[None]:
        lock = FileLock(self.open().settings.home / "training.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self._warn("another retraining is under way here; this one waits until it has ended")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def read_config(self, name: str, config: Config) -> ModelSpec:
        """Return the model of a ``config.json``; the name is what the caller calls it, and is not looked up.

        Raises
        ------
        InputError
            If the configuration is not a language model's.
        """
        return with_known_lineage(model_from_config(config, name), self.catalog)

    def with_configs(self, configs: Iterable[tuple[str, Config]]) -> tuple[Catalog, list[tuple[ModelSpec, Config]]]:
        """Return the catalogue with models that only their configurations tell of, and those that it did not know.

        Raises
        ------
        InputError
            If a configuration is not a language model's, or its name is taken by another model.
        """
        return _with_configs(self.catalog, configs)

    def add_measurements(
        self, table: pd.DataFrame, configs: Iterable[tuple[str, Config]] = (), *, dry_run: bool = False
    ) -> tuple[int, int]:
        """Keep measurements, and the models that they bring along; return how many rows are new and known.

        Names become catalogue ids. Nothing is kept if any row names an unknown model or accelerator.

        Parameters
        ----------
        table
            Validated.
        configs
            Names and ``config.json`` of models that no catalogue knows.
        dry_run
            Whether to write nothing at all, and only count.

        Raises
        ------
        UnknownNameError
            If a row names one.
        InputError
            If a configuration is not a language model's, or its name is taken by another model.
        NotReadyError
            If the store cannot be written.
        """
        if dry_run:
            return self._rehearsed(table, configs)
        catalog, new = self.with_configs(configs)
        resolved = _resolved(table, catalog)
        added = self.store.add(resolved, [(spec, dict(config)) for spec, config in new])
        if new:
            with self._asking, contextlib.suppress(NotReadyError):  # who asks for them next must find them
                self._registered_here = self.store.models.load()
        return added.n_new, added.n_known

    def _rehearsed(self, table: pd.DataFrame, configs: Iterable[tuple[str, Config]]) -> tuple[int, int]:
        """Return what `add_measurements` would; reads what is there, and writes, makes and migrates nothing."""
        from roofcast.data.store.measurement_store import MeasurementStore  # noqa: PLC0415  (needs SQLAlchemy)

        with MeasurementStore(self.settings.store_url) as store:
            state = store.database.schema_state()
            if state == "old":
                self._warn("the store has an older schema; a dry run leaves it so, importing brings it up to date")
            own = [] if state == "none" else store.models.load()
            catalog, _ = _with_configs(with_registered(self._own_files.catalog, own), configs)
            added = store.compare(_resolved(table, catalog))
        return added.n_new, added.n_known


def _with_configs(
    catalog: Catalog, configs: Iterable[tuple[str, Config]]
) -> tuple[Catalog, list[tuple[ModelSpec, Config]]]:
    new = []
    for name, config in configs:
        spec = with_known_lineage(model_from_config(config, name), catalog)
        known = find_model(catalog, name)
        if known is None:
            catalog = catalog.with_models([spec])
            new.append((spec, config))
        elif known != spec.model_copy(update={"lineage": known.lineage, "fold_group": known.fold_group}):
            raise InputError("models", f"the name {name!r} is taken; {_cure(known)}")
    return catalog, new


def _cure(known: ModelSpec) -> str:
    if known.id in load_catalog().models:
        return "leave the config out to use the catalogue's model, or choose another name"
    return "another config stands under it; choose another name"


def _resolved(table: pd.DataFrame, catalog: Catalog) -> pd.DataFrame:
    """Return the rows with the catalogue's ids; refuse a file whose latencies are in the wrong unit."""
    specs = {name: catalog.model(name) for name in table["model"].unique()}
    parts = {name: catalog.accelerator(name).id for name in table["accelerator"].unique()}
    precision = table["weight_precision"]
    filled = fill_copy_precision(precision.to_numpy(dtype=object), table["model"].to_numpy(), specs, catalog)
    resolved = table.assign(
        model=table["model"].map({name: spec.id for name, spec in specs.items()}),
        accelerator=table["accelerator"].map(parts),
        weight_precision=pd.Series(filled, table.index, dtype=precision.dtype),
    )
    check_units(resolved, catalog)
    return resolved
