"""Drift of the measurements in the store: of one import, of the latest days, and as gauges."""

from __future__ import annotations

import datetime as dt
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog
from roofcast.data.errors import UnknownNameError
from roofcast.data.measurements.validation import row_ids
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.imports.measurement_import import compare_if_possible
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.keyed_cache import KeyedCache
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.drift.drift_report import (
    MAX_CHANGE,
    Counts,
    DriftReport,
    GroupErrors,
    build_report,
    score_groups,
)
from roofcast.training.drift.groups import ALL
from roofcast.training.drift.novelty import LearntNames, novelty_warnings
from roofcast.training.drift.paired_errors import ChallengerErrors, PairedErrors, compare_errors
from roofcast.training.drift.prediction_scores import METRICS, score_predictions
from roofcast.training.drift.repeats import find_repeats

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added, MeasurementStore


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


MAX_COMPARED: Final = 5_000
"""Most rows that are predicted: those with the smallest ids, a random sample because ids are content hashes."""

MAX_STORED: Final = 50_000
"""Most rows in which a report looks for repeats: the latest."""


@dataclass(frozen=True, slots=True)
class ComparedModels:
    """The champion that measurements are compared with, and the challenger beside it, if one is loaded."""

    champion: LoadedModel
    challenger: LoadedModel | None
    catalog: Catalog
    learnt_rows: LearntRows


AT_IMPORT: Final = (200, 2_000)
"""New and earlier rows of the report in the answer to an import, which may be one of many."""


def report_import(
    store: MeasurementStore,
    models: ComparedModels,
    import_id: str,
    level: float = DEFAULT_LEVEL,
    max_change: float = MAX_CHANGE,
    *,
    n_new: int = MAX_COMPARED,
    n_earlier: int = MAX_STORED,
    seen_by: str | None = None,
) -> DriftReport:
    """Return the drift report of one import, against the champion and the caller's earlier rows of the same models.

    If a challenger is loaded, the report has its errors beside the champion's.

    New rows are all that the import claims, also those that another import claims too, that are in quarantine, or
    that were withdrawn.

    `n_new` and `n_earlier`: most new rows that are compared, and most earlier ones, the latest, in which it looks for
    repeats. Raises `UnknownNameError` if the import claims no row, or the key does not see it; `NotReadyError` if the
    store cannot be read.
    """
    imported = store.imported
    n_row = imported.count(import_id, seen_by)
    if not n_row:
        known = [str(summary["import_id"]) for summary in store.provenance.imports(seen_by)]
        raise UnknownNameError("import_id", import_id, known)
    new = imported.load_import(import_id, n_new)
    uploader, names = new["uploader"].iloc[0], set(new["model"])
    rows = pd.concat(
        [imported.load_others(import_id, uploader, names, n_earlier), new], ignore_index=True
    ).drop_duplicates("id", keep="last")
    is_new, n_not_loaded = rows["import_id"] == import_id, n_row - len(new)
    return _report(store, models, rows, is_new, level=level, max_change=max_change, n_not_loaded=n_not_loaded)


def report_days(
    store: MeasurementStore,
    models: ComparedModels,
    days: float,
    level: float = DEFAULT_LEVEL,
    max_change: float = MAX_CHANGE,
    *,
    seen_by: str | None = None,
) -> DriftReport:
    """Return the drift report of rows that were imported in the latest days and are not in quarantine.

    Raises `NotReadyError` if the store cannot be read.
    """
    rows = store.imported.load_latest(MAX_STORED, seen_by=seen_by)
    since = pd.Timestamp(dt.datetime.now(dt.UTC) - dt.timedelta(days=days))
    return _report(store, models, rows, rows["added_at"] >= since, level=level, max_change=max_change)


def compare_import(store: MeasurementStore, models: Callable[[], ComparedModels], added: Added) -> DriftReport | None:
    """Return the drift report of an import, of `AT_IMPORT` rows: see `compare_if_possible`."""
    n_new, n_earlier = AT_IMPORT
    return compare_if_possible(
        added, lambda import_id: report_import(store, models(), import_id, n_new=n_new, n_earlier=n_earlier)
    )


def score_rows(models: ComparedModels, rows: pd.DataFrame, level: float) -> tuple[pd.DataFrame, float]:
    """Return the scores of the rows that the champion has not learnt, and the level of its intervals.

    The level is `level`, or the highest that the champion supports if that is less.
    """
    is_candidate = _is_usable(models.catalog, rows) & ~_is_learnt(models, rows)
    return _score(models, rows[is_candidate], level)


