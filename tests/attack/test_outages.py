"""Outages under load: server processes, PostgreSQL and MLflow fail beside a service of two server processes."""

import dataclasses
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from tests.attack.conftest import EFFORT, home_without_retraining, make_key
from tests.attack.mlflow_server import SHORT_TIMEOUTS, MlflowServer
from tests.attack.service import PATIENT, Service, serving
from tests.conditions import PATIENCE_S, wait_until
from tests.postgres import new_database
from tests.serving.http.telemetry.test_health_monitor import set_open
from tests.serving.http_client import a_measurement, a_question

N_KILL = 1 if EFFORT == 1 else 20
QUESTION = {"rows": [a_question()]}


@dataclass
class Platform:
    """A service and its dependencies."""

    service: Service
    mlflow: MlflowServer
    postgres: str
    database: str
    key: str

    def client(self) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.service.url, headers=headers, timeout=PATIENCE_S)

    def readiness(self) -> dict[str, Any]:
        """Return the answer of `/readyz`, over a new connection, so that any server process may answer."""
        readiness: dict[str, Any] = httpx.get(f"{self.service.url}/readyz", timeout=PATIENCE_S).json()
        return readiness

    def is_ready(self) -> bool:
        """Return whether both server processes run and several requests in turn report readiness."""
        if len(self.service.servers()) < 2:
            return False
        return all(self.readiness()["status"] == "ready" for _ in range(6))


