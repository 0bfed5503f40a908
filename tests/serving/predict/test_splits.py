"""Splits that a model admits, in predictions, explanations and recommendations."""

import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.validity.model_limits import split_error
from roofcast.serving.recommend.search.configurations import enumerate_replicas
from tests.builders import a_model
from tests.serving.http_client import Client, a_question, problem_of

MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"
SMALL = {"model": "Qwen/Qwen2.5-3B-Instruct", "weight_precision": "bf16"}


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"tp": 3, "n_accelerator": 3}, "invalid", "tp: must divide the model's 32 attention heads, got 3"),
        ({"tp": 3, "n_accelerator": 3, "engine": "transformers-neuronx", "accelerator": "aws-inferentia2"}, "ok", ""),
        ({"n_accelerator": 3}, "invalid", "tp: is blank, and 3 for 3 accelerators must divide the model's 32"),
        ({"n_accelerator": 3, "pp": 3}, "ok", ""),
        ({"n_accelerator": 3, "engine": "deepspeed"}, "ok", ""),
        ({"ep": 2, "n_accelerator": 2}, "invalid", "ep: must be 1, as the model has no experts, got 2"),
        ({"ep": 1, "n_accelerator": 2}, "ok", ""),
        ({"model": MIXTRAL, "ep": 8, "n_accelerator": 8}, "ok", ""),
        ({"model": MIXTRAL, "ep": 16, "n_accelerator": 16}, "invalid", "ep: must be at most the model's 8 experts"),
        (SMALL | {"accelerator": "amd-mi300x-192gb", "engine": "trtllm"}, "does_not_run",
         "engine: trtllm does not run on AMD"),
        (SMALL | {"accelerator": "nvidia-v100-sxm2-32gb", "engine": "vllm", "engine_version": "0.32.0"},
         "does_not_run", "engine_version: vllm 0.32.0 does not run on NVIDIA Tesla V100"),
        (SMALL | {"accelerator": "nvidia-t4-16gb", "engine": "vllm", "weight_precision": ""}, "ok", ""),
        (SMALL | {"accelerator": "nvidia-t4-16gb"}, "ok", ""),
    ],
)  # fmt: skip
def test_what_the_model_does_not_admit_is_invalid_and_what_does_not_run_has_a_status_of_its_own(
    changes: dict[str, object], status: str, message: str, shared: Client
) -> None:
    (row,) = shared.post("/v1/predictions", {"rows": [a_question(**changes)]}).json()["rows"]
    assert row["status"] == status, row["reason"]
    assert message in row["reason"]


def test_an_assumed_split_is_refused_in_an_explanation(shared: Client) -> None:
    problem = problem_of(shared.post("/v1/explanations", {"rows": [a_question(n_accelerator=3)]}), 422)
    assert problem["field"] == "tp"
    assert "is blank" in problem["detail"]


def test_engines_without_split_key_value_heads_refuse_other_degrees() -> None:
    model = a_model(n_head=40, n_kv_head=10)
    message = "tp: must divide the model's 10 key-value heads or be a multiple of them, got 4"
    engines = ("vllm", "sglang", "trtllm", "")
    assert [str(split_error(model, 4, engine=engine) or "") for engine in engines] == [message, message, "", ""]
    assert [split_error(model, tp, engine="vllm") for tp in (2, 5, 10, 20)] == [None] * 4


def test_replicas_are_splits_that_the_model_admits() -> None:
    catalog = load_catalog()
    model = catalog.model("llama-3.1-8b").model_copy(update={"n_head": 12})
    replicas, _ = enumerate_replicas(model, catalog.accelerators, catalog.offers)
    assert {replica.tp for replica in replicas if replica.engine == "trtllm"} == {1, 2, 4}
    assert {replica.tp for replica in replicas if replica.engine == "vllm"} == {1, 2, 4}


def test_every_measured_split_is_admitted() -> None:
    catalog, rows = load_catalog(), load_campaigns()
    splits = rows[["model", "tp", "ep", "engine"]].fillna({"tp": 1, "ep": 1}).drop_duplicates()
    for model, tp, ep, engine in splits.itertuples(index=False, name=None):
        assert split_error(catalog.model(model), tp, ep, engine) is None
