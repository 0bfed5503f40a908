"""Clients that send too much, too slowly or too little, or disconnect, do not affect other clients.

Slow clients and invalid requests meet the proxy of the deployment, the others the service itself.
"""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

from tests.attack.service import Service
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http_client import a_question

POST = b"POST /v1/predictions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
QUESTION = json.dumps({"rows": [a_question()]}).encode()


@pytest.fixture(autouse=True)
def others_are_answered(service: Service) -> Iterator[None]:
    """Check that a valid request is answered after each test."""
    yield
    response = httpx.post(f"{service.url}/v1/predictions", json={"rows": [a_question()]}, timeout=PATIENCE_S)
    assert response.status_code == 200


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def drip(service: Service, start: bytes, drop: bytes) -> tuple[bytes, float]:
    """Send a start, then a drop repeatedly until the server disconnects; return its answer and the seconds passed."""
    started_s = time.monotonic()
    answer = b""
    with service.connect(0.2) as connection:
        connection.sendall(start)
        while time.monotonic() - started_s < PATIENCE_S:
            try:
                connection.sendall(drop)
                part = connection.recv(65_536)
            except TimeoutError:
                continue
            except OSError:
                break
            if not part:
                break
            answer += part
    return answer, time.monotonic() - started_s


@pytest.mark.parametrize(
    ("start", "drop", "status"),
    [
        pytest.param(b"", b"", None, id="nothing"),
        pytest.param(b"G", b"", None, id="one letter"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nhost: x\r\n", b"a: b\r\n", None, id="headers"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"\r\n", 200, id="blank lines after an answer"),
        pytest.param(POST + b"content-length: 500000\r\n\r\n{", b"", None, id="body"),
        pytest.param(POST + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n", b"", None, id="chunks"),
        pytest.param(POST + b"content-length: 90000000\r\n\r\n", b"{", 413, id="a refused body"),
    ],
)  # fmt: skip
def test_slow_clients_are_disconnected(proxied: Service, start: bytes, drop: bytes, status: int | None) -> None:
    answer, duration_s = drip(proxied, start, drop)
    assert duration_s < PATIENCE_S, "the server did not disconnect"
    if status is not None:
        assert status_of(answer) == status


def test_many_slow_clients_do_not_block_others(proxied: Service) -> None:
    idlers = [proxied.connect() for _ in range(90)]
    try:
        for number, idler in enumerate(idlers):
            idler.sendall(b"GET / HTTP/1.1\r\nhost" if number % 2 else POST + b"content-length: 99\r\n\r\n{")
        assert httpx.get(f"{proxied.url}/readyz", timeout=PATIENCE_S).status_code == 200
        for idler in idlers:
            with suppress(ConnectionResetError):
                while idler.recv(65_536):
                    pass
    finally:
        for idler in idlers:
            idler.close()


def chunked(text: bytes, size: int = 60_000) -> bytes:
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("path", ["/v1/predictions", "/v1/recommendations", "/v1/explanations"])
def test_oversized_bodies_are_refused_with_and_without_a_declared_length(service: Service, path: str) -> None:
    head = b"POST %b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" % path.encode()
    big = b'{"rows": "' + b"x" * 3_000_000 + b'"}'
    assert status_of(service.exchange(head + b"content-length: 99999999999\r\n\r\n")) == 413
    with service.connect() as connection:
        connection.sendall(head + b"transfer-encoding: chunked\r\n\r\n" + chunked(big)[:1_200_000])
        assert status_of(connection.recv(65_536)) == 413
    assert httpx.post(f"{service.url}{path}", content=big, timeout=PATIENCE_S).status_code == 413
    assert httpx.post(f"{service.url}{path}", content=iter([big]), timeout=PATIENCE_S).status_code == 413


@pytest.mark.parametrize("cut", [0, 1, 30, len(POST) + 25, len(POST) + 60])
def test_a_request_that_is_cut_off_gets_no_answer(service: Service, cut: int) -> None:
    request = POST + b"content-length: %d\r\n\r\n" % len(QUESTION) + QUESTION
    with service.connect() as connection:
        connection.sendall(request[:cut])
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer == b"", "the server disconnects without an answer"


def test_clients_that_reset_the_connection_do_not_affect_the_service(service: Service) -> None:
    body = json.dumps({"rows": [a_question()] * 500}).encode()
    request = POST + b"content-length: %d\r\n\r\n" % len(body) + body

    def send_and_reset(_: int) -> None:
        with service.connect() as connection:
            connection.sendall(request)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send_and_reset, range(12)))
    wait_until(lambda: httpx.get(f"{service.url}/healthz", timeout=PATIENCE_S).status_code == 200)


@pytest.mark.parametrize(
    "request_text",
    [
        b"\x00\xff\xfe\r\n\r\n",
        b"POST /v1/predictions HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/predictions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /v1/predictions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/predictions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx: \x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9_000 + b"\r\n",
    ],
)
def test_invalid_http_is_refused(proxied: Service, request_text: bytes) -> None:
    assert 400 <= status_of(proxied.exchange(request_text)) <= 501


def test_an_upgrade_to_another_protocol_is_ignored(service: Service) -> None:
    upgrade = b"connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-key: eA==\r\n\r\n"
    assert status_of(service.exchange(b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + upgrade)) == 200
