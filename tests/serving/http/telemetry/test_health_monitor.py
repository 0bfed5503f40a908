import asyncio
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from roofcast.data.errors import NotReadyError
from roofcast.data.measurements.target import INFERENCE, TRAINING
from roofcast.data.store.database import database
from roofcast.serving.app_state.champion_loader import ChampionLoader
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service, build_service
from roofcast.serving.http.app import create_app
from roofcast.serving.http.telemetry.health_monitor import STOPPING, HealthMonitor
from tests.conditions import PATIENCE_S, wait_until
from tests.conftest import QUICK
from tests.postgres import new_database
from tests.serving.http.test_app import register_copy
from tests.serving.http_client import Client, a_demand, a_measurement, a_question, problem_of, running

QUESTION = {"rows": [a_question()]}
ROWS = {"rows": [a_measurement()]}


def checks_of(client: Client) -> dict[str, Any]:
    checks: dict[str, Any] = client.get("/readyz").json()["checks"]
    return checks


def set_open(server: str, database: str, *, is_open: bool) -> None:
    """Let a database accept or refuse connections, and end those that it has."""
    import psycopg  # noqa: PLC0415  (an optional driver)

    name = database.rpartition("/")[2]
    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS {is_open}".encode())
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


def test_probes_answer_head_as_well(shared: Client) -> None:
    for path in ("/healthz", "/readyz"):
        assert shared.send("HEAD", path).status_code == 200


def test_readiness_reports_each_part(shared: Client) -> None:
    assert shared.get("/readyz").json() == {
        "status": "ready",
        "predictor_version": "1",
        "checks": {
            "predictor": {"ok": True, "detail": "version 1"},
            "store": {"ok": True, "detail": ""},
            "registry": {"ok": True, "detail": ""},
        },
    }


def test_predictions_are_answered_while_postgresql_is_down(home: Path, postgres_server: str) -> None:
    url = new_database(postgres_server)
    settings = Settings(home=home, training=QUICK, poll_s=0.05, database_url=url)
    with running(create_app(settings)) as client:
        before = client.post("/v1/predictions", QUESTION).json()
        set_open(postgres_server, url, is_open=False)
        wait_until(lambda: not checks_of(client)["store"]["ok"])
        assert client.get("/readyz").json()["status"] == "degraded"
        detail = checks_of(client)["store"]["detail"]
        assert any(problem in detail for problem in ("does not answer", "cannot be used"))  # cut off, then refused
        assert client.post("/v1/predictions", QUESTION).json() == before
        assert client.post("/v1/recommendations", a_demand()).status_code == 200
        for response in (client.post("/v1/measurements", ROWS), client.send("POST", "/v1/retrainings")):
            problem_of(response, 503)
            assert int(response.headers["retry-after"]) > 0
        set_open(postgres_server, url, is_open=True)
        wait_until(lambda: client.get("/readyz").json()["status"] == "ready")
        assert client.post("/v1/measurements", ROWS).status_code == 201
        store = client.service.store
    store.close()


def test_readiness_reports_a_registry_that_is_down(client: Client, home: Path) -> None:
    client.service.registry.champion()  # the first query of a copied folder writes to the store, over what comes now
    (home / "mlflow.db").write_bytes(b"not a database " * 1000)
    wait_until(lambda: not checks_of(client)["registry"]["ok"])
    assert client.get("/readyz").status_code == 200
    assert checks_of(client)["predictor"]["ok"]
    assert 'roofcast_check_ok{check="registry"} 0.0' in client.get("/metrics").text
    assert client.post("/v1/predictions", QUESTION).json()["predictor_version"] == "1"


def test_an_unexpected_error_of_a_check_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.service.store.retrainings, "count_by_state", lambda: 1 / 0)
    wait_until(lambda: not checks_of(client)["store"]["ok"])
    assert "ZeroDivisionError" in caplog.text


def has_answered(answers: list[tuple[int, str]], n_before: int, version: str) -> bool:
    return (HTTPStatus.OK, version) in answers[n_before:]


