"""Removal of registered models over HTTP and by the command line."""

import logging
from typing import Any

import pytest

from roofcast.serving.app_state.retraining_run import learning_rows
from tests.conditions import wait_until
from tests.serving.http_client import CONFIG, MODEL, Client, Run, a_measurement, a_question, problem_of
from tests.training.builders import QUIET, learning_from

PATH = "/v1/models"
MEASUREMENTS = "/v1/measurements"
NAME = "mine/one"


def register(client: Client, name: str = NAME) -> str:
    """Import a row of a new model; return the id of the import."""
    body = {"rows": [a_measurement(model=name)], "models": [{"name": name, "config": CONFIG}]}
    import_id: str = client.answer(MEASUREMENTS, body, status=201)["import_id"]
    return import_id


def learnt(client: Client) -> Any:
    return learning_rows(learning_from(QUIET, ["llm_pilot"]), client.service.store, client.service.catalog)


def known(client: Client) -> set[str]:
    return {model["id"] for model in client.get(PATH).json()}


def test_a_model_is_removed_once_its_measurements_are_withdrawn(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.use_key(client.make_key("write", name="a"))
    import_id = register(client)
    refused = problem_of(client.send("DELETE", f"{PATH}/{NAME}"), 422)
    cure = "withdraw its 1 measurements of inference first (nightly)"
    assert refused["detail"] == f"model: 'mine/one' is in use: {cure}"
    assert client.post(f"{MEASUREMENTS}/withdrawals", {"import_id": import_id}).json()["n_row"] == 1
    with caplog.at_level(logging.INFO, "roofcast.audit"):
        assert client.send("DELETE", f"{PATH}/mine%2Fone").json()["id"] == NAME
    assert "model removal caller=key:a model=mine/one" in caplog.messages
    assert NAME not in known(client)
    problem = problem_of(client.send("DELETE", f"{PATH}/{NAME}"), 404)
    assert problem["field"] == "model"
    assert client.post("/v1/predictions", {"rows": [a_question(model=NAME)]}).json()["rows"][0]["status"] != "ok"
    assert register(client) != import_id
    assert NAME in known(client)


def test_a_key_removes_its_own_models_and_an_operator_any(client: Client) -> None:
    admin, first, second = (client.make_key(scope) for scope in ("admin", "write", "write"))
    for key, name in ((first, NAME), (admin, "ours/two")):
        client.use_key(key)
        client.post(f"{MEASUREMENTS}/withdrawals", {"import_id": register(client, name)})
    for key, name in ((second, NAME), (first, "ours/two")):
        client.use_key(key)
        refused = problem_of(client.send("DELETE", f"{PATH}/{name}"), 422)
        assert refused["detail"] == f"model: {name!r} was registered by another key or an operator; ask an operator"
    client.use_key(client.make_key("read"))
    assert client.send("DELETE", f"{PATH}/{NAME}").status_code == 403
    client.use_key(admin)
    for name in (NAME, "ours/two"):
        assert client.send("DELETE", f"{PATH}/{name}").status_code == 200
    assert not client.service.store.models.load()


def test_a_model_of_the_package_stays(client: Client) -> None:
    refused = problem_of(client.send("DELETE", f"{PATH}/{MODEL}"), 422)
    assert "is a model of the package, which stays; registered are none" in refused["detail"]
    assert MODEL in known(client)


def test_a_model_of_a_stack_profile_stays(client: Client) -> None:
    row = {"model": NAME, "accelerator": "nvidia-a100-pcie-80gb", "concurrency": 4, "tpot_s": 0.06}
    row |= {"n_input_token": 120, "n_output_token": 20}
    body = {"name": "rack", "rows": [row], "models": [{"name": NAME, "config": CONFIG}]}
    response = client.post("/v1/stacks", body)
    assert response.status_code == 201, response.text
    refused = problem_of(client.send("DELETE", f"{PATH}/{NAME}"), 422)
    assert refused["detail"].endswith("remove the stack profiles with its 1 runs first")
    client.send("DELETE", "/v1/stacks/rack")
    assert client.send("DELETE", f"{PATH}/{NAME}").status_code == 200


def test_rows_restored_without_their_model_teach_nothing(client: Client) -> None:
    """The service goes on; the rows teach again once the model is registered again."""
    client.use_key(client.make_key("admin"))
    selection = {"import_id": register(client)}
    client.post(f"{MEASUREMENTS}/withdrawals", selection)
    client.send("DELETE", f"{PATH}/{NAME}")
    client.post(f"{MEASUREMENTS}/restorations", selection)
    n_row = len(learnt(client).ids)
    assert learnt(client).set_aside["unknown_model"] == 1
    for path in (MEASUREMENTS, "/v1/drift", "/v1/campaigns/report", "/metrics"):
        assert client.get(path).status_code == 200, path
    body = {"rows": [a_measurement(model=NAME, concurrency=32)], "models": [{"name": NAME, "config": CONFIG}]}
    assert client.post(MEASUREMENTS, body).status_code == 201
    assert len(learnt(client).ids) == n_row + 2


def test_the_command_line_removes_a_model_and_a_service_notices(client: Client, run: Run) -> None:
    register(client)
    assert "is in use: withdraw its 1 measurements of inference first (nightly)" in run.error(
        "models", "remove", NAME
    )
    run("measurements", "withdraw", "--campaign", "nightly")
    assert run.json("models", "remove", NAME) == [{"removed": NAME}]
    wait_until(lambda: NAME not in known(client))
    assert NAME not in {model["id"] for model in run.json("models")}
