import json
import logging
import logging.config
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from roofcast.serving.http import problem_details
from roofcast.serving.http.problem_details import problem_response as answer
from roofcast.serving.http.request_log import logger
from roofcast.serving.http.telemetry.prometheus import count_answers
from roofcast.serving.logs import configure_service_logs
from tests.serving.http_client import Client, a_demand, a_question, problem_of

PREDICT = "/v1/predictions"


def metrics_of(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the samples of an exposition by name and labels."""
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(samples: dict[Any, float], name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


def send(client: Client, request_id: str, path: str = "/healthz") -> tuple[str, Any]:
    response = client.send("GET", path, headers={"x-request-id": request_id})
    return response.headers["x-request-id"], response.json()


def test_each_response_has_a_request_id(shared: Client) -> None:
    first, second = (shared.get("/healthz").headers["x-request-id"] for _ in range(2))
    assert first != second
    assert len(first) == 32
    assert send(shared, "build-7:a.b_c")[0] == "build-7:a.b_c"
    for invalid in ("a b", "x" * 129, "<script>"):
        assert len(send(shared, invalid)[0]) == 32


def test_problems_have_the_request_id(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert send(client, "mine", "/v1/nothing")[1]["request_id"] == "mine"
    monkeypatch.setattr(client.service.store, "retrainings", lambda **_: 1 / 0)
    response = client.send("GET", "/v1/retrainings", headers={"x-request-id": "mine"})
    assert problem_of(response, 500)["request_id"] == response.headers["x-request-id"] == "mine"


def test_the_traceback_of_a_bug_is_logged_before_its_answer(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("httpx"), "propagate", False)
    logged: list[str] = []

    def answer_and_read_log(*details: Any, **more: Any) -> Any:
        logged.extend(capsys.readouterr().err.splitlines())
        return answer(*details, **more)

    def divide() -> float:
        return 1 / 0

    monkeypatch.setattr(problem_details, "problem_response", answer_and_read_log)
    client.app.add_api_route("/bug", divide)
    configure_service_logs("json")
    response = client.send("GET", "/bug", headers={"x-request-id": "mine"})
    assert problem_of(response, 500)["request_id"] == "mine"
    (line,) = (json.loads(line) for line in logged if '"mine"' in line)
    assert line.items() >= {"level": "ERROR", "status": 500, "path": "/bug"}.items()
    assert "ZeroDivisionError" in line["exc_info"]


def test_each_request_is_logged_without_secrets(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    secret = client.make_key("write", name="ci")
    client.use_key(secret)
    with caplog.at_level(logging.INFO):
        client.post(PREDICT, {"rows": [a_question(model="private-model")]})
        client.post(PREDICT + "?token=hidden", {"rows": []})
        client.get("/v1/%0Afake")
        client.get("/healthz")
    lines = [record for record in caplog.records if record.name == logger.name]
    assert [vars(line)["route"] for line in lines] == [PREDICT, PREDICT, "other"]
    assert (vars(lines[0])["caller"], vars(lines[0])["status"]) == ("key:ci", 200)
    assert "\n" not in lines[2].getMessage()
    for hidden in (secret, secret[-8:], "hidden", "private-model"):
        assert not [record for record in caplog.records if record.name != "httpx" and hidden in record.getMessage()]


def test_logs_are_json_lines_without_a_terminal(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(logging.getLogger("httpx"), "propagate", False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    configure_service_logs("auto")
    send(client, "mine", "/v1/nothing")
    logging.getLogger("uvicorn.error").info("up", extra={"color_message": "colours"})
    configure_service_logs("text")
    send(client, "mine", "/v1/nothing")
    lines = capsys.readouterr().err.splitlines()
    first, second, third = (line for line in lines if "mine" in line or "uvicorn.error" in line)
    line = json.loads(first)
    assert line["took_ms"] > 0
    assert {name: line[name] for name in ("level", "logger", "request_id", "status", "path", "caller")} == {
        "level": "INFO", "logger": "roofcast.access", "request_id": "mine", "status": 404, "path": "/v1/nothing",
        "caller": line["caller"],
    }  # fmt: skip
    assert line["time"].endswith("+00:00")
    assert set(json.loads(second)) == {"level", "logger", "message", "request_id", "time"}
    assert "INFO roofcast.access [mine]: GET /v1/nothing 404" in third


def test_a_warning_of_a_library_is_a_json_line() -> None:
    """A process of its own: the capture of warnings is global."""
    code = (
        "import warnings; from roofcast.serving.logs import configure_service_logs as configure;"
        "configure('json'); warnings.warn('two\\nlines', stacklevel=1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["level"], line["logger"]) == ("WARNING", "py.warnings")
    assert "two\nlines" in line["message"]


def test_promotions_are_logged_at_any_level(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("httpx"), "propagate", False)
    configure_service_logs("json", "error")
    send(client, "mine", "/v1/nothing")
    client.service.registry.promote("1", by="me")
    configure_service_logs("json")
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    fields = {"action": "promotion", "caller": "me", "version_before": "1", "version": "1"}
    assert line.items() >= {"logger": "roofcast.audit", **fields}.items()


def test_metrics_count_answers_and_requests(client: Client) -> None:
    before = metrics_of(client.get("/metrics").text)
    rows = [a_question(), a_question(n_input_token=9_000), a_question(model="unknown")]
    answers = client.post(PREDICT, {"rows": rows}).json()["rows"]
    client.post("/v1/recommendations", a_demand())
    client.post("/v1/recommendations", a_demand(limits=["ttft:p50<=0.001ms"]))
    for name in ("a", "b"):
        client.get(f"/v1/retrainings/{name}")
    client.send("BREW", "/v1/tea")
    client.send("POST", "/v1/retrainings")
    client.run(lambda: client.app.state.health_monitor.check("store"))
    after = metrics_of(client.get("/metrics").text)

    def increase(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert increase("roofcast_predictions_total", status="ok") == 2
    assert increase("roofcast_predictions_total", status="unknown_name") == 1
    assert increase("roofcast_predictions_outside_total") == sum(answer["outside"] for answer in answers)
    assert increase("roofcast_recommendations_total", found="yes") == 1
    assert increase("roofcast_recommendations_total", found="no") == 1
    count = "roofcast_request_seconds_count"
    assert increase(count, method="POST", route=PREDICT, status="200") == 1
    assert increase(count, method="GET", route="/v1/retrainings/{retraining_id}", status="404") == 2
    assert increase(count, method="other", route="other", status="404") == 1
    assert value(after, "roofcast_retrainings", state="queued") == 1
    assert value(after, "roofcast_check_ok", check="store") == 1
    champion = client.service.active_model.champion
    info = {"version": "1", "sha256": champion.sha256, "roofcast_version": "0.1.0"}
    assert value(after, "roofcast_predictor_info", **info) == 1


def test_rows_outside_the_measurements_are_counted(shared: Client) -> None:
    name = "roofcast_predictions_outside_total"
    before = value(metrics_of(shared.get("/metrics").text), name)
    count_answers({"status": np.array(["ok", "ok", "invalid"]), "outside": np.array([True, False, False])})
    assert value(metrics_of(shared.get("/metrics").text), name) == before + 1


def test_names_chosen_by_callers_are_no_labels(client: Client) -> None:
    client.get("/v1/nothing/chosen-by-caller")
    client.get("/v1/retrainings/chosen-by-caller")
    client.post(PREDICT, {"rows": [a_question(model="chosen-by-caller")]})
    assert "chosen-by-caller" not in client.get("/metrics").text
