"""Splits that a model admits, for bulk answers and recommendations alike."""

from __future__ import annotations

import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.serving.recommendation.replicas import enumerate_replicas
from roofcast.serving.splits import split_problem
from tests.serving.client import Client, a_question

MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"tp": 3, "n_accelerator": 3}, "invalid", "tp: must divide the model's 32 attention heads, got 3"),
        ({"tp": 3, "n_accelerator": 3, "engine": "transformers-neuronx"}, "ok", ""),
        ({"n_accelerator": 3}, "ok", ""),
        ({"ep": 2, "n_accelerator": 2}, "invalid", "ep: must be 1, as the model has no experts, got 2"),
        ({"ep": 1, "n_accelerator": 2}, "ok", ""),
        ({"model": MIXTRAL, "ep": 8, "n_accelerator": 8}, "ok", ""),
        ({"model": MIXTRAL, "ep": 16, "n_accelerator": 16}, "invalid", "ep: must be at most the model's 8 experts"),
    ],
)
def test_a_split_that_the_model_does_not_admit_is_invalid(
    changes: dict[str, object], status: str, said: str, shared: Client
) -> None:
    (row,) = shared.post("/v1/predictions", {"rows": [a_question(**changes)]}).json()["rows"]
    assert row["status"] == status, row["reason"]
    assert said in row["reason"]


def test_replicas_are_splits_that_the_model_admits() -> None:
    catalog = load_catalog()
    model = catalog.model("llama-3.1-8b").model_copy(update={"n_head": 12})
    replicas, _ = enumerate_replicas(model, catalog.accelerators, catalog.offers)
    assert {replica.tp for replica in replicas} == {1, 2, 4}


def test_nothing_that_was_measured_is_refused() -> None:
    catalog, rows = load_catalog(), load_campaigns()
    splits = rows[["model", "tp", "ep", "engine"]].fillna({"tp": 1, "ep": 1}).drop_duplicates()
    for model, tp, ep, engine in splits.itertuples(index=False, name=None):
        assert split_problem(catalog.model(model), tp, ep, engine) == ""
