"""Rows that the champion learnt from: their ids, and the names in them."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.measurements.validation import row_ids
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.drift.novelty import LearntNames

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore
    from roofcast.serving.app_state.champion_loader import LoadedModel
    from roofcast.training.lifecycle.bundles.bundle import ModelBundle


class LearntRowsCache:
    """Ids and names of the rows that the latest champion learnt, each computed once; threads share them."""

    def __init__(self) -> None:
        self._ids: tuple[ModelBundle, frozenset[str]] | None = None
        self._names: tuple[str, LearntNames] | None = None
        self._lock = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        """Whether the names of some champion are loaded."""
        return self._names is not None

    def ids(self, bundle: ModelBundle) -> frozenset[str]:
        """Return the ids of the rows that a bundle learnt from."""
        latest = self._ids
        if latest is None or latest[0] is not bundle:
            self._ids = latest = bundle, frozenset(bundle.row_ids)
        return latest[1]

    def names(self, store: MeasurementStore, active: LoadedModel) -> LearntNames:
        """Return the names in the rows, shipped and stored, that a champion learnt from.

        Raises
        ------
        NotReadyError
            If the store cannot be read.
        """
        with self._lock:
            if self._names is None or self._names[0] != active.champion.sha256:
                ids, shipped = self.ids(active.bundle), _shipped_names()
                stored = store.imported.load_names(ids.difference(shipped["id"]))
                names = pd.concat([shipped[shipped["id"].isin(ids)], stored], ignore_index=True)
                self._names = active.champion.sha256, LearntNames.of(names)
            return self._names[1]


@functools.cache
def _shipped_names() -> pd.DataFrame:
    """Return the ids and names of the shipped rows."""
    rows = load_campaigns(TRAINED_ON)
    return rows[["model", "accelerator", "engine", "engine_version"]].assign(id=row_ids(rows))
