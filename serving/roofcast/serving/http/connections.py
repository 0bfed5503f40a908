"""HTTP/1.1 connections with time limits for slow clients and a bound on headers."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from roofcast.serving.http.errors import problem_response

INVALID: Final = "the request is not valid HTTP, or its address is longer than 64 KiB: send long rows in a body"


class PromptConnection(HttpToolsProtocol):
    """Uvicorn's protocol with deadlines for headers, for bodies that nobody reads, and for reading responses.

    Uvicorn itself closes only a connection that is silent after a response, any byte counts as activity, and headers
    may have any size. Here a connection without a request to answer is closed after `max_s`, and so is that of a
    client that does not read. The application sees a disconnect also while further requests of the connection wait.
    Trailers are dropped, and the offer of another protocol is ignored.

    A client that closes only its sending half is treated as disconnected, and its work stops: the server cannot
    distinguish it from one that has closed the connection.

    Parameters
    ----------
    max_s
        Longest time without a complete request, and longest time for a client to read what is buffered for it.
    max_header_byte
        Most bytes of headers, of trailers, or between two chunks of a body. The packet that ends them is not counted.
    """

    def __init__(self, *arguments: Any, max_s: float, max_header_byte: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._max_s = max_s
        self._max_header_byte = max_header_byte
        self._n_header_byte = 0
        self._has_header = False
        self._is_resumed = False
        self._answered: RequestResponseCycle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the idle timer."""
        super().connection_made(transport)
        self._start_idle_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and tell the application; uvicorn tells only the last request of the connection."""
        self._stop_idle_timer()
        self._stop_read_timer()
        if self._answered:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data; refuse what is not HTTP, and headers without an end."""
        self._n_header_byte += len(data)
        while data:
            try:
                self.parser.feed_data(data)
                data = b""
            except HttpParserUpgrade as upgrade:
                data = self._resume_after_upgrade() + data[upgrade.args[0] :]
            except HttpParserError:
                self.send_400_response(INVALID)
                data = b""
        if self._n_header_byte > self._max_header_byte and not self.transport.is_closing():
            self.send_400_response(f"the headers are larger than {self._max_header_byte} bytes")

    def on_message_begin(self) -> None:
        """Expect headers, unless the body of a request with headers follows."""
        if self._is_resumed:
            self._is_resumed = False
        else:
            self._has_header = False
            super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; drop a trailer, which could otherwise replace a header that was checked."""
        if not self._has_header:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the idle timer: there is a request to answer."""
        self._n_header_byte = 0
        if not self._has_header:
            self._has_header = True
            self._stop_idle_timer()
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._n_header_byte = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of the request."""
        self._n_header_byte = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the idle timer, unless a further request of the connection waits."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._start_idle_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no valid request; within the response to an earlier request, only disconnect."""
        if not self._answered or self._answered.response_complete or not self._answered.response_started:
            refusal = problem_response(HTTPStatus.BAD_REQUEST, "bad-request", msg, headers={"connection": "close"})
            headers = [b"%b: %b\r\n" % header for header in refusal.raw_headers]
            self.transport.write(b"".join([STATUS_LINE[refusal.status_code], *headers, b"\r\n", bytes(refusal.body)]))
        self.transport.close()

    def pause_writing(self) -> None:
        """Start the read timer: the client's buffer is full."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(self._max_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the read timer: the client has read nearly all."""
        super().resume_writing()
        self._stop_read_timer()

    def _resume_after_upgrade(self) -> bytes:
        """Expect the body of a request that offers another protocol, at whose headers the parser has ended.

        Returns
        -------
        bytes
            Headers of a request with a body of the same length; a new parser takes them in front of the body.
        """
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self._is_resumed = self.cycle.more_body = True
        framing = {b"content-length", b"transfer-encoding"}
        lines = [b"%b: %b\r\n" % (name, value) for name, value in self.headers if name in framing]
        return b"".join([b"POST / HTTP/1.1\r\n", *lines, b"\r\n"])

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _start_idle_timer(self) -> None:
        self._stop_idle_timer()
        self._idle_timer = self.loop.call_later(self._max_s, self.timeout_keep_alive_handler)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
