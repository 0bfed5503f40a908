"""Measurements of the same configuration are found by what they share, the newest first."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.features.descriptors.config_hash import config_hashes
from roofcast.training.explain.measured_points import DESCRIPTORS, POINT_COLUMNS, MeasuredPoints
from roofcast.training.learner.errors.group_keys import build_group_keys
from tests.builders import a_model, a_question, an_accelerator, describe_questions

BASE = a_question(concurrency=16, date="2025-11-01")


def points_of(*questions: dict[str, Any]) -> MeasuredPoints:
    X = describe_questions(*questions)
    rows = pd.DataFrame(list(questions)).reindex(columns=list(POINT_COLUMNS)).assign(stack="lab")
    return MeasuredPoints(rows, pd.DataFrame(config_hashes(X)), X[[*DESCRIPTORS]])


@pytest.mark.parametrize(
    ("change", "support"),
    [
        ({}, "measured"),
        ({"date": "2026-02-01"}, "measured"),
        ({"concurrency": 17}, "measured"),
        ({"n_input_token": 920}, "measured"),
        ({"concurrency": 19}, "near"),
        ({"n_output_token": 300}, "near"),
        ({"statistic": "p50"}, "near"),
        ({"prefix_cache_ratio": 0.5}, "near"),
        ({"n_accelerator": 2}, "near"),
        ({"weight_precision": "fp8"}, "near"),
        ({"engine": "sglang"}, "extrapolated"),
    ],
)
def test_an_answer_is_measured_near_or_extrapolated(change: dict[str, Any], support: str) -> None:
    points, queries = points_of(BASE, BASE | {"concurrency": 64}), describe_questions(BASE | change)
    match = points.match(queries, build_group_keys(queries))
    assert match.support == [support]
    assert match.row.tolist() == [0 if support == "measured" else -1]


def test_the_newest_of_several_measurements_stands_beside_the_answer() -> None:
    points = points_of(*(BASE | {"date": date} for date in ("2025-10-01", "2026-03-01", "2025-12-01")))
    queries = describe_questions(BASE, BASE | {"concurrency": 2}, BASE)
    assert points.match(queries, build_group_keys(queries)).row.tolist() == [1, -1, 1]


def test_another_model_and_another_accelerator_are_extrapolated() -> None:
    points = points_of(BASE)
    for changes in ({"model": a_model(n_layer=7)}, {"accelerator": an_accelerator(memory_byte=24e9)}):
        queries = describe_questions(BASE, **changes)
        assert points.match(queries, build_group_keys(queries)).support == ["extrapolated"]


def test_without_measurements_everything_is_extrapolated() -> None:
    queries = describe_questions(BASE)
    match = MeasuredPoints().match(queries, build_group_keys(queries))
    assert match.support == ["extrapolated"]
    assert not len(np.flatnonzero(match.row >= 0))
