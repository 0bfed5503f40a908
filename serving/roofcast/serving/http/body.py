"""What a request's body must be before anything looks into it: small, prompt, a JSON object, shallow, plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from anyio import fail_after, to_thread
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import parse_config
from roofcast.serving.http.auth import CONSUMER
from roofcast.serving.http.bulk.media import Kind, bulk_kind, wanted_kind
from roofcast.serving.http.errors import RETRY_AFTER_S, problem

JSON_TYPE = "application/json"

BODY = "roofcast.body"
"""Where in the scope a route finds the file of rows in bulk."""

MAX_DEPTH = 64
"""Deepest nesting of a body; a model's configuration takes a handful."""


class BodyLimit:
    """ASGI middleware that answers 413 to bodies over a limit, whatever their headers say, and 408 to slow ones.

    Rows in bulk may be larger. They are kept in a file and not in memory; the route finds it in the scope. All of a
    body is there before it is answered: most clients read nothing until they have sent everything. Only so many are
    taken at a time, which bounds what they need on disk, and of one caller one less, so that nobody shuts out all
    others; what is over is answered 503 before its body is read.
    """

    def __init__(self, app: ASGIApp, max_byte: int, max_s: float, max_bulk_byte: int, max_bulk_request: int) -> None:
        self.app = app
        self.max_byte = max_byte
        self.max_s = max_s
        self.max_bulk_byte = max_bulk_byte
        self.max_bulk_request = max_bulk_request
        self._bulk: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body up to the limits, then hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if bulk_kind(scope) is None:
            await self._take(scope, receive, send, is_bulk=False)
            return
        caller = scope.get(CONSUMER, "")
        if why_not := self._too_busy(caller):
            await why_not(scope, receive, send)
            return
        self._bulk[caller] += 1
        try:
            await self._take(scope, receive, send, is_bulk=True)
        finally:
            self._bulk -= Counter([caller])

    async def _take(self, scope: Scope, receive: Receive, send: Send, *, is_bulk: bool) -> None:
        with SpooledTemporaryFile(max_size=self.max_byte) as body:
            end = await self._read(scope, receive, body, self.max_bulk_byte if is_bulk else self.max_byte)
            if isinstance(end, Response):
                await end(scope, receive, send)
            elif end["type"] != "http.disconnect":  # else nobody is there to be answered
                body.seek(0)
                scope[BODY] = body
                whole = {"type": "http.request", "body": b"" if is_bulk else body.read(), "more_body": False}
                await self.app(scope, _replaying(whole, receive), send)

    def _too_busy(self, caller: str) -> Response | None:
        if self._bulk.total() >= self.max_bulk_request:
            detail = f"{self.max_bulk_request} requests in bulk are being answered, as many as are taken at a time"
        elif self._bulk[caller] >= max(1, self.max_bulk_request - 1):
            detail = (
                f"{self._bulk[caller]} requests in bulk of yours are being answered, as many as one caller may have"
            )
        else:
            return None
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", f"{detail}; ask again in {RETRY_AFTER_S} seconds")

    async def _read(self, scope: Scope, receive: Receive, body: IO[bytes], max_byte: int) -> Message | Response:
        """Return the last message of a body that was kept, or the answer to one that is not taken."""
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
                    if is_small and size > self.max_byte:  # on disk, which may be slow
                        await to_thread.run_sync(body.write, part)
                    elif is_small:
                        body.write(part)
        except TimeoutError:
            detail = f"the body has not arrived within {self.max_s:g} seconds; send it in parts"
            return problem(HTTPStatus.REQUEST_TIMEOUT, "too-slow", detail, headers={"connection": "close"})
        except OSError as error:
            detail = f"there is no room for the body: {error.strerror or error}"
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", detail)
        if not is_small:
            detail = f"the body is over {max_byte} bytes; send it in parts"
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)
        return message


def _replaying(first: Message, receive: Receive) -> Receive:
    waiting = [first]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


class _CheckedRequest(Request):
    """A request whose body has been read and checked."""

    fields: Mapping[str, Any]

    async def json(self) -> Any:
        return self.fields


class JsonRoute(APIRoute):
    """A route whose body, if it has one, is a JSON object that means one thing to every reader.

    Refused are other content types (415), also of an empty body, as a form on a foreign page sends it; and with 422
    fields given twice, NaN and infinities, numbers without end, deep nesting, NUL and half surrogate pairs.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler that checks the body first."""
        handler = super().get_route_handler()

        async def checked(request: Request) -> Response:
            body = await request.body()
            kind = request.headers.get("content-type", "")
            if (body or kind) and not _is_json(kind):
                detail = f"send the body as {JSON_TYPE}"
                raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
            if not body:
                return await handler(request)
            replacement = _CheckedRequest(request.scope, request.receive)
            replacement._body = body
            replacement.fields = read_object(body)
            return await handler(replacement)

        return checked


class BulkRoute(APIRoute):
    """A route that only rows in bulk take; the one for JSON has the same path, and describes both."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route."""
        return super().matches(scope) if bulk_kind(scope) else (Match.NONE, {})


def kind_to_answer(request: Request, default: Kind) -> Kind:
    """Return in which kind a request for predictions is to be answered, by its ``Accept``."""
    wanted = wanted_kind(request.headers.get("accept", ""), default)
    if wanted is None:
        raise HTTPException(HTTPStatus.NOT_ACCEPTABLE, f"accept one of {', '.join(Kind)}")
    return wanted


def refuse_kind(detail: str) -> None:
    """Answer 415: a body of this kind is not read."""
    raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON_TYPE or (kind.startswith("application/") and kind.endswith("+json"))


def read_object(body: bytes) -> Mapping[str, Any]:
    """Return the fields of a JSON object that comes from anyone.

    Raises
    ------
    InputError
        If it is no such object, or a text in it holds what no database or file can; names the field.

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
    if b"\\u" in body:  # the only way to write NUL or half a surrogate pair in JSON that is UTF-8
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
    waiting: list[tuple[str, Any]] = [("", fields)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str) and not is_plain(value):
            raise InputError(path, "holds a NUL or half a surrogate pair; send plain text")
        if isinstance(value, dict):
            waiting += ((path, name) for name in value if not is_plain(name))
            waiting += ((f"{path}.{name}".lstrip("."), item) for name, item in value.items())
        elif isinstance(value, list):
            waiting += ((f"{path}.{i}", item) for i, item in enumerate(value))


def is_plain(text: str) -> bool:
    """Return whether a text can be written to any file or database."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
