"""HTTP/1.1 connections with time limits for slow clients, and bounds on headers and on waiting requests."""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from http import HTTPStatus
from typing import Any, Final

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
    parse_url,
)
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from roofcast.serving.http.errors import problem_response

INVALID: Final = "the request is not valid HTTP, or its address is longer than 64 KiB: send long rows in a body"

MAX_WAITING: Final = 100
"""Most requests of one connection that wait for the response to an earlier one."""

logger = logging.getLogger(__name__)


class PromptConnection(HttpToolsProtocol):
    """Uvicorn's protocol with deadlines for headers, for bodies that nobody reads, and for reading responses.

    Uvicorn itself closes only a connection that is silent after a response, any byte counts as activity, headers may
    have any size, and any number of requests may wait. Here a connection without a request to answer is dropped after
    `max_s`, and so is that of a client that does not read. More than `MAX_WAITING` waiting requests end a connection.
    Trailers are dropped, and the offer of another protocol is ignored.

    The application sees a disconnect also while further requests of the connection wait, unless these are larger than
    64 KiB: nothing is read then until the response is complete.

    A client that closes only its sending half is treated as disconnected, and its work stops: the server cannot
    distinguish it from one that has closed the connection.

    Parameters
    ----------
    max_s
        Longest time without a request whose headers are complete, and longest time for a client to read what is
        buffered: while more than 64 KiB are, after a response, and after the server has closed the connection.
    max_header_byte
        Most bytes of headers, of trailers, or between two chunks of a body. The packet that ends them is not counted.
    """

    def __init__(self, *arguments: Any, max_s: float, max_header_byte: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._max_s = max_s
        self._max_header_byte = max_header_byte
        self._n_header_byte = 0
        self._n_waiting_byte = 0
        self._has_header = False
        self._is_resumed = False
        self._answered: RequestResponseCycle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the idle timer."""
        super().connection_made(transport)
        self._update_idle_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and tell the application; uvicorn tells only the last request of the connection."""
        super().connection_lost(exc)
        self._update_idle_timer()
        self._stop_read_timer()
        if self._answered:
            self._answered.disconnected = True
            self._answered.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Parse data in an empty context; the event loop may call in that of an earlier request, with its id."""
        self._unset_keepalive_if_required()
        Context().run(self._parse, data)

    def _parse(self, data: bytes) -> None:
        """Parse data; refuse what is not HTTP, and headers without an end."""
        self._n_header_byte += len(data)
        self._n_waiting_byte = self._n_waiting_byte + len(data) if self.pipeline else 0
        while data:
            try:
                self.parser.feed_data(data)
                data = b""
            except HttpParserUpgrade as upgrade:
                data = self._resume_after_upgrade() + data[upgrade.args[0] :]
            except HttpParserError as error:
                if _is_fault(error):
                    logger.error("a request could not be parsed", exc_info=error.__context__)
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
        """Answer the request, or let it wait and, while little waits, continue to read: the client may leave."""
        self._n_header_byte = 0
        if self._has_header:
            return
        self._has_header = True
        if parse_url(self.url).path is None:
            raise HttpParserInvalidURLError("the address has no path")
        super().on_headers_complete()
        self._update_idle_timer()
        if len(self.pipeline) > MAX_WAITING:
            raise HttpParserError("too many requests wait")
        if self.pipeline and self._n_waiting_byte <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._n_header_byte = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of the request."""
        self._n_header_byte = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Answer the request that waits, or start the idle timer."""
        super().on_response_complete()
        self._update_idle_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no valid request; where the client awaits another response, only disconnect."""
        if self._is_refusal_expected:
            refusal = problem_response(HTTPStatus.BAD_REQUEST, "bad-request", msg, headers={"connection": "close"})
            headers = [b"%b: %b\r\n" % header for header in refusal.raw_headers]
            self.transport.write(b"".join([STATUS_LINE[refusal.status_code], *headers, b"\r\n", bytes(refusal.body)]))
        self.transport.close()
        self._update_idle_timer()

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
        """Answer a request in an empty context, not in that of the request before it."""
        self._answered = cycle
        task = self.loop.create_task(cycle.run_asgi(app), context=Context())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda _: self._update_idle_timer())  # a response that fails closes the connection

    @property
    def _is_answering(self) -> bool:
        return self._answered is not None and not self._answered.response_complete

    @property
    def _is_refusal_expected(self) -> bool:
        """Whether the client takes a 400 for the response to what it sends now, not to an earlier request."""
        if not self._is_answering:
            return True
        return self._answered is self.cycle and self.cycle.more_body and not self.cycle.response_started

    def _update_idle_timer(self) -> None:
        """Run the idle timer while no request is being answered, and from close to loss of the connection."""
        is_idle = self in self.connections and (self.transport.is_closing() or not self._is_answering)
        if is_idle and self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self._max_s, self.transport.abort)
        elif not is_idle and self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None


def _is_fault(error: HttpParserError) -> bool:
    """Return whether a callback of the parser failed for another reason than what the client has sent."""
    is_of_callback = isinstance(error, HttpParserCallbackError)
    return is_of_callback and not isinstance(error.__context__, HttpParserError | UnicodeDecodeError)
