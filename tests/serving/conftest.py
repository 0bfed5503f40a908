import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roofcast.data.measurements.target import INFERENCE
from roofcast.serving import logs
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli import app
from roofcast.serving.composition import Service, build_service
from roofcast.serving.http.app import create_app
from roofcast.training.lifecycle.bundles.bundle_io import Bundle, sha256
from tests.conftest import QUICK
from tests.serving.http_client import Client, Run, running


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove the settings of the user who runs the tests, and set a state folder of the test."""
    for name in list(os.environ):
        if name.startswith(("ROOFCAST_", "MLFLOW_TRACKING")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ROOFCAST_HOME", str(tmp_path / "home"))


_LAST_READ: dict[tuple[str, str], Bundle] = {}


@pytest.fixture(autouse=True)
def bundle_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the bundle of inference that was read last if the file is the same."""

    load = Bundle.load.__func__  # type: ignore[attr-defined]

    def read_once(cls: type[Bundle], path: Path, expected_sha256: str) -> Bundle:
        key = expected_sha256, cls.layout()
        known = _LAST_READ.get(key)
        if known is None or not path.is_file() or sha256(path) != expected_sha256:
            known = load(cls, path, expected_sha256)
            _LAST_READ.clear()
            _LAST_READ[key] = known
        return known

    monkeypatch.setattr(Bundle, "load", classmethod(read_once))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command line and returns its status, standard output and standard error."""
    monkeypatch.setattr(app, "configure_logs", lambda: None)
    monkeypatch.setattr(logs, "configure_service_logs", lambda *_: None)  # would write to a captured stream for good

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["roofcast", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            app.main()
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return Run(call)


@pytest.fixture
def anyio_backend() -> str:
    """Return the event loop of asynchronous tests."""
    return "asyncio"


@pytest.fixture
def home(trained_home: Path, tmp_path: Path) -> Path:
    """Return a copy of the state folder with a champion; the environment names it."""
    return Path(shutil.copytree(trained_home, tmp_path / "home"))


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=home, training=QUICK, poll_s=0.05)


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    service = build_service(settings)
    service.champions[INFERENCE].refresh()
    yield service
    service.store.close()


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    """Return a client of a new application."""
    with running(create_app(settings)) as client:
        yield client


@pytest.fixture(scope="session")
def shared(trained_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client of an application shared by tests that do not change its state."""
    home = shutil.copytree(trained_home, tmp_path_factory.mktemp("shared") / "home")
    with running(create_app(Settings(home=home, training=QUICK, poll_s=3600))) as client:
        yield client
