"""The one place where errors become HTTP statuses: problem details as of RFC 9457."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.data.errors import InputError, NoAnswerError, NotReadyError, RoofcastError, UnknownNameError
from roofcast.serving.schemas import ProblemResponse

STATUS_OF: Final[tuple[tuple[type[RoofcastError], HTTPStatus, str], ...]] = (
    (UnknownNameError, HTTPStatus.NOT_FOUND, "unknown-name"),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-input"),
    (NoAnswerError, HTTPStatus.CONFLICT, "no-answer"),
    (NotReadyError, HTTPStatus.SERVICE_UNAVAILABLE, "not-ready"),
)
"""First match wins: subclasses stand before their bases."""

RETRY_AFTER_S: Final = 5
RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    int(status): {"model": ProblemResponse, "description": status.phrase}
    for status in (
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.SERVICE_UNAVAILABLE,
    )
}


def problem(
    status: HTTPStatus, kind: str, detail: str, field: str = "", did_you_mean: tuple[str, ...] = ()
) -> JSONResponse:
    """Return a problem response; text that no UTF-8 can hold is escaped."""
    body = ProblemResponse(
        type=f"urn:roofcast:problem:{kind}",
        title=status.phrase,
        status=int(status),
        detail=_printable(detail),
        field=_printable(field),
        did_you_mean=[_printable(name) for name in did_you_mean],
    )
    headers = {"retry-after": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    return JSONResponse(body.model_dump(), int(status), headers, media_type="application/problem+json")


def _printable(text: str, limit: int = 1000) -> str:
    return text[:limit].encode("utf-8", "backslashreplace").decode("utf-8")


def install_handlers(app: FastAPI) -> None:
    """Answer every expected error with a problem."""
    app.add_exception_handler(RoofcastError, _on_roofcast_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_roofcast_error(_: Request, error: Exception) -> JSONResponse:
    for kind, status, name in STATUS_OF:
        if isinstance(error, kind):
            near = tuple(getattr(error, "near", ()))
            return problem(status, name, str(error), str(getattr(error, "field", "")), near)
    raise error


async def _on_validation_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101  (what the handler is registered for)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "json_invalid":
        detail = (
            f"the body is not JSON: {first.get('ctx', {}).get('error', first['msg'])} at character {first['loc'][-1]}"
        )
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-input", detail)
    message = str(first["msg"]).removeprefix("Value error, ")
    detail = f"{field or 'body'}: {message[:1].lower()}{message[1:]}"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-input", detail, field)


async def _on_http_exception(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101  (what the handler is registered for)
    status = HTTPStatus(error.status_code)
    return problem(status, status.phrase.lower().replace(" ", "-"), str(error.detail))


class BodyLimit:
    """ASGI middleware that answers 413 to bodies over a limit, whatever their headers say."""

    def __init__(self, app: ASGIApp, max_byte: int) -> None:
        self.app = app
        self.max_byte = max_byte

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body up to the limit, then hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        chunks: list[Message] = []
        size = 0
        more = True
        while more:
            message = await receive()
            chunks.append(message)
            size += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
            if size > self.max_byte:
                detail = f"the body is over {self.max_byte} bytes; send fewer rows at a time"
                await problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)(scope, receive, send)
                return

        async def replay() -> Message:
            return chunks.pop(0) if chunks else await receive()

        await self.app(scope, replay, send)
