"""The service as a person starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from roofcast.serving.cli.service import N_THREAD
from tests.serving.http_client import a_demand
from tests.serving.jobs.test_queue import is_working, workers_of


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, process: subprocess.Popen[bytes], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        assert process.poll() is None, "the service ended"
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("the service did not answer")


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
        wait_for(f"{url}/readyz", process)
        response = httpx.post(f"{url}/v1/recommendations", json=a_demand(), timeout=60)
        assert response.json()["entries"]
        deadline = time.monotonic() + 60
        while not is_working(home) and time.monotonic() < deadline:
            time.sleep(0.1)
        (worker,) = workers_of(process.pid)
        assert f"{N_THREAD}=1" in Path(f"/proc/{worker}/environ").read_text().split("\0")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert workers_of(process.pid) == []
    assert not is_working(home)
