"""The proxy of the deployment limits what the service does not, in front of a server that echoes."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli.commands.service_commands import KEEP_ALIVE_S
from tests.conditions import PATIENCE_S, wait_until
from tests.deploy.files import compose, manifests
from tests.deploy.proxy import CONFIGURATION, Address, needs_nginx, proxying

WAIT_S = 1
POST = b"POST /v1/predictions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
GET = b"GET /%b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"


class Echo:
    """An application that answers with what it got."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.paths.append(scope["path"])
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        content = json.dumps({"client": scope["client"][0], "headers": headers, "n_byte": len(body)}).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": content})


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Address, Echo]]:
    """Give the address of the proxy, and the application behind it."""
    app = Echo()
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, ws="none", http="h11"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            with proxying(listener.getsockname(), tmp_path_factory.mktemp("nginx"), WAIT_S) as address:
                yield address, app
        finally:
            server.should_exit = True
            thread.join()


def exchange(address: Address, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """Send parts one after another, and return what comes back up to the end of the connection."""
    answer = b""
    with socket.create_connection(address, timeout=PATIENCE_S) as connection, suppress(ConnectionError):
        for part in parts:
            connection.sendall(part)
            time.sleep(pause_s)
        while received := connection.recv(65_536):
            answer += received
    return answer


@needs_nginx
@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        pytest.param(GET % b"" + b"\r\n", 200, id="a request"),
        pytest.param(GET % (b"?reference=" + b"x" * 60_000) + b"\r\n", 200, id="references in the address"),
        pytest.param(GET % b"" + b"upgrade: h2c\r\n\r\n", 200, id="an offer of another protocol"),
        pytest.param(POST + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", 400, id="two lengths"),
        pytest.param(POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}", 400, id="a length twice"),
        pytest.param(POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n", 400, id="an invalid chunk"),
        pytest.param(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n", 400, id="no host"),
        pytest.param(GET % b"" + b"host: y\r\n\r\n", 400, id="two hosts"),
        pytest.param(GET % b"" + b"x: " + b"x" * 70_000 + b"\r\n\r\n", 400, id="a long header"),
        pytest.param(GET % b"" + b"x: y\r\n" * 60_000 + b"\r\n", 400, id="many headers"),
        pytest.param(GET % (b"x" * 70_000) + b"\r\n", 414, id="a long address"),
        pytest.param(POST + b"content-length: 99999999999\r\n\r\n", 413, id="a large body"),
        pytest.param(b"\x00\xff\r\n\r\n", 400, id="another protocol"),
    ],
)
def test_framing_and_sizes_are_the_proxys(echo: tuple[Address, Echo], request_text: bytes, status: int) -> None:
    assert exchange(echo[0], request_text).startswith(b"HTTP/1.1 %d" % status)


@needs_nginx
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([b""], id="nothing"),
        pytest.param([b"GET /slow HTTP/1.1\r\nhost: x\r\n"], id="no end of headers"),
        pytest.param([b"GET /slow HTTP/1.1\r\nhost: x\r\n", *[b"a: b\r\n"] * 10], id="one header after another"),
        pytest.param([b"POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"], id="no end of the body"),
    ],
)
def test_a_slow_client_is_disconnected_and_never_reaches_the_service(
    echo: tuple[Address, Echo], parts: list[bytes]
) -> None:
    answer = exchange(echo[0], *parts, pause_s=WAIT_S / 5 if len(parts) > 1 else 0.0)
    assert not answer or answer.startswith(b"HTTP/1.1 408")
    assert "/slow" not in echo[1].paths


@needs_nginx
def test_a_client_that_does_not_read_keeps_no_connection_of_the_service(echo: tuple[Address, Echo]) -> None:
    n_before = len(echo[1].paths)
    with socket.create_connection(echo[0], timeout=PATIENCE_S) as connection:
        connection.sendall(GET % b"unread" + b"\r\n")
        wait_until(lambda: len(echo[1].paths) > n_before)
        assert b"200" in exchange(echo[0], GET % b"" + b"\r\n")


@needs_nginx
def test_a_client_cannot_choose_its_address(echo: tuple[Address, Echo]) -> None:
    answer = exchange(echo[0], GET % b"" + b"x-forwarded-for: 6.6.6.6\r\nx-forwarded-proto: https\r\n\r\n")
    got = json.loads(answer[answer.index(b"{") : answer.rindex(b"}") + 1])
    assert got["client"] == got["headers"]["x-forwarded-for"] == "127.0.0.1"


def test_limits_of_proxy_and_service_agree() -> None:
    text = CONFIGURATION.read_text(encoding="utf-8")
    assert f"client_max_body_size {Settings().max_bulk_byte // 10**6}m;" in text
    assert f"keepalive_timeout {KEEP_ALIVE_S - 1}s;" in text, "the proxy closes first"


def test_only_the_proxy_is_reachable() -> None:
    services = compose()["services"]
    assert "ports" not in services["roofcast"]
    assert services["proxy"]["ports"] == ["127.0.0.1:${PORT:-8000}:8080"]
    containers = manifests()["deployment.yaml"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for each in containers for port in each["ports"]}
    assert ports == {"probes": 8000, "http": 8080}
    assert manifests()["service.yaml"]["spec"]["ports"][0]["targetPort"] == "http"
