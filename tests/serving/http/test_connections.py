"""Connections to a server in this process; `tests/attack` has slow senders."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn

from roofcast.serving.http.connections import PromptConnection
from tests.conditions import PATIENCE_S

PART = b"x" * 1_000_000
N_PART = 100
"""Parts that exceed the buffers of both ends."""

MAX_HEADER_BYTE = 10_000
CHUNKED = b"POST /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


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
async def connection_to(app: Any, max_s: float = PATIENCE_S) -> AsyncIterator[Connection]:
    """Serve an application during the block; yield the two ends of a connection to it."""
    config = uvicorn.Config(
        app,
        http=partial(PromptConnection, max_s=max_s, max_header_byte=MAX_HEADER_BYTE),  # type: ignore[arg-type]
        lifespan="off",
        log_config=None,
        ws="none",
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        serving = asyncio.create_task(server.serve([listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname(), limit=len(PART))
        yield reader, writer
        writer.transport.abort()
        server.should_exit = True
        await serving


async def fetch(max_s: float, pause_s: float | None) -> tuple[Streaming, int]:
    """Request a large answer, read it with pauses or not at all, and return the application and the bytes read."""
    app = Streaming()
    async with connection_to(app, max_s) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        n_byte = 0
        while pause_s is not None and (piece := await reader.read(len(PART))):
            n_byte += len(piece)
            await asyncio.sleep(pause_s)
        await asyncio.wait_for(app.has_ended.wait(), PATIENCE_S)
    return app, n_byte


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the path, the names of the headers, and the body."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    names = b",".join(name for name, _ in scope["headers"])
    content = b"|".join([scope["path"].encode(), names, body])
    length = str(len(content)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": content})


async def exchange(request: bytes, app: Any = echo) -> bytes:
    """Send bytes, and return what the server sends up to the end of the connection."""
    async with connection_to(app) as (reader, writer):
        writer.write(request)
        return await asyncio.wait_for(reader.read(), PATIENCE_S)


def test_a_client_that_does_not_read_is_disconnected() -> None:
    app, _ = asyncio.run(fetch(0.2, None))
    assert app.n_sent < N_PART


def test_a_slow_reader_gets_the_complete_answer() -> None:
    app, n_byte = asyncio.run(fetch(PATIENCE_S, 0.001))
    assert app.n_sent == N_PART
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
                await asyncio.sleep(0.001)
            return await answer

    answer = asyncio.run(send_without_end())
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer
    assert b"the headers are larger than 10000 bytes" in answer


def test_requests_sent_at_once_are_answered_in_turn() -> None:
    requests = b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % i for i in range(3))
    answer = asyncio.run(exchange(requests + b"GET /3 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    assert answer.count(b"HTTP/1.1 200 OK") == 4
    assert sorted(range(4), key=lambda i: answer.index(b"/%d|" % i)) == [0, 1, 2, 3]


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


def test_thousands_of_requests_that_offer_another_protocol_are_answered() -> None:
    offer = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    answer = asyncio.run(exchange(offer * 3000 + b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    assert answer.count(b"HTTP/1.1 200 OK") == 3001


@pytest.mark.parametrize("n_request", [1, 2])
def test_the_departure_of_a_client_is_seen(n_request: int) -> None:
    async def leave() -> None:
        n_begun, has_left = 0, asyncio.Event()

        async def app(_scope: Any, receive: Any, _send: Any) -> None:
            nonlocal n_begun
            n_begun += 1
            await receive()
            while (await receive())["type"] != "http.disconnect":
                pass
            has_left.set()

        async with connection_to(app) as (_, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * n_request)
            while not n_begun:
                await asyncio.sleep(0.001)
            writer.close()
            await asyncio.wait_for(has_left.wait(), PATIENCE_S)
        assert n_begun == 1

    asyncio.run(leave())


def test_invalid_data_does_not_enter_the_response_to_an_earlier_request() -> None:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await receive()

    async def interrupt() -> bytes:
        async with connection_to(app) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
            writer.write(b"\x00\r\n\r\n")
            return answer + await asyncio.wait_for(reader.read(), PATIENCE_S)

    answer = asyncio.run(interrupt())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.count(b"HTTP/1.1") == 1
