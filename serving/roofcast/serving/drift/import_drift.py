"""Drift of the measurements in the store: of one import, or of the latest days."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import UnknownNameError
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.imports.measurement_import import compare_if_possible
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.drift.learnt_rows import LearntRows
from roofcast.training.drift.drift_report import MAX_CHANGE, Counts, DriftReport, build_report
from roofcast.training.drift.novelty import novelty_warnings
from roofcast.training.drift.paired_errors import ChallengerErrors, compare_errors
from roofcast.training.drift.prediction_scores import METRICS, score_predictions
from roofcast.training.drift.repeats import find_repeats

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added, MeasurementStore


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
