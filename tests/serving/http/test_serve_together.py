"""Several server processes behind one address."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from roofcast.serving.cli.commands.service_commands import MAX_HEADER_BYTE
from tests.attack.service import PATIENT
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http.test_request_log import metrics_of, value
from tests.serving.http.test_serve import answers, free_port
from tests.serving.http_client import a_question


@pytest.fixture
def service(home: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """Run a service with two server processes; yield its process, address and log."""
    port, log = free_port(), tmp_path / "log"
    code = "from roofcast.serving.cli.app import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", str(port), "--workers", "2"]
    variables = {
        "ROOFCAST_HOME": str(home),
        "ROOFCAST_DRAIN_S": "20",
        "ROOFCAST_MAX_BODY_S": "10",
        **PATIENT,
        "TMPDIR": str(tmp_path),
    }
    with log.open("wb") as stream:
        process = subprocess.Popen(command, env={**os.environ, **variables}, stderr=stream)  # noqa: S603
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/readyz", process))
        yield process, url, log
    finally:
        process.kill()
        process.wait()


def predict(url: str, n_row: int = 1) -> int:
    return httpx.post(f"{url}/v1/predictions", json={"rows": [a_question()] * n_row}, timeout=PATIENCE_S).status_code


def answer_to(url: str, text: bytes) -> bytes:
    """Return the answer to an incomplete request."""
    address = httpx.URL(url)
    with socket.create_connection((address.host, address.port or 0), timeout=PATIENCE_S) as connection:
        connection.sendall(b"POST /v1/predictions HTTP/1.1\r\nhost: x\r\n" + text)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.slow  # two server processes, and pauses that a loaded machine cannot exceed
def test_server_processes_share_metrics_limits_and_the_stop(
    service: tuple[subprocess.Popen[bytes], str, Path], tmp_path: Path
) -> None:
    process, url, log = service
    n_sent = 0
    with ThreadPoolExecutor(4) as pool:
        while len(list(tmp_path.glob("roofcast-metrics-*/histogram_*.db"))) < 2 or n_sent < 20:
            assert set(pool.map(lambda _: predict(url), range(4))) == {200}
            n_sent += 4
    labels = {"method": "POST", "route": "/v1/predictions", "status": "200"}

    def are_all_counted() -> bool:
        samples = metrics_of(httpx.get(f"{url}/metrics", timeout=PATIENCE_S).text)
        n_request = value(samples, "roofcast_request_seconds_count", **labels)
        return n_request == value(samples, "roofcast_predictions_total", status="ok") == n_sent

    wait_until(are_all_counted)
    assert all(are_all_counted() for _ in range(4))
    assert answer_to(url, b"x-much: " + b"x" * MAX_HEADER_BYTE).startswith(b"HTTP/1.1 400")
    assert answer_to(url, b"content-length: 100\r\n\r\n{").startswith(b"HTTP/1.1 408")
    with ThreadPoolExecutor(4) as pool:
        pending = [pool.submit(predict, url, 2000) for _ in range(4)]
        process.send_signal(signal.SIGTERM)
        while httpx.get(f"{url}/readyz", timeout=PATIENCE_S).status_code != 503:
            assert process.poll() is None
        assert {answer.result() for answer in pending} == {200}
    assert process.wait(PATIENCE_S) == 0
    assert not list(tmp_path.glob("roofcast-metrics-*"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["level"] for line in lines} <= {"INFO", "WARNING"}
    assert sum(line.get("route") == "/v1/predictions" for line in lines) == n_sent + 5  # and the 408
