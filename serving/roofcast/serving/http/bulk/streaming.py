"""Streaming response whose parts are computed in a thread, and which stops when the client disconnects."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from anyio import CapacityLimiter, to_thread
from starlette.responses import StreamingResponse
from starlette.types import Send

from roofcast.serving.http.body import Kind

N_THREAD: Final = 1
"""Chunks that a process computes at once; bulk requests take turns, so memory stays bounded."""

_LIMITER: Final = CapacityLimiter(N_THREAD)


async def stream(parts: Iterator[bytes], kind: Kind, headers: Mapping[str, str]) -> StreamingResponse:
    """Return a response whose parts are computed one by one, each after the one before it was sent.

    The first part is computed before the response begins, so an error of the whole request gets a status.
    """
    first = await to_thread.run_sync(next, parts, limiter=_LIMITER)
    return _Stream(_continue(first, parts), media_type=kind, headers=headers)


async def _continue(part: bytes | None, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while part is not None:
        yield part
        part = await to_thread.run_sync(next, parts, None, limiter=_LIMITER)


class _Stream(StreamingResponse):
    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]  # `_continue` is a generator
            await super().stream_response(send)
