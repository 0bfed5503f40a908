"""Services under attack. `make attack` sets the variable that multiplies the number of cases."""

import dataclasses
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from roofcast.data.store.api_keys import KeyStore, Scope
from roofcast.data.store.database.database import Database
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from tests.attack.service import PATIENT, Service, serving
from tests.conftest import QUICK
from tests.deploy.proxy import NGINX, proxying
from tests.serving.http_client import Client, running

EFFORT = int(os.environ.get("ROOFCAST_ATTACK") or 1)
"""Factor on the number of cases in CI; tests that take minutes are skipped at 1."""

WAIT_S = 2
"""Time limit of services and proxies for slow clients, in seconds."""

_WAITING = ["test_connections.py", "test_kills.py", "test_outages.py"]
collect_ignore = _WAITING if EFFORT == 1 else []
"""Tests of server processes that wait for time limits, which `make attack` runs."""

deep = pytest.mark.skipif(EFFORT == 1, reason="takes minutes: `make attack`")


@pytest.fixture(scope="session", autouse=True)
def bare_environment() -> Iterator[None]:
    """Remove the settings of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("ROOFCAST_", "MLFLOW_TRACKING")):
                patch.delenv(name)
        yield


@contextmanager
def home_without_retraining(trained_home: Path, folder: Path) -> Iterator[Path]:
    """Give a state folder with a champion in which no retraining starts, as one would take CPU time from the test."""
    home = Path(shutil.copytree(trained_home, folder / "home"))
    with FileLock(home / "worker.lock"):
        yield home


def make_key(database_url: str, name: str, scope: Scope = "admin") -> str:
    with closing(Database(database_url)) as database:
        return KeyStore(database).create(name, scope, None)[1]


@pytest.fixture(scope="module")
def service(trained_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give a service of two server processes with short time limits, for tests that do not change its state."""
    folder = tmp_path_factory.mktemp("service")
    with (
        home_without_retraining(trained_home, folder) as home,
        serving(
            home, folder / "log", 2, ROOFCAST_MAX_BODY_S=str(WAIT_S), TMPDIR=str(folder), **PATIENT
        ) as running_service,
    ):
        yield running_service
    log = (folder / "log").read_text()
    assert '"level": "ERROR"' not in log
    assert "Traceback" not in log


@pytest.fixture(scope="module")
def proxied(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give the service behind the proxy of the deployment."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    with proxying(service.address, tmp_path_factory.mktemp("proxy"), WAIT_S) as (host, port):
        yield dataclasses.replace(service, url=f"http://{host}:{port}")


@pytest.fixture(scope="module")
def admin_key(service: Service) -> str:
    return make_key(f"sqlite:///{service.log.parent / 'home' / 'roofcast.sqlite'}", "attacker")


@pytest.fixture(scope="session")
def local(trained_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Give a client of an application in this process, whose store tests may change."""
    home = shutil.copytree(trained_home, tmp_path_factory.mktemp("local") / "home")
    with running(create_app(Settings(home=home, training=QUICK, poll_s=3600))) as client:
        yield client
