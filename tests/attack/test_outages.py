"""What fails around a service of two server processes, under load: its own processes, PostgreSQL, MLflow."""

from __future__ import annotations

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

from roofcast.serving.app_state.app_state import AppState
from roofcast.serving.app_state.settings import Settings
from tests.attack.conftest import EFFORT, make_key, only_home
from tests.attack.mlflow_server import QUICK_TO_GIVE_UP, MlflowServer
from tests.attack.service import Service, serving
from tests.conditions import PATIENCE_S, wait_until
from tests.postgres import new_database
from tests.serving.http.telemetry.test_health import set_open
from tests.serving.http_client import a_measurement, a_question

N_KILL = 1 if EFFORT == 1 else 20
QUESTION = {"rows": [a_question()]}


@dataclass
class Platform:
    """A service, and what it depends on."""

    service: Service
    mlflow: MlflowServer
    postgres: str
    database: str
    key: str

    def client(self) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.service.url, headers=headers, timeout=PATIENCE_S)

    def readiness(self) -> dict[str, Any]:
        """Return what `/readyz` says; a connection of its own each time, so that any server may be asked."""
        found: dict[str, Any] = httpx.get(f"{self.service.url}/readyz", timeout=PATIENCE_S).json()
        return found

    def is_whole(self) -> bool:
        """Return whether both servers live, and several asked in turn find nothing wrong."""
        if len(self.service.servers()) < 2:
            return False
        return all(self.readiness()["status"] == "ready" for _ in range(6))


@pytest.fixture(scope="module")
def platform(
    trained_home: Path, postgres_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    folder, url = tmp_path_factory.mktemp("platform"), new_database(postgres_server)
    with only_home(trained_home, folder) as home:
        champion = AppState(Settings(home=home)).registry.champion()
        assert champion is not None
        mlflow = MlflowServer(champion)
        mlflow.start()
        variables = {"ROOFCAST_DATABASE_URL": url, "MLFLOW_TRACKING_URI": mlflow.url, "ROOFCAST_POLL_S": "0.2"}
        with serving(home, folder / "log", 2, TMPDIR=str(folder), **variables, **QUICK_TO_GIVE_UP) as service:
            yield Platform(service, mlflow, postgres_server, url, make_key(url, "platform"))
        mlflow.stop()
    assert '"level": "ERROR"' not in (folder / "log").read_text()


@dataclass
class Load:
    """What clients that go on asking have seen."""

    statuses: set[int] = field(default_factory=set)
    versions: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    lost: list[httpx.TransportError] = field(default_factory=list)


@contextmanager
def load(platform: Platform, *, is_writing: bool = False) -> Iterator[Load]:
    """Ask, and write if told so, from several connections until the block ends."""
    seen, stopping = Load(), threading.Event()

    def ask(client: httpx.Client) -> None:
        response = client.post("/v1/predictions", json=QUESTION)
        seen.statuses.add(response.status_code)
        seen.versions.append(response.json().get("predictor_version", ""))

    def write(client: httpx.Client, name: str) -> None:
        response = client.post("/v1/measurements", json={"rows": [a_measurement(campaign=name)]})
        seen.statuses.add(response.status_code)
        if response.status_code == 201:
            seen.kept.append(name)

    def go_on(number: int) -> None:
        n_done = 0
        with platform.client() as client:
            while not stopping.is_set():
                try:
                    write(client, f"load-{id(seen)}-{number}-{n_done}") if is_writing and number % 2 else ask(client)
                except httpx.TransportError as error:
                    seen.lost.append(error)
                n_done += 1

    askers = [threading.Thread(target=go_on, args=(number,)) for number in range(4)]
    for asker in askers:
        asker.start()
    try:
        wait_until(lambda: len(seen.versions) > 4)
        yield seen
        n_before = len(seen.versions)
        wait_until(lambda: len(seen.versions) > n_before + 4)
    finally:
        stopping.set()
        for asker in askers:
            asker.join()


def test_a_killed_server_is_replaced_and_nothing_acknowledged_is_lost(platform: Platform) -> None:
    with load(platform, is_writing=True) as seen:
        for _ in range(N_KILL):
            n_before = len(seen.kept)
            wait_until(lambda n=n_before: len(seen.kept) > n + 3)  # type: ignore[misc]  # the default binds it
            victim = platform.service.kill_server()
            wait_until(lambda v=victim: v not in platform.service.servers() and platform.is_whole())  # type: ignore[misc]
    assert seen.statuses == {200, 201}
    resets = (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError)
    assert all(isinstance(error, resets) for error in seen.lost), seen.lost
    assert len(seen.lost) <= 4 * N_KILL, "each of the four clients loses its connection once"
    with platform.client() as client:
        found = {campaign["name"] for campaign in client.get("/v1/campaigns").json()}
    assert set(seen.kept) <= found


def test_without_postgresql_predictions_go_on_and_writes_are_503(platform: Platform) -> None:
    with load(platform) as seen, platform.client() as client:
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
        wait_until(platform.is_whole)
        assert client.post("/v1/measurements", json={"rows": [a_measurement()]}).status_code == 201
    assert seen.statuses == {200}
    assert len(seen.lost) <= 4


def test_without_mlflow_predictions_go_on_and_so_does_a_new_server(platform: Platform) -> None:
    with load(platform) as seen, platform.client() as client:
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
        wait_until(platform.is_whole)
    assert seen.statuses == {200}
    assert len(seen.lost) <= 4


def test_a_new_champion_goes_into_service_without_a_dropped_request(platform: Platform) -> None:
    first = platform.mlflow.champion
    with load(platform) as seen:
        for version in ("2", "3", first.version):
            platform.mlflow.champion = dataclasses.replace(first, version=version)
            wait_until(lambda v=version: seen.versions[-8:] == [v] * 8)  # type: ignore[misc]
    assert seen.statuses == {200}
    assert seen.lost == []
    assert set(seen.versions) == {first.version, "2", "3"}


def test_a_key_seen_before_opens_while_the_store_is_down(platform: Platform) -> None:
    with platform.client() as client:
        assert client.get("/v1/models").status_code == 200
        set_open(platform.postgres, platform.database, is_open=False)
        try:
            stranger = client.post("/v1/measurements", json={}, headers={"authorization": "Bearer roofcast_unknown"})
            assert stranger.status_code == 503
            assert json.loads(stranger.text)["type"].endswith("not-ready")
        finally:
            set_open(platform.postgres, platform.database, is_open=True)
            wait_until(platform.is_whole)
