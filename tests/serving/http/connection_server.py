"""A server in this process with the connections of the service, for applications of tests."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn

from roofcast.serving.http.connections import PromptConnection
from tests.conditions import PATIENCE_S

MAX_HEADER_BYTE = 10_000
READ_BYTE = 1_000_000

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(
    app: Any, max_s: float = PATIENCE_S, keep_alive_s: float = PATIENCE_S
) -> AsyncIterator[tuple[uvicorn.Server, socket.socket]]:
    """Serve an application during the block; yield the server and its listening socket."""
    config = uvicorn.Config(
        app,
        http=partial(PromptConnection, max_s=max_s, max_header_byte=MAX_HEADER_BYTE),  # type: ignore[arg-type]
        timeout_keep_alive=keep_alive_s,  # type: ignore[arg-type]  # it is only added to a time
        lifespan="off",
        log_config=None,
        ws="none",
    )
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        task = asyncio.create_task(server.serve([listener]))
        yield server, listener
        server.should_exit = True
        await task


@asynccontextmanager
async def connection_to(
    app: Any, max_s: float = PATIENCE_S, keep_alive_s: float = PATIENCE_S
) -> AsyncIterator[Connection]:
    """Serve an application during the block; yield the two ends of a connection to it."""
    async with serving(app, max_s, keep_alive_s) as (_, listener):
        reader, writer = await asyncio.open_connection(*listener.getsockname(), limit=READ_BYTE)
        yield reader, writer
        writer.transport.abort()


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the path, the names of the headers, and the body."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    names = b",".join(name for name, _ in scope["headers"])
    await answer(send, b"|".join([scope["path"].encode(), names, body]))


async def answer(send: Any, content: bytes) -> None:
    length = str(len(content)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": content})


async def wait_for_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def exchange(request: bytes, app: Any = echo) -> bytes:
    """Send bytes, and return what the server sends up to the end of the connection."""
    async with connection_to(app) as (reader, writer):
        writer.write(request)
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
