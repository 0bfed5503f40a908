"""Connections to a server in this process; `tests/attack` has slow senders."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from roofcast.serving.http.connections import PromptConnection
from tests.conditions import PATIENCE_S
from tests.serving.http.connection_server import connection_to, echo, exchange, serving, wait_for_disconnect

PART = b"x" * 1_000_000
N_PART = 100
"""Parts that exceed the buffers of both ends."""

CHUNKED = b"POST /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"
GET = b"GET %b HTTP/1.1\r\nhost: x\r\nconnection: %b\r\n\r\n"
INVALID_BODY = b"POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"


class Streaming:
    """An application that sends parts until the client disconnects."""

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()
        self.n_sent = 0

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        disconnect = asyncio.ensure_future(receive())
        while self.n_sent < N_PART and not disconnect.done():
            await send({"type": "http.response.body", "body": PART, "more_body": True})
            self.n_sent += 1
        disconnect.cancel()
        await send({"type": "http.response.body", "body": b""})
        self.has_ended.set()


@asynccontextmanager
async def client_that_does_not_read(
    app: Any, request_text: bytes
) -> AsyncIterator[tuple[uvicorn.Server, socket.socket]]:
    """Serve an application with a short time limit; yield the server, and a socket on which a request is sent.

    It is sent before the server accepts the connection, so that the limit does not end before the request.
    """
    async with serving(app, max_s=0.1) as (server, listener):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(listener.getsockname())
            client.sendall(request_text)
            yield server, client


def test_a_client_that_does_not_read_a_long_response_is_disconnected() -> None:
    async def stay() -> Streaming:
        app = Streaming()
        async with client_that_does_not_read(app, GET % (b"/", b"close")):
            await asyncio.wait_for(app.has_ended.wait(), PATIENCE_S)
        return app

    assert asyncio.run(stay()).n_sent < N_PART


@pytest.mark.parametrize(
    ("request_text", "next_text"),
    [
        pytest.param(GET % (b"/", b"keep-alive"), b"", id="kept alive"),
        pytest.param(GET % (b"/", b"close"), b"", id="closed"),
        pytest.param(GET % (b"/", b"keep-alive"), INVALID_BODY, id="refused"),
        pytest.param(GET % (b"/fail", b"keep-alive"), b"", id="failed"),
    ],
)
def test_a_client_that_does_not_read_a_short_response_is_disconnected(request_text: bytes, next_text: bytes) -> None:
    """The buffer of the connection never has so much that the application has to wait."""

    async def stay() -> int:
        has_sent = asyncio.Event()
        n_buffered = 0

        async def app(scope: Any, receive: Any, send: Any) -> None:
            nonlocal n_buffered
            if scope["method"] == "POST":
                await wait_for_disconnect(receive)
                return
            (connection,) = server.server_state.connections
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while not n_buffered:
                await send({"type": "http.response.body", "body": PART[:4000], "more_body": True})
                n_buffered = connection.transport.get_write_buffer_size()
            has_sent.set()
            assert scope["path"] != "/fail"
            await send({"type": "http.response.body", "body": b""})
            client.sendall(next_text)

        async with client_that_does_not_read(app, request_text) as (server, client):
            await asyncio.wait_for(has_sent.wait(), PATIENCE_S)
            async with asyncio.timeout(PATIENCE_S):
                while server.server_state.connections:
                    await asyncio.sleep(0.001)
        return n_buffered

    assert 0 < asyncio.run(stay()) < 10_000


def test_a_slow_reader_gets_the_complete_answer() -> None:
    async def read_slowly() -> tuple[int, int]:
        app, n_byte = Streaming(), 0
        async with connection_to(app) as (reader, writer):
            writer.write(GET % (b"/", b"close"))
            while piece := await reader.read(len(PART)):
                n_byte += len(piece)
                await asyncio.sleep(0.001)
        return app.n_sent, n_byte

    n_sent, n_byte = asyncio.run(read_slowly())
    assert n_sent == N_PART
    assert n_byte > N_PART * len(PART)


def test_trailers_do_not_become_headers() -> None:
    answer = asyncio.run(exchange(CHUNKED + b"0\r\nauthorization: other\r\n\r\n"))
    assert answer.endswith(b"\r\n\r\n/a|host,connection,transfer-encoding|{}")


@pytest.mark.parametrize(
    "start", [b"GET / HTTP/1.1\r\nx: ", CHUNKED + b"0\r\nx: ", CHUNKED + b"2;x="], ids=["header", "trailer", "chunk"]
)
def test_headers_without_an_end_are_refused(start: bytes) -> None:
    async def send_without_end() -> bytes:
        async with connection_to(echo) as (reader, writer):
            writer.write(start)
            answer = asyncio.ensure_future(reader.read())
            while not answer.done():
                writer.write(b"x" * 1000)
                for _ in range(20):  # until the server has read it: unread data would reset the connection
                    await asyncio.sleep(0)
            return await answer

    answer = asyncio.run(send_without_end())
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer
    assert b"the headers are larger than 10000 bytes" in answer


@pytest.mark.parametrize("pieces", [1, 40])
def test_an_offer_of_another_protocol_is_ignored(pieces: int) -> None:
    offer = b"connection: upgrade\r\nupgrade: h2c\r\nhost: x\r\n"
    requests = (
        b"POST /a HTTP/1.1\r\n" + offer + b"content-length: 2\r\n\r\n{}"
        b"POST /b HTTP/1.1\r\n" + offer + b"transfer-encoding: chunked\r\n\r\n3\r\n{ }\r\n0\r\n\r\n"
        b"GET /c HTTP/1.1\r\n" + offer + b"\r\n"
        b"GET /d HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )  # fmt: skip

    async def exchange_in_pieces() -> bytes:
        async with connection_to(echo) as (reader, writer):
            for at in range(0, len(requests), len(requests) // pieces):
                writer.write(requests[at : at + len(requests) // pieces])
                await asyncio.sleep(0.001)
            return await asyncio.wait_for(reader.read(), PATIENCE_S)

    answer = asyncio.run(exchange_in_pieces())
    names = b"connection,upgrade,host"
    assert [line for line in answer.split(b"\r\n") if b"|" in line] == [
        b"/a|" + names + b",content-length|{}HTTP/1.1 200 OK",
        b"/b|" + names + b",transfer-encoding|{ }HTTP/1.1 200 OK",
        b"/c|" + names + b"|HTTP/1.1 200 OK",
        b"/d|host,connection|",
    ]


@pytest.mark.parametrize(
    "request_text",
    [
        INVALID_BODY,
        b"\x00\r\n\r\n",
        b"GET http://y HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_invalid_requests_are_refused_and_not_logged(request_text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(exchange(request_text)).startswith(b"HTTP/1.1 400")
    assert PromptConnection.__module__ not in {record.name for record in caplog.records}


@pytest.mark.parametrize("callback", ["on_message_begin", "on_header", "on_headers_complete", "on_body"])
def test_a_fault_of_the_parser_is_logged(
    callback: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise LookupError("a fault")

    monkeypatch.setattr(PromptConnection, callback, fail)
    assert asyncio.run(exchange(CHUNKED)).startswith(b"HTTP/1.1 400")
    (record,) = [record for record in caplog.records if record.name == PromptConnection.__module__]
    assert record.exc_info
    assert str(record.exc_info[1]) == "a fault"
