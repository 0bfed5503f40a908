"""Validation of request bodies: size, time to arrive, JSON object, nesting depth, plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from anyio import fail_after, to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import parse_config
from roofcast.serving.http.auth import CALLER
from roofcast.serving.http.bulk.media import Kind, accepted_kind, bulk_kind, is_file_upload
from roofcast.serving.http.errors import (
    RETRY_AFTER_S,
    busy_response,
    not_acceptable,
    problem_response,
    unsupported_media_type,
)

JSON_TYPE: Final = "application/json"

BODY: Final = "roofcast.body"
"""Key in the ASGI scope of the file with a bulk body."""

MAX_DEPTH: Final = 64
"""Deepest nesting of a body; a model's configuration needs fewer than ten levels."""


class BodyLimit:
    """ASGI middleware that answers 413 to bodies over a limit, whatever their headers say, and 408 to slow ones.

    Bulk bodies may be larger. They are spooled to a file, which the route finds in the scope. A body is read to its
    end before it is answered, because most clients read nothing before they have sent everything. The number of bulk
    requests at a time is limited, which bounds disk use; one caller may have all but one of them, so that it cannot
    block the others. Requests beyond that are answered 503 before their body is read.
    """

    def __init__(self, app: ASGIApp, max_byte: int, max_s: float, max_bulk_byte: int, max_bulk_request: int) -> None:
        self.app = app
        self.max_byte = max_byte
        self.max_s = max_s
        self.max_bulk_byte = max_bulk_byte
        self.max_bulk_request = max_bulk_request
        self._n_bulk: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body up to the limits, then call the application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if bulk_kind(scope) is None and not is_file_upload(scope):
            await self._forward(scope, receive, send, is_bulk=False)
            return
        caller = scope.get(CALLER, "")
        if refusal := self._busy_response(caller):
            await refusal(scope, receive, send)
            return
        self._n_bulk[caller] += 1
        try:
            await self._forward(scope, receive, send, is_bulk=True)
        finally:
            self._n_bulk -= Counter([caller])

    async def _forward(self, scope: Scope, receive: Receive, send: Send, *, is_bulk: bool) -> None:
        with SpooledTemporaryFile(max_size=self.max_byte) as body:
            last = await self._read(scope, receive, body, self.max_bulk_byte if is_bulk else self.max_byte)
            if isinstance(last, Response):
                await last(scope, receive, send)
            elif last["type"] != "http.disconnect":
                body.seek(0)
                scope[BODY] = body
                message = {"type": "http.request", "body": b"" if is_bulk else body.read(), "more_body": False}
                await self.app(scope, _replay(message, receive), send)

    def _busy_response(self, caller: str) -> Response | None:
        if self._n_bulk.total() >= self.max_bulk_request:
            problem = f"{self.max_bulk_request} bulk requests are in progress, the most at a time"
        elif self._n_bulk[caller] >= max(1, self.max_bulk_request - 1):
            problem = f"{self._n_bulk[caller]} of your bulk requests are in progress, the most of one caller"
        else:
            return None
        return busy_response(problem, RETRY_AFTER_S)

    async def _read(self, scope: Scope, receive: Receive, body: IO[bytes], max_byte: int) -> Message | Response:
        """Return the last message of a body written to `body`, or the response to a refused one."""
        declared = Headers(scope=scope).get("content-length", "")
        is_small = not declared.isdecimal() or int(declared[:20]) <= max_byte
        message: Message = {"type": "http.request", "more_body": True}
        try:
            with fail_after(self.max_s):
                while is_small and message["type"] == "http.request" and message.get("more_body", False):
                    message = await receive()
                    part = message.get("body", b"")
                    size = body.tell() + len(part)
                    is_small = size <= max_byte
                    if is_small and size > self.max_byte:  # the file is on disk, which may be slow
                        await to_thread.run_sync(body.write, part)
                    elif is_small:
                        body.write(part)
        except TimeoutError:
            detail = f"the body has not arrived within {self.max_s:g} seconds; send it in parts"
            return problem_response(HTTPStatus.REQUEST_TIMEOUT, "too-slow", detail, headers={"connection": "close"})
        except OSError as error:
            detail = f"the body cannot be stored: {error.strerror or error}; try again later"
            return problem_response(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", detail)
        if not is_small:
            detail = f"the body is over {max_byte} bytes; send it in parts"
            return problem_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)
        return message


def _replay(first: Message, receive: Receive) -> Receive:
    pending = [first]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


class _ParsedRequest(Request):
    """Request whose body has been parsed and checked."""

    fields: Mapping[str, Any]

    async def json(self) -> Any:
        return self.fields


class JsonRoute(APIRoute):
    """Route whose body, if any, is a JSON object that every parser reads alike.

    Refused with 415 are other content types, also of an empty body (a form on another site's page sends these); with
    422 duplicate fields, NaN and infinities, numbers of excessive length, deep nesting, NUL and lone surrogates.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler that checks the body first."""
        handler = super().get_route_handler()

        async def check_and_handle(request: Request) -> Response:
            body = await request.body()
            kind = request.headers.get("content-type", "")
            if (body or kind) and not _is_json(kind):
                raise unsupported_media_type(f"send the body as {JSON_TYPE}")
            if not body:
                return await handler(request)
            parsed = _ParsedRequest(request.scope, request.receive)
            parsed._body = body
            parsed.fields = read_object(body)
            return await handler(parsed)

        return check_and_handle


class BulkRoute(APIRoute):
    """Route for bulk bodies; the JSON route has the same path and documents both."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request has a bulk body."""
        return super().matches(scope) if bulk_kind(scope) else (Match.NONE, {})


def response_kind(request: Request, default: Kind) -> Kind:
    """Return the media type of the response by the request's ``Accept``, or answer 406."""
    kind = accepted_kind(request.headers.get("accept", ""), default)
    if kind is None:
        raise not_acceptable(f"accept one of {', '.join(Kind)}")
    return kind


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON_TYPE or (kind.startswith("application/") and kind.endswith("+json"))


def read_object(body: bytes) -> Mapping[str, Any]:
    """Return the fields of an untrusted JSON object.

    Raises
    ------
    InputError
        If it is no JSON object, is nested too deeply, or a text in it cannot be stored; names the field.

    Examples
    --------
    >>> read_object(b'{"model": "llama-7b"}')
    {'model': 'llama-7b'}
    >>> read_object(b'{"model": 1, "model": 2}')
    Traceback (most recent call last):
    ...
    roofcast.data.errors.SchemaError: body: model: is given twice; keep one
    """
    fields = parse_config(body, "body")
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _check_depth(fields)
    if b"\\u" in body:  # in UTF-8, NUL and lone surrogates can only be written as escapes
        _check_texts(fields)
    return fields


def _check_depth(fields: Mapping[str, Any]) -> None:
    level: list[Any] = [fields]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise InputError("body", f"is nested too deeply; at most {MAX_DEPTH} levels are read")


def _check_texts(fields: Mapping[str, Any]) -> None:
    pending: list[tuple[str, Any]] = [("", fields)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str) and not is_plain(value):
            raise InputError(path, "contains NUL or a lone surrogate; send plain text")
        if isinstance(value, dict):
            pending += ((path, name) for name in value if not is_plain(name))
            pending += ((f"{path}.{name}".lstrip("."), item) for name, item in value.items())
        elif isinstance(value, list):
            pending += ((f"{path}.{i}", item) for i, item in enumerate(value))


def is_plain(text: str) -> bool:
    """Return whether any file or database can store a text."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
