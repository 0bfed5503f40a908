"""A service with its worker, an MLflow server and PostgreSQL, each in its own processes, which can be killed."""

import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

import httpx

from tests.attack.service import Service, is_ready, start_service
from tests.conditions import PATIENCE_S, wait_until
from tests.conftest import FEW_CAMPAIGNS
from tests.postgres import PostgresServer, is_running, new_database

Victim = Literal["service", "server process", "worker", "mlflow", "postgresql"]

VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)

QUICK: Final = '{"n_estimators": 20, "n_fold": 3, "calibrate": false}'


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class MlflowProcess:
    """MLflow's own server on a database.

    Parameters
    ----------
    python
        Executable of an environment with MLflow's server, which roofcast itself does without.
    store
        URL of its database.
    folder
        Of its artefacts and log.
    """

    python: Path
    store: str
    folder: Path
    port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {
            "--backend-store-uri": self.store,
            "--artifacts-destination": str(self.folder / "artifacts"),
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--workers": "1",
        }
        command = [str(self.python), "-m", "mlflow", "server", *(word for pair in options.items() for word in pair)]
        variables = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self.folder / "mlflow.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  (our own command)
                command, stdout=log, stderr=log, env=variables, start_new_session=True
            )
        wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=PATIENCE_S).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """Kill all processes of the server and wait for the end of the first."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Platform:
    """All processes, with one address and one key each, whatever is killed.

    Parameters
    ----------
    folder
        Of the state folder, artefacts and logs.
    binaries
        Of PostgreSQL.
    mlflow
        Python executable of an environment with MLflow's server; None for the store in the state folder.
    """

    def __init__(self, folder: Path, binaries: Path, mlflow: Path | None) -> None:
        self.home = folder / "home"
        self.postgres = PostgresServer(binaries, fsync="on")
        try:
            self.postgres.start()
            self.database = new_database(self.postgres.url)
            self.mlflow = MlflowProcess(mlflow, new_database(self.postgres.url), folder) if mlflow else None
        except BaseException:
            self.postgres.remove()
            raise
        self._log, self._port = folder / "service.log", free_port()
        self.service: Service | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment of the service."""
        return {
            "ROOFCAST_HOME": str(self.home),
            "ROOFCAST_DATABASE_URL": self.database,
            "MLFLOW_TRACKING_URI": self.registry_url,
            "ROOFCAST_POLL_S": "0.5",
            "ROOFCAST_TRAINING": QUICK,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(FEW_CAMPAIGNS), os.environ.get("PYTHONPATH")])),
            "PYTHONDONTWRITEBYTECODE": "",
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
            "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
        }

    @property
    def victims(self) -> tuple[Victim, ...]:
        return tuple(victim for victim in VICTIMS if self.mlflow or victim != "mlflow")

    @property
    def registry_url(self) -> str:
        """Address of the MLflow server; blank for the store in the state folder."""
        return self.mlflow.url if self.mlflow else ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """What the service has logged, over all its starts."""
        return self._log.read_text(errors="replace")

    def start(self) -> None:
        """Start MLflow and the service, and wait until both answer."""
        if self.mlflow:
            self.mlflow.start()
        self._start_service()

    def _start_service(self) -> None:
        self.service = start_service(self._port, self.home, self._log, 2, self.variables)
        wait_until(lambda: is_ready(self._running))

    @property
    def _running(self) -> Service:
        if self.service is None:
            raise AssertionError("the service was not started")
        return self.service

    def kill(self, victim: Victim) -> None:
        """Kill one of the victims; a worker that is about to be restarted counts as soon as it runs."""
        if victim == "service":
            pids = [self._running.process.pid, *self._running.children()]
            self._running.process.kill()
            self._running.process.wait()
            wait_until(lambda: not any(is_running(pid) for pid in pids))
        elif victim == "server process":
            wait_until(lambda: bool(self._running.servers()))
            self._running.kill_server()
        elif victim == "worker":
            wait_until(lambda: bool(self._running.workers()))
            os.kill(self._running.workers()[0], signal.SIGKILL)
        elif victim == "mlflow" and self.mlflow:
            self.mlflow.kill()
        else:
            self.postgres.kill()

    def restore(self, victim: Victim) -> None:
        """Start what nobody else starts again, and wait until it answers."""
        if victim == "service":
            self._start_service()
        elif victim == "mlflow" and self.mlflow:
            self.mlflow.start()
        elif victim == "postgresql":
            self.postgres.start()

    def is_healthy(self) -> bool:
        """Return whether all processes run and readiness is reported without a fault, over several connections."""
        if len(self._running.servers()) < 2 or not self._running.workers():
            return False
        try:
            answers = [httpx.get(f"{self.url}/readyz", timeout=PATIENCE_S).json() for _ in range(4)]
        except httpx.TransportError:
            return False
        return all(answer["status"] == "ready" for answer in answers)

    def remove(self) -> None:
        """End all processes and remove the cluster."""
        if self.service:
            self.service.process.kill()
            self.service.process.wait()
        if self.mlflow:
            self.mlflow.kill()
        self.postgres.remove()
