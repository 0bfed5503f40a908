from collections.abc import Iterator
from typing import Any

import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service
from roofcast.serving.http.app import create_app
from roofcast.serving.jobs.job_messages import MAX_ROW
from tests.serving.http_client import CONFIG, Client, problem_of, running
from tests.serving.jobs.builders import a_job, a_training_demand, an_estimate_model

PREDICTIONS = "/v1/training/predictions"
RECOMMENDATIONS = "/v1/training/recommendations"


@pytest.fixture(scope="module")
def service_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client of an application without a predictor of inference, which these routes do not ask."""
    with running(create_app(Settings(home=tmp_path_factory.mktemp("home"), poll_s=3600))) as client:
        yield client


@pytest.fixture(autouse=True)
def estimate_predictor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Service, "job_model", an_estimate_model())


def test_each_row_has_an_answer_or_a_reason(service_client: Client) -> None:
    response = service_client.post(
        PREDICTIONS,
        {
            "rows": [a_job(), a_job(model="?"), a_job(n_accelerator=1, framework="torchtitan", offload="none")],
            "level": 0.9,
        },
    )
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["level"] == 0.9
    assert [row["status"] for row in answer["rows"]] == ["ok", "unknown_name", "does_not_fit"]
    assert answer["rows"][0]["model"] == a_job()["model"]


def test_a_model_may_come_as_its_configuration(service_client: Client) -> None:
    request = {"rows": [a_job(model="my-14b")], "models": [{"name": "my-14b", "config": CONFIG}]}
    (row,) = service_client.post(PREDICTIONS, request).json()["rows"]
    assert row["status"] == "ok", row["reason"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"rows": []}, "rows"),
        ({"rows": [a_job()] * (MAX_ROW + 1)}, "rows"),
        ({"rows": [a_job(step_time_s=1)]}, "step_time_s"),
        ({"level": 1}, "level"),
        ({"models": [{"name": "my-14b", "config": {}}]}, "hidden_size"),
        ({"extra": 1}, "extra"),
    ],
)
def test_an_invalid_request_names_its_field(service_client: Client, changes: dict[str, Any], field: str) -> None:
    problem = problem_of(service_client.post(PREDICTIONS, {"rows": [a_job()]} | changes), 422)
    assert field in problem["field"]


def test_a_recommendation_ranks_runs(service_client: Client) -> None:
    answer = service_client.answer(RECOMMENDATIONS, a_training_demand(model={"name": "my-14b", "config": CONFIG}))
    assert answer["model"] == "my-14b"
    assert [entry["rank"] for entry in answer["entries"]] == list(range(1, len(answer["entries"]) + 1))


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"n_token": 0}, 422, "n_token"),
        ({"n_token": "many"}, 422, "n_token"),
        ({"n_epoch": -1}, 422, "n_epoch"),
        ({"deadline_h": 0}, 422, "deadline_h"),
        ({"budget_usd": 1e300}, 422, "budget_usd"),
        ({"method": "magic"}, 422, "method"),
        ({"method": "full", "adapter_rank": 8}, 422, ""),
        ({"adapter_targets": ["z"]}, 422, "adapter_targets.0"),
        ({"n_token_per_sequence": 10**9}, 422, "n_token_per_sequence"),
        ({"constraints": {"max_nodes": 0}}, 422, "constraints.max_nodes"),
        ({"constraints": {"accelerators": ["no-such"]}}, 404, "accelerator"),
        ({"constraints": {"providers": ["no-such"]}}, 404, "constraints.providers"),
        ({"constraints": {"accelerators": ["aws-inferentia2"]}}, 422, "constraints"),
        ({"constraints": {"accelerators": ["rtx-4090-24gb"], "providers": ["aws"]}}, 422, "constraints"),
        ({"model": "no-such-model"}, 404, "model"),
        ({"model": {"name": "x", "config": {}}}, 422, "model.config.hidden_size"),
        ({"frameworks": ["jax"]}, 422, "frameworks.0"),
        ({"level": 1.5}, 422, "level"),
        ({"confidence": 1.0}, 422, "confidence"),
    ],
)
def test_an_invalid_demand_names_its_field(
    service_client: Client, changes: dict[str, Any], status: int, field: str
) -> None:
    problem = problem_of(service_client.post(RECOMMENDATIONS, a_training_demand(**changes)), status)
    assert problem["field"] == field


def test_a_degree_of_a_job_has_two_spellings(service_client: Client) -> None:
    rows = [a_job(tp=2), a_job(tensor_parallel=2), a_job(tp=2, tensor_parallel=2)]
    short, long, both = service_client.post(PREDICTIONS, {"rows": rows}).json()["rows"]
    assert (long["status"], long["step_time_s"]) == ("ok", short["step_time_s"])
    assert (both["status"], both["reason"]) == ("invalid", "tensor_parallel: is given as tp too; keep one")
