"""`roofcast serve` in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from roofcast.serving.cli.commands.service_commands import N_THREAD
from tests.attack.service import serving, serving_at
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http_client import a_demand
from tests.serving.queue.test_queue import is_working, workers_of


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Return whether a running service answers with status 200."""
    assert process.poll() is None, "the service ended"
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


def test_a_service_whose_start_fails_ends(home: Path) -> None:
    """Otherwise the server takes the failure for an application without a start, and answers 500 to everything."""
    broken = """
from roofcast.serving.cli.app import main
from roofcast.serving.http.load_shedding import EarlyRefusal

async def fail(*_):
    raise RuntimeError("cannot start")

EarlyRefusal.__call__ = fail
main()
"""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", broken, "serve", "--port", "0"],
        env={**os.environ, "ROOFCAST_HOME": str(home)},
        stderr=subprocess.PIPE,
    )
    try:
        _, log = process.communicate(timeout=PATIENCE_S)
        assert process.returncode != 0
        assert b"cannot start" in log
    finally:
        process.kill()


def test_the_service_starts_answers_and_stops_with_its_worker(home: Path) -> None:
    port = free_port()
    command = [
        sys.executable,
        "-c",
        "from roofcast.serving.cli.app import main; main()",
        "serve",
        "--port",
        str(port),
    ]
    environment = {name: value for name, value in os.environ.items() if name != N_THREAD}
    process = subprocess.Popen(command, env={**environment, "ROOFCAST_HOME": str(home)})  # noqa: S603
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/readyz", process))
        response = httpx.post(f"{url}/v1/recommendations", json=a_demand(), timeout=PATIENCE_S)
        assert response.json()["entries"]
        wait_until(lambda: is_working(home))
        (worker,) = workers_of(process.pid)
        assert f"{N_THREAD}=1" in Path(f"/proc/{worker}/environ").read_text().split("\0")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert workers_of(process.pid) == []
    assert not is_working(home)


@pytest.mark.slow  # two starts of three processes
def test_servers_and_worker_end_with_a_parent_that_is_killed_and_the_port_is_free(home: Path, tmp_path: Path) -> None:
    with serving(home, tmp_path / "first.log", 2) as service:
        servers, port = service.servers(), service.address[1]
        wait_until(lambda: bool(workers_of(service.process.pid)))
        service.process.kill()
        service.process.wait()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in servers))
        wait_until(lambda: not workers_of(service.process.pid))
    with serving_at(port, home, tmp_path / "second.log", 2) as service:
        assert httpx.get(f"{service.url}/readyz").json()["status"] == "ready"
