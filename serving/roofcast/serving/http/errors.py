"""The one place where errors become HTTP statuses: problem details as of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from asgi_correlation_id import correlation_id
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from roofcast.data.errors import InputError, NoAnswerError, NotReadyError, RoofcastError, UnknownNameError
from roofcast.serving.http.schemas.resources import Check, ProblemResponse

STATUS_OF: Final[tuple[tuple[type[RoofcastError], HTTPStatus, str], ...]] = (
    (UnknownNameError, HTTPStatus.NOT_FOUND, "unknown-name"),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-input"),
    (NoAnswerError, HTTPStatus.CONFLICT, "no-answer"),
    (NotReadyError, HTTPStatus.SERVICE_UNAVAILABLE, "not-ready"),
)
"""First match wins: subclasses stand before their bases."""

LISTS: Final = {"accelerator": "/v1/accelerators", "model": "/v1/models"}
"""Where the names are that a field may have, by its last part."""

PROBLEM_TYPE: Final = "application/problem+json"
REQUEST_ID_HEADER: Final = "X-Request-ID"
RETRY_AFTER_S: Final = 5
RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    int(status): {"model": ProblemResponse, "description": status.phrase}
    for status in (
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.CONFLICT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
    )
}


def problem(
    status: HTTPStatus,
    kind: str,
    detail: str,
    field: str = "",
    did_you_mean: Sequence[str] = (),
    *,
    headers: Mapping[str, str] | None = None,
    checks: Mapping[str, Check] | None = None,
) -> JSONResponse:
    """Return a problem response; text that no UTF-8 can hold is escaped."""
    body = ProblemResponse(
        type=f"urn:roofcast:problem:{kind}",
        title=status.phrase,
        status=int(status),
        detail=_printable(detail),
        field=_printable(field),
        did_you_mean=[_printable(name) for name in did_you_mean],
        request_id=correlation_id.get() or "",
        checks=dict(checks) if checks else None,
    )
    later = {"retry-after": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return JSONResponse(
        body.model_dump(exclude_none=True), int(status), {**later, **(headers or {})}, media_type=PROBLEM_TYPE
    )


def problem_of(error: RoofcastError) -> JSONResponse:
    """Return what an error is over HTTP; one that nothing stands for is raised."""
    for kind, status, name in STATUS_OF:
        if isinstance(error, kind):
            return problem(status, name, _told(error), getattr(error, "field", ""), getattr(error, "near", ()))
    raise error


def _told(error: RoofcastError) -> str:
    """Return an error in words; of a name that nothing looks like, also where the list is."""
    if isinstance(error, UnknownNameError) and not error.near:
        place = LISTS.get(error.field.rpartition(".")[2])
        return f"{error}; GET {place} lists what is" if place else str(error)
    return str(error)


def _printable(text: str, limit: int = 1000) -> str:
    return text[:limit].encode("utf-8", "backslashreplace").decode("utf-8")


def install_handlers(app: FastAPI) -> None:
    """Answer every error with a problem; of one that nobody expected the traceback is logged, and not told."""
    app.add_exception_handler(RoofcastError, _on_roofcast_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_bug)


async def _on_roofcast_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RoofcastError)  # noqa: S101  (what the handler is registered for)
    return problem_of(error)


async def _on_validation_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101  (what the handler is registered for)
    first = error.errors()[0]
    place, *path = first["loc"]
    field = _field(path, error.body) if place == "body" else ".".join(map(str, path))
    message = str(first["msg"]).removeprefix("Value error, ")
    detail = f"{field or 'body'}: {message[:1].lower()}{message[1:]}"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-input", detail, field)


def _field(path: Sequence[str | int], body: Any) -> str:
    """Return where in the body an error is; parts of pydantic's path that name a type and no field are left out."""
    names: list[str] = []
    value = body
    for position, part in enumerate(path):
        is_field = isinstance(value, Mapping) and (part in value or position == len(path) - 1)
        if is_field or (isinstance(value, list) and isinstance(part, int)):
            names.append(str(part))
            value = value.get(part) if isinstance(value, Mapping) else value[part]
    return ".".join(names)


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101  (what the handler is registered for)
    status = HTTPStatus(error.status_code)
    answer = problem(status, status.phrase.lower().replace(" ", "-"), str(error.detail))
    answer.headers.update(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        answer.headers["allow"] = _allowed(request, answer.headers.get("allow", ""))
    return answer


def _allowed(request: Request, told: str) -> str:
    """Return the methods of every route that has a path; the framework tells of the first route's alone."""
    path = getattr(request.scope.get("route"), "path", "")
    documented = map(str.upper, request.app.openapi()["paths"].get(path, ()))
    return ", ".join(sorted({*filter(None, told.split(", ")), *documented}))


async def _on_bug(_request: Request, _error: Exception) -> JSONResponse:
    detail = "this is a fault of the service; its log says more"
    answer = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "bug", detail)
    if request_id := correlation_id.get():  # this answer is made outside the middleware that gives it to the others
        answer.headers[REQUEST_ID_HEADER] = request_id
    return answer


def describe_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI document with the errors' true media type."""
    for path in document["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if status in map(str, RESPONSES) and "content" in response:
                    response["content"] = {PROBLEM_TYPE: next(iter(response["content"].values()))}
    return document
