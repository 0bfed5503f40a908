"""Comparison of a version with the champion: its answers to the same questions, and its errors on the same rows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from roofcast.data.errors import InputError
from roofcast.data.specs import Spec
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.drift.import_drift import MAX_COMPARED, ComparedModels, pair_errors, score_rows
from roofcast.serving.keyed_cache import KeyedCache
from roofcast.training.drift.answer_ratios import ANSWERED, AnswerRatios, summarize
from roofcast.training.drift.groups import ALL
from roofcast.training.drift.paired_errors import ChallengerErrors
from roofcast.training.lifecycle.registry.registry import Champion, Registry

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import MeasurementStore
    from roofcast.data.store.shadow_counts import ShadowCounts


class SharedAnswers(Spec):
    """Answers of both versions to the same rows of requests, while the one was champion and the other challenger."""

    since: Annotated[dt.datetime | None, Field(description="Of the first row; null if there is none.")]
    n_row: Annotated[int, Field(description="Rows that both answer.")]
    n_champion_only: int
    n_challenger_only: int
    ratios: Annotated[list[AnswerRatios], Field(description="Challenger / champion, by group and metric.")]


class VersionComparison(Spec):
    """A version beside the champion: answers to requests, and errors on recent measurements."""

    champion_version: str
    version: str
    is_challenger: bool
    answers: SharedAnswers
    measurements: ChallengerErrors


class VersionLoader:
    """Loads versions for comparisons; the latest that is neither in service nor the challenger stays in memory."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._cache = KeyedCache[LoadedModel]()

    def load(self, version: str, models: ComparedModels) -> LoadedModel:
        """Return a version with its bundle.

        Raises `UnknownNameError` if there is no such version; `NotReadyError` if the registry does not answer;
        `InputError` if the bundle cannot be read.
        """
        for model in (models.challenger, models.champion):
            if model and model.champion.version == version:
                return model
        champion = self._registry.find(version)
        return self._cache.get(champion, "", lambda: LoadedModel(champion, self._registry.load(champion)))


def compare_version(
    store: MeasurementStore, models: ComparedModels, other: LoadedModel, days: float, seen_by: str | None = None
) -> VersionComparison:
    """Return the comparison of a version with the champion.

    `days`: rows imported in so many days are compared: the latest that the champion has not learnt. Raises
    `InputError` if the version is the champion; `NotReadyError` if the store cannot be read.
    """
    champion, challenger = models.champion.champion, models.challenger
    if other.champion == champion:
        problem = f"must be another than the champion's, got {champion.version}, which is in service"
        raise InputError("version", problem)
    since = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    rows = store.imported.load_latest(MAX_COMPARED, since, seen_by)
    scored, _ = score_rows(models, rows, DEFAULT_LEVEL)
    return VersionComparison(
        champion_version=champion.version,
        version=other.champion.version,
        is_challenger=challenger is not None and challenger.champion == other.champion,
        answers=shared_answers(store.shadow_counts, champion, other.champion),
        measurements=pair_errors(models.catalog, rows, scored, other),
    )


def shared_answers(shadow_counts: ShadowCounts, champion: Champion, challenger: Champion) -> SharedAnswers:
    """Return what is recorded of both versions' answers. Raises `NotReadyError` if the store cannot be read."""
    counts, since = shadow_counts.load(champion.sha256, challenger.sha256)
    n_both, n_champion, n_challenger = (counts.get((ALL, "", ANSWERED, bin_), 0) for bin_ in (0, -1, 1))
    return SharedAnswers(
        since=since,
        n_row=n_both,
        n_champion_only=n_champion,
        n_challenger_only=n_challenger,
        ratios=summarize(counts),
    )
