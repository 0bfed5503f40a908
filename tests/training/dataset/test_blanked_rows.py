from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import pytest

from roofcast.training.dataset.blanked_rows import MAX_ROW_OF_OWNER, build_blanked_rows
from roofcast.training.dataset.stacks import UPLOADED
from tests.builders import a_model, an_accelerator
from tests.training.builders import measurements

MODELS = {"a": a_model(id="a")}
PARTS = {"p": an_accelerator(id="p")}
ROW = {"model": "a", "accelerator": "p", "engine": "vllm", "concurrency": 4}


def blanked(*rows: Mapping[str, object], stacks: list[str] | None = None) -> dict[str, list[int]]:
    """Return the rows that are blanked by column."""
    table = measurements(*(ROW | dict(row) for row in rows))
    names = pd.Series(stacks or [""] * len(table), index=table.index)
    return {name: rows.X.index.tolist() for name, rows in build_blanked_rows(table, names, MODELS, PARTS).items()}


def test_only_rows_that_state_a_column_are_blanked() -> None:
    assert blanked({"length_variation": 0.1}, {}, {"length_variation": 0.2})["length_variation"] == [0, 2]


def test_a_blanked_question_takes_the_usual_value() -> None:
    table = measurements(ROW | {"length_variation": 0.1})
    X = build_blanked_rows(table, pd.Series([""]), MODELS, PARTS)["length_variation"].X
    assert X["workload.length_variation"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"tp": 1}, "tp"),
        ({"speculation": "none", "n_speculative_token": 3}, "n_speculative_token"),
        ({"prefix_caching": "off", "prefix_cache_ratio": 0.0}, "prefix_cache_ratio"),
        ({"weight_precision": "fp8"}, "weight_precision"),
        ({}, "concurrency"),
    ],
)
def test_what_has_no_effect_or_is_a_convention_is_not_blanked(row: dict[str, object], column: str) -> None:
    assert column not in blanked(row)


def test_uploaded_rows_are_not_blanked() -> None:
    assert blanked({"n_request": 8}, stacks=[f"{UPLOADED}ci/x"]) == {}


def test_an_owner_has_a_bounded_number_of_rows_evenly_spread() -> None:
    many = [{"n_request": 8 + i} for i in range(3 * MAX_ROW_OF_OWNER)]
    chosen = blanked(*many, {"n_request": 7}, stacks=["dense/a"] * len(many) + ["sparse/b"])["n_request"]
    assert chosen == [*range(0, len(many), 3), len(many)]


def test_the_stated_share_is_the_mean_over_owners() -> None:
    table = measurements(*(ROW | row for row in ({"n_request": 8}, {"n_request": 9}, {}, {})))
    stacks = pd.Series(["a/1", "a/2", "a/2", "b"])
    assert build_blanked_rows(table, stacks, MODELS, PARTS)["n_request"].stated_share == pytest.approx(
        (2 / 3 + 0) / 2
    )
