"""Which recipes a candidate is compared with, and on which rows."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.lifecycle.bundles.bundle_io import Bundle
from roofcast.training.lifecycle.gate import judgement
from roofcast.training.lifecycle.gate.comparison import PromotionDecision, compare
from roofcast.training.lifecycle.gate.inference_trial import build_slices
from roofcast.training.lifecycle.gate.judgement import (
    BASELINE,
    CHAMPION,
    judge,
    lost_answers,
    recipes,
    uncovered_intervals,
)
from roofcast.training.lifecycle.gate.trial import Recipe, Trial
from tests.builders import a_model, a_question, an_accelerator

STACKS = ["lab/a", "lab/b", "", "key:a/rig", "key:b/rig"]


def compared(known: list[int] | None, stacks: list[str]) -> list[tuple[str, list[int], list[list[int]], bool]]:
    ids = pd.Series([f"row {i}" for i in range(len(stacks))])
    champion = None if known is None else ([f"row {i}" for i in known], "settings")
    return [
        (
            recipe.name,
            np.flatnonzero(recipe.learns).tolist(),
            [np.flatnonzero(rows).tolist() for rows in recipe.judged],
            recipe.holds_out_stacks,
        )
        for recipe in recipes("settings", champion, ids, pd.Series(stacks, dtype=object))
    ]


def test_the_same_recipe_on_the_same_rows_has_no_rival() -> None:
    assert compared([0, 1, 2], STACKS[:3]) == []
    assert compared(None, STACKS[:3]) == []


def test_rows_of_the_owner_that_added_some_do_not_judge() -> None:
    assert compared([0, 1, 2], [*STACKS[:3], ""]) == [(CHAMPION, [0, 1, 2], [[0, 1]], True)]
    assert compared([0, 1, 2], STACKS[:4]) == [(CHAMPION, [0, 1, 2], [[0, 1, 2]], True)]


def test_uploads_are_judged_by_what_is_learnt_without_any_too() -> None:
    assert compared([0, 1, 2, 3], STACKS) == [
        (CHAMPION, [0, 1, 2, 3], [[0, 1, 2, 3]], False),
        (BASELINE, [0, 1, 2], [[0, 1, 2]], True),
    ]
    more = [*STACKS, "key:a/rig", "key:b/rig"]
    champion, _ = compared([0, 1, 2, 3, 4], more)
    assert champion[2] == [[0, 1, 2, 4], [0, 1, 2, 3]]
    assert compared(None, STACKS) == [(BASELINE, [0, 1, 2], [[0, 1, 2]], True)]


def test_rows_of_a_shipped_campaign_that_the_champion_lacks_exclude_nobody() -> None:
    assert compared([0], STACKS[:2]) == [(CHAMPION, [0], [[0]], True)]


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({"tpot_s": 0.99}, {"tpot_s": 0.99, "ttft_s": 0.99}, ""),
        ({"tpot_s": 0.99, "ttft_s": 0.99}, {"tpot_s": 0.99}, "no longer predicts ttft_s"),
        ({"tpot_s": 0.99}, {"tpot_s": 0.96}, ""),
        ({"tpot_s": 0.99}, {"tpot_s": 0.9}, "intervals of tpot_s up to 0.900, the champion to 0.990"),
        ({"tpot_s": 0.8}, {"tpot_s": 0.8}, ""),
        (None, {}, ""),
    ],
)
def test_answers_are_not_lost(before: dict[str, float] | None, after: dict[str, float], lost: str) -> None:
    assert lost in lost_answers(after, before)
    assert bool(lost) == bool(lost_answers(after, before))


LINEAGES = [f"ours/dense-{i}" for i in range(8)]
PARTS = ("ours-80gb", "theirs-80gb")
OWNERS = ("lab/a", "works/b")


def judged_set(*, uploads: bool = False) -> TrainingSet:
    """Return rows of eight lineages on two accelerators, measured by two owners, and perhaps by an API key."""
    questions = pd.DataFrame(
        [
            a_question(model=model, accelerator=part, concurrency=load, stack=stack)
            for stack in (*OWNERS, *(["key:ci/rig"] if uploads else []))
            for model in LINEAGES
            for part in PARTS
            for load in (4, 16)
        ]
    )
    models = {name: a_model(id=name, lineage=name, fold_group=name) for name in LINEAGES}
    X = describe(questions.drop(columns="stack"), models, {part: an_accelerator(id=part) for part in PARTS})
    y = pd.DataFrame({"tpot_s": np.full(len(X), 0.02)}, index=X.index)
    ids = pd.Series([f"row {i}" for i in X.index])
    return TrainingSet(questions, X, y, questions["model"], questions["stack"], ids)


def off(data: TrainingSet, log_error: float, seed: int = 0) -> pd.DataFrame:
    """Return predictions whose errors scatter about a size."""
    rng = np.random.default_rng(seed)
    return data.y * np.exp(log_error * rng.choice([-1, 1], (len(data.y), 1)) + rng.normal(0, 0.01, data.y.shape))


class FakeTrial(Trial):
    """The trial of a candidate by its predictions; the recipes that it is compared with predict tables, too."""

    def __init__(self, data: TrainingSet) -> None:
        self.measured, self.slices = data.y, build_slices(data)
        self.by_lineage, self.by_stack = off(data, 0.2), off(data, 0.4)
        self.held_out = [self.by_lineage.copy(), self.by_stack.copy()]
        self.of_others: list[tuple[str, GroupedConformal, GroupedConformal]] = []

    def refit(self, recipe: Recipe, progress: Any = None, *, holds_out_stacks: bool) -> list[pd.DataFrame]:
        del recipe, progress
        return [self.by_lineage, self.by_stack][: 1 + holds_out_stacks]

    def coverages(self) -> Iterator[tuple[str, GroupedConformal, GroupedConformal]]:
        yield from self.of_others

    @staticmethod
    def settings(predictor: Any) -> Any:
        return predictor.config

    @staticmethod
    def levels(predictor: Any) -> dict[str, float]:
        return dict.fromkeys(predictor.metrics, 0.99)


class Judged:
    """A candidate and a champion; both answer as many metrics and levels."""

    def __init__(self, data: TrainingSet, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data, self.trial = data, FakeTrial(data)
        self.significances: list[float] = []
        self.champion_knows = (~data.stacks.str.startswith("key:")).to_numpy(copy=True)
        monkeypatch.setattr(judgement, "compare", self._compare)

    def _compare(self, *tables: Any, **options: Any) -> PromotionDecision:
        self.significances.append(options.get("significance", 0.0))
        return compare(*tables, **options)

    def decide(
        self, champion_config: TrainingConfig | None = None, metrics: tuple[str, ...] = ("tpot_s",)
    ) -> PromotionDecision:
        known = np.flatnonzero(self.champion_knows)
        candidate, champion = bundle(metrics), bundle(("tpot_s",), *known, config=champion_config)
        rows = self.data.ids, self.data.stacks
        return judge(candidate, champion, self.trial, rows)


def bundle(metrics: tuple[str, ...], *rows: int, config: TrainingConfig | None = None) -> Bundle:
    predictor = SimpleNamespace(config=config, metrics=metrics)
    return cast("Bundle", SimpleNamespace(row_ids=tuple(f"row {i}" for i in rows), predictor=predictor))


ANOTHER = TrainingConfig(calibrate=False)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    return Judged(judged_set(), monkeypatch)


def test_a_candidate_as_good_as_the_champion_is_promoted(judged: Judged) -> None:
    decision = judged.decide(ANOTHER)
    assert decision.promoted, decision.reason
    assert decision.candidate == decision.champion == pytest.approx(0.2, abs=0.01)
    assert decision.reason.endswith("of the champion (+1%)")


def test_without_a_champion_the_candidate_is_promoted(judged: Judged) -> None:
    rows = judged.data.ids, judged.data.stacks
    decision = judge(bundle(("tpot_s",)), None, judged.trial, rows, no_champion="it was lost")
    assert (decision.promoted, decision.reason) == (True, "it was lost")


@pytest.mark.parametrize(
    ("column", "name", "place"),
    [("accelerator", PARTS[1], f"accelerator {PARTS[1]}"), ("stack", OWNERS[0], "stack lab")],
)
def test_a_slice_that_others_own_may_not_get_worse(judged: Judged, column: str, name: str, place: str) -> None:
    is_hit = (judged.data.measurements[column] == name).to_numpy()[:, None]
    judged.trial.held_out[0] = off(judged.data, 0.25).where(
        np.broadcast_to(is_hit, judged.data.y.shape), off(judged.data, 0.1)
    )
    decision = judged.decide(ANOTHER)
    assert decision.champion is not None
    assert decision.candidate < decision.champion
    assert not decision.promoted
    assert decision.reason.startswith(f"significantly worse than the champion on tpot_s of {place}: 0.2")


def test_a_candidate_that_is_worse_on_unseen_stacks_is_refused(judged: Judged) -> None:
    judged.trial.held_out[1] = off(judged.data, 0.5)
    decision = judged.decide(ANOTHER)
    assert not decision.promoted
    assert "worse than the 0.4" in decision.reason
    assert "of the champion, stacks held out" in decision.reason


def test_a_metric_that_is_lost_is_not_even_compared(judged: Judged) -> None:
    decision = judged.decide(ANOTHER, metrics=())
    assert (decision.promoted, decision.reason) == (False, "the candidate no longer predicts tpot_s")
    assert len(judged.significances) == 1


def test_measurements_of_a_key_do_not_judge_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judged(judged_set(uploads=True), monkeypatch)
    is_upload = ~judged.champion_knows[:, None]
    rivals_error = judged.trial.by_lineage
    judged.trial.by_lineage = rivals_error.where(~is_upload, off(judged.data, 0.8))
    judged.trial.held_out[0] = off(judged.data, 0.22).where(~is_upload, judged.data.y)
    decision = judged.decide()
    assert not decision.promoted
    assert decision.candidate == pytest.approx(0.22, abs=0.01)
    judged.trial.held_out[0] = rivals_error.where(~is_upload, off(judged.data, 0.8))
    assert judged.decide().promoted


def test_uploads_that_the_champion_learnt_are_compared_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judged(judged_set(uploads=True), monkeypatch)
    judged.champion_knows[:] = True
    judged.trial.held_out[0] = off(judged.data, 0.22)
    decision = judged.decide()
    assert not decision.promoted
    assert decision.reason.endswith(f"of {BASELINE} (+1%)")


def test_all_comparisons_share_one_probability_of_error(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judged(judged_set(uploads=True), monkeypatch)
    is_upload = ~judged.champion_knows
    judged.champion_knows[np.flatnonzero(is_upload)[:8]] = True
    assert judged.decide().promoted
    alone, *comparisons = judged.significances
    assert alone == 0
    assert comparisons == [pytest.approx(0.05 / len(comparisons))] * 3


@pytest.mark.parametrize(("factor", "is_covered"), [(1.0, True), (1.03, True), (1.5, False), (0.5, True)])
def test_intervals_hold_for_the_rows_of_others(judged: Judged, factor: float, is_covered: bool) -> None:
    scores, labs = np.abs(np.random.default_rng(0).normal(size=500)), pd.Series([f"lab{i % 25}" for i in range(500)])
    judged.trial.of_others = [("tpot_s", GroupedConformal(scores, labs), GroupedConformal(factor * scores, labs))]
    assert (uncovered_intervals(judged.trial) == "") is is_covered
    decision = judged.decide(ANOTHER)
    assert decision.promoted is is_covered
    assert decision.reason.startswith("intervals of tpot_s at level") is not is_covered
