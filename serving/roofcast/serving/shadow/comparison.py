"""Comparison of a version with the champion: its answers to the same questions, and its errors on the same rows."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from pydantic import Field

from roofcast.data.errors import InputError
from roofcast.data.specs import Spec
from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.drift.import_drift import DEFAULT_LEVEL, MAX_COMPARED, pair_errors, score_rows
from roofcast.training.drift.answer_ratios import ANSWERED, AnswerRatios, summarize
from roofcast.training.drift.groups import ALL
from roofcast.training.drift.paired_errors import ChallengerErrors
from roofcast.training.lifecycle.registry.registry import Champion


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


def compare_version(state: AppState, version: str, days: float, seen_by: str | None = None) -> VersionComparison:
    """Return the comparison of a version with the champion.

    Parameters
    ----------
    days
        Rows imported in so many days are compared: the latest that the champion has not learnt.
    seen_by
        See `roofcast.data.store.claims`.

    Raises
    ------
    UnknownNameError
        If there is no such version.
    InputError
        If it is the champion, or cannot be read.
    NotReadyError
        If no predictor is in service, or store or registry cannot be read.
    """
    champion, other = state.active_model.champion, _load(state, version)
    if other.champion == champion:
        raise InputError("version", f"must be another than the champion's, got {version}, which is in service")
    since = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    rows = state.store.imported.load_latest(MAX_COMPARED, since, seen_by)
    scored, _ = score_rows(state, rows, DEFAULT_LEVEL)
    challenger = state.challenger.model
    return VersionComparison(
        champion_version=champion.version,
        version=version,
        is_challenger=challenger is not None and challenger.champion == other.champion,
        answers=shared_answers(state, champion, other.champion),
        measurements=pair_errors(state, rows, scored, other),
    )


def shared_answers(state: AppState, champion: Champion, challenger: Champion) -> SharedAnswers:
    """Return what is recorded of both versions' answers.

    Raises
    ------
    NotReadyError
        If the store cannot be read.
    """
    counts, since = state.store.shadow_counts.load(champion.sha256, challenger.sha256)
    n_both, n_champion, n_challenger = (counts.get((ALL, "", ANSWERED, bin_), 0) for bin_ in (0, -1, 1))
    return SharedAnswers(
        since=since,
        n_row=n_both,
        n_champion_only=n_champion,
        n_challenger_only=n_challenger,
        ratios=summarize(counts),
    )


def _load(state: AppState, version: str) -> LoadedModel:
    """Return a version with its bundle, which is not loaded again if it is the challenger or the champion."""
    for model in (state.challenger.model, state.active_model):
        if model and model.champion.version == version:
            return model
    return state.compared_version.load(state.registry, state.registry.find(version))
