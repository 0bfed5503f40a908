"""Rows that the champion learnt from: their ids, and the names in them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.measurements.validation import row_ids
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.keyed_cache import KeyedCache
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.drift.novelty import LearntNames

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore


class LearntRows:
    """Ids and names of the rows that the latest champion learnt, each computed once; threads share them."""

    def __init__(self) -> None:
        self._ids = KeyedCache[frozenset[str]]()
        self._names = KeyedCache[LearntNames]()

    @property
    def is_loaded(self) -> bool:
        """Whether the names of some champion are loaded."""
        return len(self._names) > 0

    def ids(self, active: LoadedModel) -> frozenset[str]:
        """Return the ids of the rows that a champion learnt from."""
        return self._ids.get(active.champion.sha256, "", lambda: frozenset(active.bundle.row_ids))

    def names(self, store: MeasurementStore, active: LoadedModel) -> LearntNames:
        """Return the names in the rows, shipped and stored, that a champion learnt from.

        Raises `NotReadyError` if the store cannot be read.
        """

        def load() -> LearntNames:
            ids, shipped = self.ids(active), _shipped_names()
            stored = store.imported.load_names(ids.difference(shipped["id"]))
            return LearntNames.of(pd.concat([shipped[shipped["id"].isin(ids)], stored], ignore_index=True))

        return self._names.get(active.champion.sha256, "", load)


@functools.cache
def _shipped_names() -> pd.DataFrame:
    rows = load_campaigns(TRAINED_ON)
    return rows[["model", "accelerator", "engine", "engine_version"]].assign(id=row_ids(rows))