def _score(models: ComparedModels, candidates: pd.DataFrame, level: float) -> tuple[pd.DataFrame, float]:
    predictor, catalog = models.champion.bundle.predictor, models.catalog
    level = min(level, predictor.highest_level(METRICS))
    compared = candidates.sort_values("id")[:MAX_COMPARED]
    return score_predictions(compared, predictor, catalog.models, catalog.accelerators, level), level


def pair_errors(catalog: Catalog, rows: pd.DataFrame, scored: pd.DataFrame, other: LoadedModel) -> ChallengerErrors:
    """Return the errors of another version beside the champion's, on rows that neither has learnt.

    `scored`: the champion's, as of `score_rows`.
    """
    predictor = other.bundle.predictor
    judged = rows.loc[scored["row"].unique()]
    unlearnt = judged[~judged["id"].isin(set(other.bundle.row_ids))]
    level = min(DEFAULT_LEVEL, predictor.highest_level(METRICS))
    others = score_predictions(unlearnt, predictor, catalog.models, catalog.accelerators, level)
    return ChallengerErrors(
        version=other.champion.version,
        n_compared=int(others["row"].nunique()),
        n_learnt=len(judged) - len(unlearnt),
        errors=compare_errors(scored, others),
    )


def _is_usable(catalog: Catalog, rows: pd.DataFrame) -> pd.Series:
    models, accelerators = list(catalog.models), list(catalog.accelerators)
    return rows["model"].isin(models) & rows["accelerator"].isin(accelerators) & (rows["status"] == "ok")


def _is_learnt(models: ComparedModels, rows: pd.DataFrame) -> pd.Series:
    ids = models.learnt_rows.ids(models.champion)
    return pd.Series([row_id in ids for row_id in rows["id"]], index=rows.index, dtype=bool)


def _report(
    store: MeasurementStore,
    models: ComparedModels,
    rows: pd.DataFrame,
    is_new: pd.Series,
    *,
    level: float,
    max_change: float,
    n_not_loaded: int = 0,
) -> DriftReport:
    challenger = models.challenger
    is_usable, new = _is_usable(models.catalog, rows), rows[is_new]
    is_learnt, is_usable_new = _is_learnt(models, new), is_usable[is_new]
    candidates = new[is_usable_new & ~is_learnt]
    scored, level = _score(models, candidates, level)
    counts = Counts(
        n_row=len(new) + n_not_loaded,
        n_learnt=int(is_learnt.sum()),
        n_sampled_out=max(len(candidates) - MAX_COMPARED, 0) + n_not_loaded,
    )
    comparable = rows if is_usable.all() else rows[is_usable]
    return build_report(
        scored,
        find_repeats(comparable, is_new[comparable.index]),
        rows,
        counts,
        predictor_version=models.champion.champion.version,
        level=level,
        warnings=novelty_warnings(new[is_usable_new], models.learnt_rows.names(store, models.champion)),
        max_change=max_change,
        challenger=pair_errors(models.catalog, rows, scored, challenger) if challenger else None,
    )


REFRESH_S: Final = 300.0
"""Least time between two computations, which take up to a second of CPU."""

MAX_ROW: Final = 2_000
"""Rows, the latest, of which the gauges tell."""


@dataclass(slots=True)
class DriftGauges:
    """Errors of the champion on the rows of recent days that it has not learnt, by metric.

    `challenger_errors`: on the rows that neither champion nor challenger has learnt.
    """

    errors: tuple[GroupErrors, ...] = ()
    challenger_errors: tuple[PairedErrors, ...] = ()
    _due_s: float = 0.0
    _seen: tuple[object, ...] = ()

    def refresh(self, stores: StoreAccess, models: ComparedModels, days: float) -> None:
        """Compute the errors if that was not done lately, and the champion, the challenger or the rows have changed.

        Raises `NotReadyError` if the store does not answer.
        """
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + REFRESH_S
        since = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
        rows = stores.open().imported.load_latest(MAX_ROW, since)
        challenger = models.challenger
        seen = models.champion.champion.sha256, challenger and challenger.champion.sha256, *rows["id"]
        if seen == self._seen:
            return
        scored, _ = score_rows(models, rows, DEFAULT_LEVEL)
        self.errors = tuple(one for one in score_groups(scored) if one.kind == ALL)
        pairs = pair_errors(models.catalog, rows, scored, challenger).errors if challenger else ()
        self.challenger_errors = tuple(one for one in pairs if one.kind == ALL)
        self._seen = seen
