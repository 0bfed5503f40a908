"""Connections that may not keep a server busy by saying or reading little, and clients that hang up halfway."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_WAITING: Final = (h11.IDLE, h11.DONE)
"""States of a server that has nothing to answer: no headers have ended yet, or its answer is out."""


class PromptConnection(H11Protocol):
    """Uvicorn's protocol, which closes connections that take too long over headers, bodies nobody wants, or answers.

    Uvicorn itself ends only what sends nothing after an answer, and takes each byte for a sign of life. A client that
    has sent its request and closes its half of the connection still gets the answer. Of an answer that is not read
    only so much is sent; the connection is dropped if that much is not taken in time, and whoever makes the rest of
    the answer is told that nobody is there.

    Parameters
    ----------
    max_s
        Longest that a connection may go without a request under way once anything has come, or before anything has;
        and longest that a client may take to read what waits for it.
    """

    def __init__(self, *arguments: Any, max_s: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._max_s = max_s
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the clock."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._forget()
        self._read_on()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle what has come, and look whether anything is to be answered."""
        super().handle_events()
        self._watch()

    def eof_received(self) -> bool:  # type: ignore[override]  # a protocol may: asyncio then leaves our half open
        """Keep our half open if a whole request waits for its answer."""
        is_asked = self.conn.their_state is h11.DONE and self.conn.our_state not in _WAITING
        if is_asked:
            self.cycle.keep_alive = False
        return is_asked

    def pause_writing(self) -> None:
        """Start the clock of a client that does not read."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._max_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it: the client has read nearly all."""
        super().resume_writing()
        self._read_on()

    def _read_on(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self) -> None:
        """Start the clock where nothing is to be answered, if it does not run yet; stop it where something is."""
        if self.conn.our_state not in _WAITING or self.transport.is_closing():
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._max_s, self.timeout_keep_alive_handler)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
