"""What becomes of clients that do not read, by a real server in this process; `tests/attack` has those that drip."""

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
"""More than the buffers of both ends hold."""


class Streaming:
    """An application that sends for as long as somebody is there, and counts how often nobody was."""

    def __init__(self) -> None:
        self.has_ended = asyncio.Event()
        self.n_sent = 0

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.ensure_future(receive())
        while self.n_sent < N_PART and not gone.done():
            await send({"type": "http.response.body", "body": PART, "more_body": True})
            self.n_sent += 1
        gone.cancel()
        await send({"type": "http.response.body", "body": b""})
        self.has_ended.set()


async def ask(max_s: float, pause_s: float | None) -> tuple[Streaming, int]:
    """Ask for a large answer, and read it in pieces with pauses, or not at all; return what came of it."""
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


def test_who_does_not_read_is_dropped_and_the_answer_ends() -> None:
    app, _ = asyncio.run(ask(0.2, None))
    assert app.n_sent < N_PART


def test_who_reads_at_leisure_gets_all() -> None:
    app, n_byte = asyncio.run(ask(PATIENCE_S, 0.001))
    assert app.n_sent == N_PART
    assert n_byte > N_PART * len(PART)
