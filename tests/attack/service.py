"""A service in its own processes, for attacks and measurements."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from tests.conditions import PATIENCE_S, wait_until

_COMMAND = (sys.executable, "-c", "from roofcast.serving.cli.app import main; main()", "serve")


PATIENT: Final = {"ROOFCAST_MAX_WAIT_S": "60"}
"""Setting with which a loaded machine refuses no request of a test."""


@dataclass(frozen=True)
class Service:
    """A running service."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.url)
        return url.host, url.port or 0

    def servers(self) -> list[int]:
        """Return the ids of the processes that answer requests."""
        return self._children_that_run(b"spawn_main") or [self.process.pid]

    def workers(self) -> list[int]:
        """Return the id of the process that retrains; none while it is being replaced."""
        return self._children_that_run(b"jobs.worker")

    def children(self) -> list[int]:
        """Return the ids of all processes that the first one started."""
        return _children(self.process.pid)

    def _children_that_run(self, words: bytes) -> list[int]:
        return [pid for pid in self.children() if words in _read(pid, "cmdline")]

    def memory_byte(self) -> list[int]:
        """Return the resident memory of each process that answers requests."""
        return [_resident_byte(pid) for pid in self.servers()]

    def kill_server(self) -> int:
        """Kill one of the processes that answer requests, and return its id."""
        victim = self.servers()[0]
        os.kill(victim, signal.SIGKILL)
        return victim

    def exchange(self, request: bytes, timeout_s: float = 30.0) -> bytes:
        """Send bytes and return the answer, up to the end of the connection."""
        with self.connect(timeout_s) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65_536), b""))

    def connect(self, timeout_s: float = 30.0) -> socket.socket:
        """Return an open connection, before any byte is sent."""
        return socket.create_connection(self.address, timeout_s)


def _children(pid: int) -> list[int]:
    """Return the ids of the processes that any thread of a process started."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sorted(int(word) for thread in threads for word in _read(pid, f"task/{thread.name}/children").split())


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _resident_byte(pid: int) -> int:
    return int(_read(pid, "statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def serving(home: Path, log: Path, n_worker: int, **environment: str) -> AbstractContextManager[Service]:
    """Run a service at a free port until the block ends, and yield it once it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return serving_at(port, home, log, n_worker, environment)


@contextmanager
def serving_at(
    port: int, home: Path, log: Path, n_worker: int, environment: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """Run a service at a port until the block ends, and yield it once it is ready."""
    log.unlink(missing_ok=True)
    service = start_service(port, home, log, n_worker, environment)
    process = service.process
    try:
        wait_until(lambda: is_ready(service), pause_s=0.02)
        yield service
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_service(
    port: int, home: Path, log: Path, n_worker: int, environment: Mapping[str, str] | None = None
) -> Service:
    """Start a service at a port, which appends to its log, and return it before it is ready."""
    command = [*_COMMAND, "--port", str(port), "--workers", str(n_worker)]
    variables = {**os.environ, "ROOFCAST_HOME": str(home), **(environment or {})}
    with log.open("ab") as stream:
        process = subprocess.Popen(command, env=variables, stderr=stream)  # noqa: S603  (our own command)
    return Service(process, f"http://127.0.0.1:{port}", log)


def is_ready(service: Service) -> bool:
    """Return whether the service reports readiness."""
    assert service.process.poll() is None, service.log.read_text()
    try:
        return httpx.get(f"{service.url}/readyz", timeout=PATIENCE_S).status_code == 200
    except httpx.TransportError:
        return False
