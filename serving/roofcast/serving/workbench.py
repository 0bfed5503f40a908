"""What every door of the product works with: store, registry, catalogue and the champion in service."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.huggingface import model_from_config, with_known_lineage
from roofcast.data.specs import ModelSpec
from roofcast.data.store import MeasurementStore
from roofcast.serving.settings import Settings
from roofcast.training.bundle import ModelBundle
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset import TrainingSet, build_training_set
from roofcast.training.predictor import Progress
from roofcast.training.registry import NO_CHAMPION, Champion, Registry
from roofcast.training.retrain import RetrainingReport, retrain


@dataclass(frozen=True, slots=True)
class InService:
    """The champion and its bundle."""

    champion: Champion
    bundle: ModelBundle


class Workbench:
    """Store, registry, catalogue and the champion, opened once and shared by threads.

    Parameters
    ----------
    settings
        Where things are.

    Raises
    ------
    NotReadyError
        If the measurement store cannot be opened.
    """

    def __init__(self, settings: Settings) -> None:
        settings.home.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.store = MeasurementStore(settings.store_url).migrate()
        self.registry = Registry(settings.home, settings.mlflow_tracking_uri or None)
        self._in_service: InService | None = None
        self._refreshing = threading.Lock()

    @property
    def catalog(self) -> Catalog:
        """The shipped catalogue with the models registered here."""
        return load_catalog().with_models(self.store.models())

    @property
    def in_service(self) -> InService:
        """The champion that answers.

        Raises
        ------
        NotReadyError
            If none is loaded.
        """
        loaded = self._in_service
        if loaded is None:
            raise NotReadyError(NO_CHAMPION)
        return loaded

    def refresh(self) -> bool:
        """Load the registry's champion if it is not the one in service; return whether one was loaded.

        Raises
        ------
        NotReadyError
            If the registry does not answer; the champion in service stays.
        """
        with self._refreshing:
            champion = self.registry.champion()
            if champion is None or (self._in_service and self._in_service.champion == champion):
                return False
            self._in_service = InService(champion, self.registry.load(champion))
            return True

    def training_set(self) -> TrainingSet:
        """Return the shipped campaigns and the measurements in the store, as one training set."""
        catalog = self.catalog
        kept = self.store.load()
        rows = pd.concat([load_campaigns(), kept], ignore_index=True) if len(kept) else load_campaigns()
        return build_training_set(rows, catalog.models, catalog.accelerators)

    def retrain(self, config: TrainingConfig | None = None, progress: Progress | None = None) -> RetrainingReport:
        """Fit, judge and, if not worse, promote a predictor on everything known."""
        return retrain(self.training_set(), self.registry, config, progress)

    def model(self, name: str, config: Mapping[str, Any] | None = None) -> ModelSpec:
        """Return the model of a catalogue name, or of a ``config.json`` under that name.

        Raises
        ------
        InputError
            If the configuration is not a language model's.
        UnknownNameError
            If no configuration is given and the name is not in the catalogue.
        """
        if config is None:
            return self.catalog.model(name)
        return with_known_lineage(model_from_config(config, name), self.catalog)

    def add_measurements(self, table: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]]) -> tuple[int, int]:
        """Keep measurements, and the models that they bring along; return how many rows are new and known.

        Names become catalogue ids. Nothing is kept if any row names an unknown model or accelerator.

        Raises
        ------
        UnknownNameError
            If a row names one.
        SchemaError
            If a row breaks the schema.
        InputError
            If a configuration is not a language model's.
        """
        specs = {name: self.model(name, config) for name, config in configs.items()}
        catalog = self.catalog.with_models(specs.values())
        resolved = table.assign(
            model=_resolved(table, "model", lambda name: catalog.model(name).id),
            accelerator=_resolved(table, "accelerator", lambda name: catalog.accelerator(name).id),
        )
        for name, spec in specs.items():
            self.store.add_model(spec, dict(configs[name]))
        added = self.store.add(resolved)
        return added.n_new, added.n_known


def _resolved(table: pd.DataFrame, column: str, resolve: Any) -> pd.Series:
    if column not in table:
        raise InputError(column, "must be given in every row")
    names = {name: resolve(name) for name in table[column].astype(str).unique()}
    return table[column].astype(str).map(names)