@pytest.fixture(scope="module")
def platform(
    trained_home: Path, postgres_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    folder, url = tmp_path_factory.mktemp("platform"), new_database(postgres_server)
    with home_without_retraining(trained_home, folder) as home:
        champion = build_service(Settings(home=home)).registry.champion()
        assert champion is not None
        mlflow = MlflowServer(champion)
        mlflow.start()
        variables = {"ROOFCAST_DATABASE_URL": url, "MLFLOW_TRACKING_URI": mlflow.url, "ROOFCAST_POLL_S": "0.2"}
        with serving(
            home, folder / "log", 2, TMPDIR=str(folder), **variables, **SHORT_TIMEOUTS, **PATIENT
        ) as service:
            yield Platform(service, mlflow, postgres_server, url, make_key(url, "platform"))
        mlflow.stop()
    assert '"level": "ERROR"' not in (folder / "log").read_text()


@dataclass
class Observations:
    """Answers that the clients of a continuous load received."""

    statuses: set[int] = field(default_factory=set)
    versions: list[str] = field(default_factory=list)
    stored_campaigns: list[str] = field(default_factory=list)
    lost: list[httpx.TransportError] = field(default_factory=list)


@contextmanager
def load(platform: Platform, *, is_writing: bool = False) -> Iterator[Observations]:
    """Send predictions, and with `is_writing` measurements, over several connections until the block ends."""
    observed, stopping = Observations(), threading.Event()

    def predict(client: httpx.Client) -> None:
        response = client.post("/v1/predictions", json=QUESTION)
        observed.statuses.add(response.status_code)
        observed.versions.append(response.json().get("predictor_version", ""))

    def write(client: httpx.Client, name: str) -> None:
        response = client.post("/v1/measurements", json={"rows": [a_measurement(campaign=name)]})
        observed.statuses.add(response.status_code)
        if response.status_code == 201:
            observed.stored_campaigns.append(name)

    def send_requests(number: int) -> None:
        n_done = 0
        with platform.client() as client:
            while not stopping.is_set():
                try:
                    if is_writing and number % 2:
                        write(client, f"load-{id(observed)}-{number}-{n_done}")
                    else:
                        predict(client)
                except httpx.TransportError as error:
                    observed.lost.append(error)
                n_done += 1

    threads = [threading.Thread(target=send_requests, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(observed.versions) > 4)
        yield observed
        n_before = len(observed.versions)
        wait_until(lambda: len(observed.versions) > n_before + 4)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def test_a_killed_server_is_replaced_and_acknowledged_rows_survive(platform: Platform) -> None:
    with load(platform, is_writing=True) as observed:
        for _ in range(N_KILL):
            n_before = len(observed.stored_campaigns)
            wait_until(lambda n=n_before: len(observed.stored_campaigns) > n + 3)  # type: ignore[misc]  # the default binds it
            victim = platform.service.kill_server()
            wait_until(lambda v=victim: v not in platform.service.servers() and platform.is_ready())  # type: ignore[misc]
    assert observed.statuses == {200, 201}
    resets = (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError)
    assert all(isinstance(error, resets) for error in observed.lost), observed.lost
    assert len(observed.lost) <= 4 * N_KILL, "each of the four clients loses its connection once"
    with platform.client() as client:
        campaigns = {campaign["name"] for campaign in client.get("/v1/campaigns").json()}
    assert set(observed.stored_campaigns) <= campaigns


def test_without_postgresql_predictions_are_answered_and_writes_are_503(platform: Platform) -> None:
    with load(platform) as observed, platform.client() as client:
        set_open(platform.postgres, platform.database, is_open=False)
        wait_until(lambda: not platform.readiness()["checks"]["store"]["ok"])
        assert platform.readiness()["status"] == "degraded"
        for path, body in (("/v1/measurements", {"rows": [a_measurement()]}), ("/v1/retrainings", None)):
            response = client.post(path, json=body)
            assert response.status_code == 503
            assert response.headers["content-type"] == "application/problem+json"
            assert int(response.headers["retry-after"]) > 0
        victim = platform.service.kill_server()
        wait_until(lambda: len({*platform.service.servers()} - {victim}) == 2)
        wait_until(lambda: all(platform.readiness()["status"] == "degraded" for _ in range(6)))
        set_open(platform.postgres, platform.database, is_open=True)
        wait_until(platform.is_ready)
        assert client.post("/v1/measurements", json={"rows": [a_measurement()]}).status_code == 201
    assert observed.statuses == {200}
    assert len(observed.lost) <= 4


def test_without_mlflow_predictions_are_answered_even_by_a_new_server(platform: Platform) -> None:
    with load(platform) as observed, platform.client() as client:
        platform.mlflow.stop()
        wait_until(lambda: not platform.readiness()["checks"]["registry"]["ok"])
        promotion = client.put("/v1/predictor", json={"version": "1"})
        assert promotion.status_code == 503
        assert int(promotion.headers["retry-after"]) > 0
        assert client.post("/v1/measurements", json={"rows": [a_measurement(campaign="later")]}).status_code == 201
        victim = platform.service.kill_server()
        wait_until(lambda: len({*platform.service.servers()} - {victim}) == 2)
        wait_until(lambda: all(platform.readiness()["status"] == "degraded" for _ in range(6)))
        platform.mlflow.start()
        wait_until(platform.is_ready)
    assert observed.statuses == {200}
    assert len(observed.lost) <= 4


def test_a_new_champion_becomes_active_without_a_dropped_request(platform: Platform) -> None:
    first = platform.mlflow.champion
    with load(platform) as observed:
        for version in ("2", "3", first.version):
            platform.mlflow.champion = dataclasses.replace(first, version=version)
            wait_until(lambda v=version: observed.versions[-8:] == [v] * 8)  # type: ignore[misc]
    assert observed.statuses == {200}
    assert observed.lost == []
    assert set(observed.versions) == {first.version, "2", "3"}


def test_a_cached_key_is_valid_while_the_store_is_down(platform: Platform) -> None:
    with platform.client() as client:
        assert client.get("/v1/models").status_code == 200
        set_open(platform.postgres, platform.database, is_open=False)
        try:
            response = client.post("/v1/measurements", json={}, headers={"authorization": "Bearer roofcast_unknown"})
            assert response.status_code == 503
            assert json.loads(response.text)["type"].endswith("not-ready")
        finally:
            set_open(platform.postgres, platform.database, is_open=True)
            wait_until(platform.is_ready)
