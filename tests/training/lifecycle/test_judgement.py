"""Which recipes a candidate is compared with, and on which rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.error_distribution import GroupedConformal
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundle import ModelBundle
from roofcast.training.lifecycle.judgement import BASELINE, CHAMPION, lost_answers, rivals, uncovered_intervals

STACKS = ["lab/a", "lab/b", "", "key:a/rig", "key:b/rig"]


def training_set(stacks: list[str]) -> TrainingSet:
    n = len(stacks)
    frame = pd.DataFrame(index=range(n))
    ids = pd.Series([f"row {i}" for i in range(n)])
    groups = pd.Series([f"lineage {i % 3}" for i in range(n)])
    return TrainingSet(frame, frame, frame, groups, pd.Series(stacks, dtype=object), ids)


def bundle(*rows: int, config: TrainingConfig | None = None, **predictor: Any) -> ModelBundle:
    fields = {"config": config, "row_ids": tuple(f"row {i}" for i in rows)}
    return cast(
        "ModelBundle",
        SimpleNamespace(row_ids=fields["row_ids"], predictor=SimpleNamespace(config=config, **predictor)),
    )


def compared(incumbent: ModelBundle | None, stacks: list[str]) -> list[tuple[str, list[int], list[list[int]], bool]]:
    return [
        (
            r.name,
            np.flatnonzero(r.trainable).tolist(),
            [np.flatnonzero(rows).tolist() for rows in r.judged],
            r.by_stack,
        )
        for r in rivals(bundle(), incumbent, training_set(stacks))
    ]


def test_the_same_recipe_on_the_same_rows_has_no_rival() -> None:
    assert compared(bundle(0, 1, 2), STACKS[:3]) == []
    assert compared(None, STACKS[:3]) == []


def test_rows_of_the_owner_that_added_some_do_not_judge() -> None:
    assert compared(bundle(0, 1, 2), [*STACKS[:3], ""]) == [(CHAMPION, [0, 1, 2], [[0, 1]], True)]
    assert compared(bundle(0, 1, 2), STACKS[:4]) == [(CHAMPION, [0, 1, 2], [[0, 1, 2]], True)]


def test_uploads_are_judged_by_what_is_learnt_without_any_too() -> None:
    assert compared(bundle(0, 1, 2, 3), STACKS) == [
        (CHAMPION, [0, 1, 2, 3], [[0, 1, 2, 3]], False),
        (BASELINE, [0, 1, 2], [[0, 1, 2]], True),
    ]
    more = [*STACKS, "key:a/rig", "key:b/rig"]
    champion, _ = compared(bundle(0, 1, 2, 3, 4), more)
    assert champion[2] == [[0, 1, 2, 4], [0, 1, 2, 3]]
    assert compared(None, STACKS) == [(BASELINE, [0, 1, 2], [[0, 1, 2]], True)]


def test_rows_of_a_shipped_campaign_that_the_champion_lacks_exclude_nobody() -> None:
    assert compared(bundle(0), STACKS[:2]) == [(CHAMPION, [0], [[0]], True)]


def answering(*metrics: str, level: float = 0.99) -> ModelBundle:
    distribution = SimpleNamespace(conformal=SimpleNamespace(highest_level=level))
    return bundle(metrics_=metrics, error_distributions_=dict.fromkeys(metrics, distribution))


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (answering("tpot_s"), answering("tpot_s", "ttft_s"), ""),
        (answering("tpot_s", "ttft_s"), answering("tpot_s"), "no longer predicts ttft_s"),
        (answering("tpot_s"), answering("tpot_s", level=0.96), ""),
        (
            answering("tpot_s"),
            answering("tpot_s", level=0.9),
            "intervals of tpot_s up to 0.900, the champion to 0.990",
        ),
        (answering("tpot_s", level=0.8), answering("tpot_s", level=0.8), ""),
    ],
)
def test_what_was_answered_stays_answered(before: ModelBundle, after: ModelBundle, lost: str) -> None:
    assert lost in lost_answers(after, before)
    assert bool(lost) == bool(lost_answers(after, before))


@pytest.mark.parametrize(("factor", "is_covered"), [(1.0, True), (1.5, False), (0.5, True)])
def test_intervals_hold_for_the_rows_of_others(factor: float, is_covered: bool) -> None:
    data = training_set([f"lab{i % 25}/a" for i in range(500)] + ["key:evil/rig"] * 500)
    scores = np.abs(np.random.default_rng(0).normal(size=1000))
    conformal = GroupedConformal(scores[:500], data.stacks[:500])
    predictor = SimpleNamespace(
        scores_={"tpot_s": np.stack([factor * scores] * 2)},
        error_distributions_={"tpot_s": SimpleNamespace(conformal=conformal)},
    )
    problem = uncovered_intervals(cast("RoofcastPredictor", predictor), data)
    assert (problem == "") is is_covered
