"""Application state that HTTP and command line share: settings, store, registry, catalogue, active model."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from filelock import FileLock, Timeout

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.home import make_home
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.app_state.champion_loader import ChampionLoader, LoadedModel
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.drift.learnt_rows import LearntRowsCache
from roofcast.serving.shadow.challenger_loader import ChallengerLoader
from roofcast.serving.shadow.compared_version import ComparedVersion
from roofcast.serving.stacks.joined_points import JoinedPointsCache
from roofcast.serving.stacks.measured import MeasuredBundles
from roofcast.serving.stacks.profiles import ProfileCache
from roofcast.training.cluster import folds_on
from roofcast.training.jobs.job_bundle import JOB_BUNDLES, JobBundle
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET, JOB_TARGET, LEARNED_TARGETS
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.retraining import RetrainingReport, retrain
from roofcast.training.lifecycle.shipped import shipped_predictor

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore

logger = logging.getLogger(__name__)


class AppState:
    """Settings, store, registry, catalogue and active model; opened on first use, shared by threads.

    Parameters
    ----------
    warn
        Receives messages: a file of the state folder that is ignored, a wait for another retraining, an outdated
        store.
    """

    def __init__(self, settings: Settings, warn: Callable[[str], None] = logger.warning) -> None:
        self.settings = settings
        self.warn = warn
        self.user_files = UserFiles(settings.home, warn)
        self._store = StoreAccess(settings)
        self.live_catalog = LiveCatalog(self.user_files, self._store, share=settings.share_rows)
        uri, key_file = settings.mlflow_tracking_uri or None, settings.bundle_key
        home = settings.home
        self._registry: Registry = Registry(home, uri, shipped_predictor(INFERENCE_TARGET), key_file)
        self._training_registry: Registry[JobBundle] = Registry(
            home, uri, shipped_predictor(JOB_TARGET), key_file, JOB_BUNDLES
        )
        self._champion = ChampionLoader(self._registry, home)
        self._training_champion = ChampionLoader(self._training_registry, home)
        self.challenger = ChallengerLoader(self._registry, home, is_wanted=settings.shadow_ratio > 0)
        self.compared_version = ComparedVersion()
        self.profiles = ProfileCache()
        self.joined_points = JoinedPointsCache()
        self.measured_bundles = MeasuredBundles()
        self.learnt_rows = LearntRowsCache()

    def open(self) -> Self:
        """Create the state folder and migrate the store, unless that is done.

        Raises
        ------
        NotReadyError
            If the state folder cannot be created or the store cannot be opened.
        """
        self._store.open()
        return self

    def close(self) -> None:
        """Close the store, if it is open."""
        self._store.close()

    @property
    def store(self) -> MeasurementStore:
        """The measurement store: see `StoreAccess.open`."""
        return self._store.open()

    @property
    def registry(self) -> Registry:
        """The registry of predictors of inference; its state folder exists."""
        make_home(self.settings.home)
        return self._registry

    @property
    def training_registry(self) -> Registry[JobBundle]:
        """The registry of predictors of training jobs; its state folder exists."""
        make_home(self.settings.home)
        return self._training_registry

    def registry_of(self, target: Target) -> Registry[Any]:
        """Return the registry of a target's predictors."""
        return self.registry if target == INFERENCE else self.training_registry

    @property
    def catalog(self) -> Catalog:
        """The shipped catalogue with the files of the state folder and the registered models: see `LiveCatalog`."""
        return self.live_catalog.catalog_of(INFERENCE)

    @property
    def job_catalog(self) -> Catalog:
        """The same of training jobs, with the models of the training campaigns."""
        return self.live_catalog.catalog_of(TRAINING)

    @property
    def active_model(self) -> LoadedModel:
        """The champion of inference in service: see `ChampionLoader`."""
        return self._champion.active_model

    @property
    def training_model(self) -> LoadedModel[JobBundle]:
        """The champion of training jobs in service; the first call loads it.

        While the registry does not answer, that is the shipped predictor.
        """
        if not self._training_champion.is_loaded and not self.resume(TRAINING):
            try:
                self.refresh(target=TRAINING)
            except NotReadyError as error:
                if not self._training_champion.fall_back():
                    raise
                self.warn(f"the shipped predictor of training jobs answers until the registry does: {error}")
        return self._training_champion.active_model

    def has_model(self, target: Target) -> bool:
        """Return whether a champion of a target is in service."""
        return self._loader(target).is_loaded

    def loaded_model(self, target: Target) -> LoadedModel[Any]:
        """Return the champion of a target in service."""
        return self.active_model if target == INFERENCE else self.training_model

    @property
    def is_loaded(self) -> bool:
        """Whether a champion of inference is in service."""
        return self._champion.is_loaded

    def refresh(self, preloaded: LoadedModel[Any] | None = None, target: Target = INFERENCE) -> bool:
        """Load a new champion of the registry: see `ChampionLoader.refresh`."""
        make_home(self.settings.home)
        return self._loader(target).refresh(preloaded)

    def resume(self, target: Target = INFERENCE) -> bool:
        """Load the last champion without MLflow: see `ChampionLoader.resume`."""
        make_home(self.settings.home)
        return self._loader(target).resume()

    def _loader(self, target: Target) -> ChampionLoader[Any]:
        return self._champion if target == INFERENCE else self._training_champion

    def learning_rows(self, target: Target = INFERENCE) -> Any:
        """Return what a retraining of a target learns from: shipped and stored rows, each distinct one once."""
        stored, catalog = self.store.of(target).load_learnable(), self.live_catalog.catalog_of(target)
        return LEARNED_TARGETS[target].learning_rows(stored.rows, stored.uploaders, catalog)

    def retrain(
        self,
        progress: Progress | None = None,
        target: Target = INFERENCE,
        *,
        shadow: bool | None = None,
        dask: str | None = None,
    ) -> RetrainingReport:
        """Fit a candidate to the measurements of a target and promote it if it is not worse than the champion.

        A state folder runs one retraining at a time; a second one warns and waits.

        Parameters
        ----------
        shadow
            Make the candidate the challenger instead; by default the settings say. A candidate of training jobs
            is only registered then.
        dask
            Scheduler of a cluster that fits the folds; by default that of the settings. Folds of training jobs are
            fitted here.

        Raises
        ------
        InputError
            If a scheduler is named for training jobs.
        """
        shadow = not self.settings.auto_promote if shadow is None else shadow
        if target == TRAINING and dask:
            raise InputError("dask", "is for inference; folds of training jobs are fitted here: leave it out")
        address = (self.settings.dask if dask is None else dask) if target == INFERENCE else ""
        with self._training_lock(), folds_on(address):
            learned, registry = LEARNED_TARGETS[target], self.registry_of(target)
            rows, config = self.learning_rows(target), self.settings.training
            return retrain(learned, rows, registry, config, progress, shadow=shadow)

    @contextlib.contextmanager
    def _training_lock(self) -> Iterator[None]:
        lock = FileLock(self.open().settings.home / "training.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self.warn("another retraining runs in this state folder; this one starts when it has ended")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()
