"""Shadow mode over HTTP, on the command line and by the client: set, answer beside, compare, promote, withdraw."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roofcast.client import Client as RoofcastClient
from roofcast.client import NoAnswerError
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.stacks import stack_choice
from roofcast.training.lifecycle.gate.challenger_alias import challenger_of, set_challenger
from tests.conditions import wait_until
from tests.conftest import QUICK
from tests.serving.client.test_client import Wire
from tests.serving.http.test_app import register_copy
from tests.serving.http.test_promotions import promote, register_wrong_checksum
from tests.serving.http_client import Client, Run, a_measurement, a_question, problem_of

CHALLENGER = "/v1/predictor/challenger"


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=home, training=QUICK, poll_s=0.05, shadow_ratio=1.0)


def shadow(client: Client, version: str) -> Any:
    body = json.dumps({"version": version})
    return client.send("PUT", CHALLENGER, body, {"content-type": "application/json"})


def comparison(client: Client, version: str) -> Any:
    return client.get(f"/v1/predictor/versions/{version}/comparison").json()


def test_a_challenger_answers_beside_the_champion_and_is_promoted(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roofcast.serving.shadow.shadow.FLUSH_S", 0.05)
    second = register_copy(client.service)
    answer = shadow(client, second).json()
    assert (answer["version"], answer["is_loaded"], answer["problem"]) == (second, True, "")
    assert client.get(CHALLENGER).json() == answer
    assert client.get("/readyz").json()["checks"]["challenger"] == {"ok": True, "detail": f"version {second}"}
    response = client.post("/v1/predictions", {"rows": [a_question(), a_question(model="unknown")]}).json()
    assert response["predictor_version"] == "1"
    added = client.post("/v1/measurements?compare=true", {"rows": [a_measurement()]}).json()
    assert added["drift"]["challenger"]["version"] == second
    wait_until(lambda: comparison(client, second)["answers"]["n_row"] == 1)
    compared = comparison(client, second)
    assert (compared["champion_version"], compared["version"], compared["is_challenger"]) == ("1", second, True)
    assert {one["median_ratio"] for one in compared["answers"]["ratios"]} == {1.0}
    errors = compared["measurements"]["errors"]
    assert {one["metric"] for one in errors} == {"ttft_s", "itl_s"}
    assert all(one["champion_median_ape"] == one["challenger_median_ape"] for one in errors)
    metrics = client.get("/metrics").text
    assert f'roofcast_challenger_info{{sha256="{answer["sha256"]}",version="{second}"}} 1.0' in metrics
    assert 'roofcast_shadow_rows_total{outcome="compared"}' in metrics
    assert 'roofcast_shadow_median_ratio{metric="ttft_s"} 1.0' in client.get("/metrics").text
    assert promote(client, second).json()["version"] == second
    problem_of(client.get(CHALLENGER), 409)
    wait_until(lambda: "challenger" not in client.get("/readyz").json()["checks"])
    assert [c["action"] for c in client.get("/v1/predictor/changes").json()[:2]] == ["promotion", "shadow"]


@pytest.mark.slow
def test_answers_about_a_measured_stack_are_not_compared(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[object] = []
    monkeypatch.setattr(client.app.state.shadow, "offer", lambda *question: offered.append(question))
    another = replace(client.service.active_model.bundle)
    monkeypatch.setattr(stack_choice, "_bundle_about", lambda *_: another)
    stack = client.get("/v1/measured-stacks").json()[0]["name"]
    body = {"rows": [a_question()]}
    assert client.post("/v1/predictions", body | {"stack": stack}).json()["stack"]["kind"] == "measured"
    assert not offered
    assert client.post("/v1/predictions", body).status_code == 200
    assert len(offered) == 1


def test_a_challenger_that_cannot_be_loaded_is_named_and_the_service_is_ready(client: Client) -> None:
    broken = register_wrong_checksum(client)
    assert "registered checksum" in problem_of(shadow(client, broken), 422)["detail"]
    assert challenger_of(client.service.registry) is None
    set_challenger(client.service.registry, broken)
    wait_until(lambda: "challenger" in client.get("/readyz").json()["checks"])
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert f"version {broken}, cannot be loaded" in ready.json()["checks"]["challenger"]["detail"]
    assert client.post("/v1/predictions", {"rows": [a_question()]}).status_code == 200
    assert client.get(CHALLENGER).json()["is_loaded"] is False


def test_what_cannot_be_compared_or_shadowed_is_refused(client: Client) -> None:
    assert "another than the champion's" in problem_of(shadow(client, "1"), 422)["detail"]
    problem_of(shadow(client, "99"), 404)
    of_training = json.dumps({"version": register_copy(client.service), "target": "training"})
    refused = client.send("PUT", CHALLENGER, of_training, {"content-type": "application/json"})
    assert problem_of(refused, 422)["field"] == "target"
    problem_of(client.get("/v1/predictor/versions/99/comparison"), 404)
    problem_of(client.get("/v1/predictor/versions/1/comparison"), 422)
    problem_of(client.send("DELETE", CHALLENGER), 409)
    client.use_key(client.make_key("write"))
    problem_of(shadow(client, "1"), 403)
    problem_of(client.send("DELETE", CHALLENGER), 403)


@pytest.mark.slow
def test_shadow_mode_on_the_command_line(client: Client, run: Run) -> None:
    second = register_copy(client.service)
    assert run("versions", "shadow", second)[:2] == (0, f"version {second} answers beside the champion\n")
    rows = run.json("versions")
    assert [(row["version"], row["in_service"], row["is_challenger"]) for row in rows] == [
        (second, False, True),
        ("1", True, False),
    ]
    client.post("/v1/measurements", {"rows": [a_measurement()]})
    status, out, err = run("versions", "compare", second)
    assert (status, "no difference found" in out, "has answered nothing" in err) == (0, True, True)
    compared = run.json("versions", "compare", second)
    assert compared["measurements"]["n_compared"] == 1
    assert "beside version" in run("drift")[1]
    assert run("versions", "withdraw")[:2] == (0, f"version {second} no longer answers\n")
    assert run("versions", "withdraw")[0] != 0


def test_the_client_shadows_compares_and_withdraws(client: Client) -> None:
    second = register_copy(client.service)
    with RoofcastClient("http://test", client.make_key("admin"), transport=Wire(client)) as roofcast:
        assert roofcast.shadow(version=second) == roofcast.challenger()
        assert roofcast.compare_version(second, days=1)["is_challenger"]
        assert roofcast.withdraw_challenger() == {"version": second}
        with pytest.raises(NoAnswerError, match="no challenger"):
            roofcast.challenger()
