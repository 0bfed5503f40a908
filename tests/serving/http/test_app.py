import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from roofcast.data.errors import NotReadyError
from roofcast.serving.app_state.champion_loader import FILE_NAME, ChampionLoader
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service
from roofcast.serving.http import app as app_module
from roofcast.serving.http.app import create_app
from tests.conditions import wait_until
from tests.serving.http_client import CONFIG, Client, a_demand, a_measurement, a_question, problem_of, running

QUESTION = {"rows": [a_question()]}


def test_a_server_is_ready_before_it_imports_the_learning_libraries() -> None:
    code = "import sys, roofcast.serving.http.app; print(*{name.partition('.')[0] for name in sys.modules})"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603
    assert "fastapi" in modules
    assert not {"scipy", "sklearn", "xgboost", "joblib", "mlflow", "matplotlib"} & set(modules)


def version_of(client: Client) -> str:
    return str(client.get("/readyz").json()["predictor_version"])


def register_copy(service: Service) -> str:
    """Register the champion's bundle as another version and return that."""
    champion = service.registry.champion()
    assert champion is not None
    uri = f"runs:/{champion.run_id}/bundle"
    return service.registry.register(uri, champion.run_id, champion.sha256)


def drop_tables(home: Path) -> None:
    connection = sqlite3.connect(home / "roofcast.sqlite")
    for name in ("measurement", "model", "retraining"):
        connection.execute(f"DROP TABLE {name}")
    connection.close()


def test_without_a_champion_the_service_is_not_ready(empty_home: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(empty_home, tmp_path / "new"))
    with running(create_app(Settings(home=home))) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        for response in (
            client.get("/readyz"),
            client.get("/v1/predictor"),
            client.post("/v1/predictions", QUESTION),
        ):
            assert "roofcast retrain" in problem_of(response, 503)["detail"]
            assert int(response.headers["retry-after"]) > 0
        assert len(client.get("/v1/models").json()) > 100


def test_each_resource_is_listed(shared: Client) -> None:
    assert version_of(shared) == "1"
    predictor = shared.get("/v1/predictor").json()
    assert predictor["highest_level"] == pytest.approx(0.9)
    assert predictor["held_out"]["tpot_s"]["mape"] > 0
    for path in ("/v1/models", "/v1/accelerators", "/v1/offers", "/v1/campaigns", "/v1/retrainings"):
        assert isinstance(shared.get(path).json(), list)
    assert shared.get("/docs").status_code == 200


def test_predictions_need_no_store(client: Client, home: Path) -> None:
    client.post("/v1/measurements", {"rows": [a_measurement(model="m")], "models": [{"name": "m", "config": CONFIG}]})
    request = {"rows": [a_question(model="m")]}
    before = client.post("/v1/predictions", request).json()
    drop_tables(home)
    assert client.post("/v1/predictions", request).json() == before
    assert before["rows"][0]["status"] == "ok"
    assert client.post("/v1/recommendations", a_demand()).status_code == 200
    writes = [client.post("/v1/measurements", {"rows": [a_measurement()]}), client.send("POST", "/v1/retrainings")]
    for response in [*writes, client.get("/v1/measurements")]:
        problem_of(response, 503)
        assert int(response.headers["retry-after"]) > 0


def test_polling_continues_after_an_unexpected_error(
    client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail(*_: object) -> bool:
        calls.append(1)
        raise RuntimeError("a bug")

    monkeypatch.setattr(ChampionLoader, "refresh", fail)
    wait_until(lambda: len(calls) > 2)
    assert "a bug" in caplog.text


@pytest.fixture
def blocked_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Block the registry until the event is set; the application waits for the blocked thread when it stops."""
    is_released = threading.Event()

    def refresh(_: object) -> bool:
        is_released.wait(60)
        raise NotReadyError("the MLflow store does not answer")

    monkeypatch.setattr(app_module, "STARTUP_WAIT_S", 0.05)
    monkeypatch.setattr(ChampionLoader, "refresh", refresh)
    yield is_released
    is_released.set()


@contextmanager
def running_unanswered(settings: Settings, registry: threading.Event) -> Iterator[Client]:
    """Give a client of an application whose registry answers only when the block has is_released."""
    with running(create_app(settings)) as client:
        try:
            yield client
        finally:
            registry.set()


def test_a_slow_registry_does_not_delay_the_start(settings: Settings, blocked_registry: threading.Event) -> None:
    (settings.home / FILE_NAME).unlink()
    with running_unanswered(settings, blocked_registry) as client:
        assert client.get("/healthz").status_code == 200
        problem_of(client.get("/readyz"), 503)


def test_the_last_champion_is_active_before_the_registry_answers(
    settings: Settings, blocked_registry: threading.Event
) -> None:
    with running_unanswered(settings, blocked_registry) as client:
        assert client.post("/v1/predictions", QUESTION).json()["predictor_version"] == "1"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": "9", "run_id": "x", "sha256": "../../x"}'])
def test_a_damaged_champion_cache_is_ignored(settings: Settings, text: str) -> None:
    (settings.home / FILE_NAME).write_text(text)
    with running(create_app(settings)) as client:
        assert version_of(client) == "1"


def test_a_server_starts_without_its_store(settings: Settings, home: Path) -> None:
    (home / "roofcast.sqlite").write_bytes(b"not a database " * 1000)
    app = create_app(settings)
    transport = httpx.ASGITransport(app=app)

    async def check() -> None:
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://x") as client,
        ):
            assert (await client.post("/v1/predictions", json=QUESTION)).status_code == 200
            assert (await client.get("/readyz")).json()["status"] == "degraded"
            headers = {"authorization": "Bearer unknown"}
            problem_of(await client.post("/v1/measurements", json={}, headers=headers), 503)

    asyncio.run(check())


def test_an_unexpected_error_is_a_problem_without_details(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(client.service.store, "retrainings", fail)
    response = client.get("/v1/retrainings")
    assert "internal error" in problem_of(response, 500)["detail"]
    assert "secret" not in response.text
