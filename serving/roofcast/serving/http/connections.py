"""HTTP/1.1 connections with time limits for slow clients and support for half-closed ones."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_IDLE_STATES: Final = (h11.IDLE, h11.DONE)
"""States of the server side without a request to answer: headers are incomplete, or the response is complete."""


class PromptConnection(H11Protocol):
    """Uvicorn's protocol with deadlines for headers, for bodies that nobody reads, and for reading responses.

    Uvicorn itself closes only a connection that is silent after a response, and any byte counts as activity. Here a
    connection without a request to answer is closed after `max_s`. A client that closes its sending half after its
    request still gets the response. A client that does not read is disconnected after `max_s`, and the application
    sees a disconnect.

    Parameters
    ----------
    max_s
        Longest time without a complete request, and longest time for a client to read what is buffered for it.
    """

    def __init__(self, *arguments: Any, max_s: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._max_s = max_s
        self._idle_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the idle timer."""
        super().connection_made(transport)
        self._update_idle_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_idle_timer()
        self._stop_read_timer()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Handle received data, then start or stop the idle timer."""
        super().handle_events()
        self._update_idle_timer()

    def eof_received(self) -> bool:  # type: ignore[override]  # True keeps our half open
        """Keep our half open if a complete request awaits its response."""
        has_request = self.conn.their_state is h11.DONE and self.conn.our_state not in _IDLE_STATES
        if has_request:
            self.cycle.keep_alive = False
        return has_request

    def pause_writing(self) -> None:
        """Start the read timer: the client's buffer is full."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(self._max_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the read timer: the client has read nearly all."""
        super().resume_writing()
        self._stop_read_timer()

    def _update_idle_timer(self) -> None:
        if self.conn.our_state not in _IDLE_STATES or self.transport.is_closing():
            self._stop_idle_timer()
        elif self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self._max_s, self.timeout_keep_alive_handler)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
