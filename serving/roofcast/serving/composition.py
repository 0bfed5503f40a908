"""The composition root: the parts of the service, built at start and handed to routes, commands and the worker."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roofcast.data.catalog import Catalog
from roofcast.data.measurements.target import INFERENCE, TRAINING, Target
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.app_state.champion_loader import ChampionLoader, LoadedModel
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.drift.import_drift import ComparedModels, LearntRows
from roofcast.serving.shadow.challenger_loader import ChallengerLoader
from roofcast.serving.shadow.version_comparison import VersionLoader
from roofcast.serving.stacks.stack_choice import Stacks
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET, JOB_TARGET, LEARNED_TARGETS
from roofcast.training.lifecycle.registry.registry import Registry
from roofcast.training.lifecycle.shipped import shipped_predictor

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore
    from roofcast.training.learner.ratio_model import Progress
    from roofcast.training.lifecycle.retraining import RetrainingReport

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a service; threads share them.

    Code below routes and commands takes the parts that it needs, never the whole.

    `warn`: receives messages: a file of the state folder that is ignored, a wait for another retraining, an outdated
    store. `champions`: the registry of each target's predictors, with the one in service.
    """

    settings: Settings
    warn: Callable[[str], None]
    stores: StoreAccess
    catalogs: LiveCatalog
    champions: Mapping[Target, ChampionLoader[Any]]
    challenger: ChallengerLoader
    stacks: Stacks
    learnt_rows: LearntRows
    versions: VersionLoader

    @property
    def store(self) -> MeasurementStore:
        """The measurement store: see `StoreAccess.open`."""
        return self.stores.open()

    @property
    def catalog(self) -> Catalog:
        """The catalogue of inference as it is now: see `LiveCatalog`."""
        return self.catalogs.catalog_of(INFERENCE)

    @property
    def job_catalog(self) -> Catalog:
        """The same of training jobs, with the models of the training campaigns."""
        return self.catalogs.catalog_of(TRAINING)

    @property
    def active_model(self) -> LoadedModel:
        """The champion of inference in service."""
        return self.champions[INFERENCE].active_model

    @property
    def job_model(self) -> LoadedModel[JobBundle]:
        """The champion of training jobs in service."""
        return self.champions[TRAINING].active_model

    @property
    def registry(self) -> Registry:
        """The registry of predictors of inference."""
        return self.champions[INFERENCE].registry

    @property
    def compared_models(self) -> ComparedModels:
        """Champion and challenger of inference, for comparisons with measurements.

        Raises `NotReadyError` if no predictor is in service.
        """
        return ComparedModels(self.active_model, self.challenger.model, self.catalog, self.learnt_rows)

    def retrain(
        self,
        target: Target = INFERENCE,
        progress: Progress | None = None,
        *,
        shadow: bool | None = None,
        dask: str | None = None,
    ) -> RetrainingReport:
        """Retrain the predictor of a target: see `retrain_target`."""
        from roofcast.serving.app_state.retraining_run import retrain_target  # noqa: PLC0415  (few commands do)

        self.catalogs.refresh()
        catalog, registry = self.catalogs.catalog_of(target), self.champions[target].registry
        return retrain_target(
            LEARNED_TARGETS[target],
            self.settings,
            self.store,
            catalog,
            registry,
            warn=self.warn,
            progress=progress,
            shadow=shadow,
            dask=dask,
        )

    def close(self) -> None:
        """Close the store, if it is open."""
        self.stores.close()


def build_service(settings: Settings, warn: Callable[[str], None] = logger.warning) -> Service:
    """Return the parts for some settings; nothing is opened or created before its first use."""
    home, uri, key_file = settings.home, settings.mlflow_tracking_uri or None, settings.bundle_key
    stores = StoreAccess(settings)
    registry: Registry = Registry(home, uri, shipped_predictor(INFERENCE_TARGET), key_file)
    job_registry: Registry[JobBundle] = Registry(home, uri, shipped_predictor(JOB_TARGET), key_file, JobBundle)
    return Service(
        settings=settings,
        warn=warn,
        stores=stores,
        catalogs=LiveCatalog(
            UserFiles(home, warn), stores, share=settings.share_rows, max_model=settings.max_registered_model
        ),
        champions={
            INFERENCE: ChampionLoader(registry, home),
            TRAINING: ChampionLoader(job_registry, home, loads_at_first_use=True, warn=warn),
        },
        challenger=ChallengerLoader(registry, home, is_wanted=settings.shadow_ratio > 0),
        stacks=Stacks(stores),
        learnt_rows=LearntRows(),
        versions=VersionLoader(registry),
    )
