"""Answers in bulk that leave the event loop free, and stop when the client is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from starlette.responses import StreamingResponse
from starlette.types import Send

from roofcast.serving.http.bulk.media import Kind

N_THREAD: Final = 1
"""Chunks that a process answers at once; requests in bulk take turns, so that memory stays bounded."""

_TURNS: Final[RunVar[CapacityLimiter]] = RunVar("turns of requests in bulk")


def _turns() -> CapacityLimiter:
    """Return what this event loop's requests in bulk wait for."""
    try:
        return _TURNS.get()
    except LookupError:
        _TURNS.set(CapacityLimiter(N_THREAD))
        return _TURNS.get()


async def stream(parts: Iterator[bytes], kind: Kind, headers: Mapping[str, str]) -> StreamingResponse:
    """Return the response of parts that are made in a thread, each once the one before it was sent.

    The first is made before the response begins, so that what is wrong with the whole request gets a status.
    """
    first = await to_thread.run_sync(next, parts, limiter=_turns())
    return _Stream(_following(first, parts), media_type=kind, headers=headers)


async def _following(part: bytes | None, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while part is not None:
        yield part
        part = await to_thread.run_sync(next, parts, None, limiter=_turns())


class _Stream(StreamingResponse):
    """A stream whose source is closed as soon as nobody listens."""

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]  # `_following` is a generator
            await super().stream_response(send)