def test_the_champion_is_swapped_without_a_dropped_request(client: Client, settings: Settings) -> None:
    other = build_service(settings)
    versions = ["1", register_copy(other)]
    answers: list[tuple[int, str]] = []
    stopping = threading.Event()

    def send_requests() -> None:
        while not stopping.is_set():
            response = client.post("/v1/predictions", QUESTION)
            answers.append((response.status_code, str(response.json().get("predictor_version"))))

    threads = [threading.Thread(target=send_requests) for _ in range(3)]
    for thread in threads:
        thread.start()
    for version in (*reversed(versions), versions[1]):
        other.registry.promote(version)
        n_before = len(answers)
        wait_until(partial(has_answered, answers, n_before, version))
    stopping.set()
    for thread in threads:
        thread.join()
    other.store.close()
    assert {status for status, _ in answers} == {HTTPStatus.OK}
    assert {version for _, version in answers} == set(versions)


@pytest.fixture
def handler() -> Iterator[list[int]]:
    """Return the signals that reach a fake of the server's own handler."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    yield received
    signal.signal(signal.SIGTERM, before)


def test_readiness_ends_before_the_server_stops(client: Client, handler: list[int]) -> None:
    monitor = HealthMonitor(client.service)

    async def stop() -> None:
        with monitor.drain_at_sigterm(0.1):
            signal.raise_signal(signal.SIGTERM)
            assert (monitor.is_stopping, handler) == (True, [])
            while not handler:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(stop(), PATIENCE_S))
    signal.raise_signal(signal.SIGTERM)
    assert len(handler) == 2, "the server's own handler is restored"
    client.app.state.health_monitor = monitor
    problem = problem_of(client.get("/readyz"), 503)
    assert problem["detail"] == STOPPING
    assert problem["checks"]["predictor"]["ok"]
    assert client.post("/v1/predictions", QUESTION).status_code == 200


def test_a_database_file_that_was_deleted_makes_the_service_unready(client: Client, home: Path) -> None:
    assert client.post("/v1/measurements", ROWS).status_code == 201
    (home / "roofcast.sqlite").unlink()
    assert "was deleted" in problem_of(client.post("/v1/measurements", ROWS), 503)["detail"]
    wait_until(lambda: client.get("/readyz").status_code == 503)
    assert "was deleted" in problem_of(client.get("/readyz"), 503)["detail"]
    assert client.post("/v1/predictions", QUESTION).status_code == 200


def test_a_database_that_another_process_holds_is_reported_and_refuses_writes_soon(
    client: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_WAIT_S", 0.2)
    monkeypatch.setattr(database, "CHECK_WAIT_S", 0.01)
    with closing(sqlite3.connect(home / "roofcast.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        response = client.post("/v1/measurements", ROWS)
        assert "is locked by another process" in problem_of(response, 503)["detail"]
        assert int(response.headers["retry-after"]) > 0
        wait_until(lambda: client.get("/readyz").json()["status"] == "degraded")
        assert "is locked by another process" in client.get("/readyz").json()["checks"]["store"]["detail"]
        assert client.post("/v1/predictions", QUESTION).status_code == 200
    wait_until(lambda: client.get("/readyz").json()["status"] == "ready")
    assert client.post("/v1/measurements", ROWS).status_code == 201


def test_training_is_polled_where_inference_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polled = []

    def refresh(loader: ChampionLoader[Any]) -> bool:
        target = loader.registry.kind.target
        polled.append(target)
        if target == INFERENCE:
            raise NotReadyError("no answer")
        return False

    monkeypatch.setattr(ChampionLoader, "refresh", refresh)
    monitor = HealthMonitor(build_service(Settings(home=tmp_path)))
    for target in (INFERENCE, TRAINING):
        asyncio.run(monitor.check(f"registry of {target}"))
    assert polled == [INFERENCE, TRAINING]
    assert monitor.checks["registry"].detail == "no answer"


def test_the_predictor_of_training_jobs_is_in_service_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChampionLoader, "refresh", lambda *_: False)
    app = create_app(Settings(home=tmp_path, poll_s=3600))
    with running(app):
        service: Service = app.state.service
        assert service.champions[TRAINING].is_loaded
