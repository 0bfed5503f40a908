"""Requests that wait on their connection for the response to an earlier one."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from asgi_correlation_id import correlation_id

from roofcast.serving.http.connections import MAX_WAITING, PromptConnection
from tests.conditions import PATIENCE_S
from tests.serving.http.connection_server import (
    answer,
    connection_to,
    echo,
    exchange,
    serving,
    wait_for_disconnect,
)

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
OFFER = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
GARBAGE = b"\x00\r\n\r\n"


class Silent:
    """An application that does not answer, and notes when its clients leave."""

    def __init__(self) -> None:
        self.n_begun = 0
        self.has_begun = asyncio.Event()
        self.has_left = asyncio.Event()

    async def __call__(self, _scope: Any, receive: Any, _send: Any) -> None:
        self.n_begun += 1
        self.has_begun.set()
        await wait_for_disconnect(receive)
        self.has_left.set()


def test_requests_sent_at_once_are_answered_in_turn() -> None:
    requests = b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % i for i in range(3))
    answers = asyncio.run(exchange(requests + LAST))
    assert answers.count(b"HTTP/1.1 200 OK") == 4
    places = [answers.index(path) for path in (b"/0|", b"/1|", b"/2|", b"/last|")]
    assert places == sorted(places)


@pytest.mark.parametrize("request_text", [GET, OFFER], ids=["plain", "offer of another protocol"])
def test_as_many_requests_as_may_wait_are_answered(request_text: bytes) -> None:
    answers = asyncio.run(exchange(request_text * MAX_WAITING + LAST))
    assert answers.count(b"HTTP/1.1 200 OK") == MAX_WAITING + 1


@pytest.mark.parametrize("n_more", [1, 5000])
def test_more_waiting_requests_end_the_connection(n_more: int) -> None:
    async def flood() -> None:
        app = Silent()
        async with connection_to(app) as (reader, writer):
            writer.write(GET)
            await asyncio.wait_for(app.has_begun.wait(), PATIENCE_S)
            writer.write(GET * (MAX_WAITING + n_more))
            await asyncio.wait_for(app.has_left.wait(), PATIENCE_S)
            with suppress(ConnectionResetError):  # the server has not read all requests
                assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        assert app.n_begun == 1

    asyncio.run(flood())


@pytest.mark.parametrize(("at_once", "later"), [(1, 0), (2, 0), (1, 1), (1, 2)])
def test_the_departure_of_a_client_is_seen(at_once: int, later: int) -> None:
    async def leave() -> None:
        app = Silent()
        async with connection_to(app) as (_, writer):
            writer.write(GET * at_once)
            await asyncio.wait_for(app.has_begun.wait(), PATIENCE_S)
            writer.write(GET * later)
            writer.close()
            await asyncio.wait_for(app.has_left.wait(), PATIENCE_S)
        assert app.n_begun == 1

    asyncio.run(leave())


def test_large_waiting_requests_are_not_read() -> None:
    large = b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"x" * 9000 + b"\r\n\r\n"

    async def fill() -> None:
        app = Silent()
        async with serving(app) as (server, listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(GET + large * (MAX_WAITING // 2))
            await asyncio.wait_for(app.has_begun.wait(), PATIENCE_S)
            (connection,) = server.server_state.connections
            assert isinstance(connection, PromptConnection)
            async with asyncio.timeout(PATIENCE_S):
                while not connection.flow.read_paused:
                    await asyncio.sleep(0.001)
            writer.transport.abort()
            connection.transport.abort()  # it does not read that the client has left

    asyncio.run(fill())


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("invalid", [GARBAGE, b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"])
def test_invalid_data_is_no_response_to_an_earlier_request(invalid: bytes, at_once: bool) -> None:
    async def interrupt() -> bytes:
        app = Silent()
        async with connection_to(app) as (reader, writer):
            writer.write(GET + invalid * at_once)
            await asyncio.wait_for(app.has_begun.wait(), PATIENCE_S)
            if not at_once:
                writer.write(invalid)
            await asyncio.wait_for(app.has_left.wait(), PATIENCE_S)
            return await asyncio.wait_for(reader.read(), PATIENCE_S)

    assert asyncio.run(interrupt()) == b""


def test_invalid_data_does_not_enter_the_response_to_an_earlier_request() -> None:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await wait_for_disconnect(receive)

    async def interrupt() -> bytes:
        async with connection_to(app) as (reader, writer):
            writer.write(GET)
            start = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
            writer.write(GARBAGE)
            return start + await asyncio.wait_for(reader.read(), PATIENCE_S)

    answers = asyncio.run(interrupt())
    assert answers.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answers.count(b"HTTP/1.1") == 1


def test_a_request_has_no_id_of_an_earlier_one() -> None:
    ids: list[str | None] = []

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        ids.append(correlation_id.get())
        correlation_id.set(f"request {len(ids)}")
        await receive()
        await answer(send, b"END")

    async def exchange_twice() -> bytes:
        async with connection_to(app) as (reader, writer):
            writer.write(GET * 2)
            for _ in range(2):
                await asyncio.wait_for(reader.readuntil(b"END"), PATIENCE_S)
            writer.write(GARBAGE)
            return await asyncio.wait_for(reader.read(), PATIENCE_S)

    refusal = asyncio.run(exchange_twice())
    assert ids == [None, None]
    assert json.loads(refusal.partition(b"\r\n\r\n")[2])["request_id"] == ""


def test_a_request_on_a_reused_connection_is_not_cut() -> None:
    keep_alive_s = 0.05

    async def reuse() -> bytes:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/last":
                await asyncio.sleep(2 * keep_alive_s)  # a timer of the first response ends before this one
            await echo(scope, receive, send)
            if scope["path"] == "/":
                writer.write(LAST)  # the server reads it before it looks at the timer

        async with connection_to(app, keep_alive_s=keep_alive_s) as (reader, writer):
            writer.write(GET)
            return await asyncio.wait_for(reader.read(), PATIENCE_S)

    assert asyncio.run(reuse()).count(b"HTTP/1.1 200 OK") == 2
