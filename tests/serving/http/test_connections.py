"""Clients that do not read, against a server in this process; `tests/attack` has slow senders."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

import uvicorn

from roofcast.serving.http.connections import PromptConnection
from tests.conditions import PATIENCE_S

PART = b"x" * 1_000_000
N_PART = 100
"""Parts that exceed the buffers of both ends."""


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


async def fetch(max_s: float, pause_s: float | None) -> tuple[Streaming, int]:
    """Request a large answer, read it with pauses or not at all, and return the application and the bytes read."""
    app = Streaming()
    config = uvicorn.Config(
        app,
        http=partial(PromptConnection, max_s=max_s),  # type: ignore[arg-type]  # as the service does
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
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        n_byte = 0
        while pause_s is not None and (piece := await reader.read(len(PART))):
            n_byte += len(piece)
            await asyncio.sleep(pause_s)
        await asyncio.wait_for(app.has_ended.wait(), PATIENCE_S)
        writer.transport.abort()
        server.should_exit = True
        await serving
    return app, n_byte


def test_a_client_that_does_not_read_is_disconnected() -> None:
    app, _ = asyncio.run(fetch(0.2, None))
    assert app.n_sent < N_PART


def test_a_slow_reader_gets_the_complete_answer() -> None:
    app, n_byte = asyncio.run(fetch(PATIENCE_S, 0.001))
    assert app.n_sent == N_PART
    assert n_byte > N_PART * len(PART)
