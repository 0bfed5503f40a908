"""Refusals of the HTTP edge, statuses and problem details (RFC 9457) of all errors.

No other module names a status of an error.
"""

import errno
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Literal, get_args

from asgi_correlation_id import correlation_id
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from roofcast.data.errors import (
    InputError,
    NoAnswerError,
    NotAllowedError,
    NotReadyError,
    RoofcastError,
    UnknownNameError,
    join_errors,
)
from roofcast.data.measurements.column_names import column_cure, same_columns, similar_columns
from roofcast.features.columns import ENGINES
from roofcast.serving.composition import Service
from roofcast.serving.http.schemas.resources import Check, FieldError, ProblemResponse
from roofcast.serving.recommend.api.request_errors import request_errors
from roofcast.serving.request_fields import part_errors

Kind = Literal[
    "bad-request", "no-key", "wrong-scope", "not-acceptable", "too-slow", "too-large", "unsupported-media-type",
    "too-many-requests", "busy", "not-ready",
]  # fmt: skip


class RefusedError(RoofcastError):
    """A request that is refused whatever its fields mean.

    `kind`: kind of the problem, the end of its type. `checks`: state of the parts of a service that is not ready.
    """

    def __init__(
        self,
        kind: Kind,
        detail: str,
        headers: Mapping[str, str] | None = None,
        *,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.headers = dict(headers or {})
        self.checks = checks


def busy_error(problem: str, retry_after_s: int) -> RefusedError:
    """Return the refusal of a request that the service has no room for."""
    unit = "second" if retry_after_s == 1 else "seconds"
    detail = f"the service is busy: {problem}; try again in {retry_after_s} {unit}"
    return RefusedError("busy", detail, {"retry-after": str(retry_after_s)})


STATUS_OF: Final[tuple[tuple[type[RoofcastError], HTTPStatus, str], ...]] = (
    (UnknownNameError, HTTPStatus.NOT_FOUND, "unknown-name"),
    (NotAllowedError, HTTPStatus.FORBIDDEN, "not-allowed"),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-input"),
    (NoAnswerError, HTTPStatus.CONFLICT, "no-answer"),
    (NotReadyError, HTTPStatus.SERVICE_UNAVAILABLE, "not-ready"),
)
"""Status and problem type by error class; the first match counts, so subclasses come before their bases."""

STATUS_OF_KIND: Final[Mapping[Kind, HTTPStatus]] = {
    "bad-request": HTTPStatus.BAD_REQUEST,
    "no-key": HTTPStatus.UNAUTHORIZED,
    "wrong-scope": HTTPStatus.FORBIDDEN,
    "not-acceptable": HTTPStatus.NOT_ACCEPTABLE,
    "too-slow": HTTPStatus.REQUEST_TIMEOUT,
    "too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unsupported-media-type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "too-many-requests": HTTPStatus.TOO_MANY_REQUESTS,
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "not-ready": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Status of each kind of refusal."""

CLIENT_CLOSED: Final = 499
"""Status in the log of a request whose client left."""

FIRST_ERROR: Final = 400
"""Smallest status of an error."""

BUG: Final = int(HTTPStatus.INTERNAL_SERVER_ERROR)

FULL_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

LISTS: Final = {"accelerator": "/v1/accelerators", "model": "/v1/models"}
"""Routes that list the valid names of a field, by the field's last part."""

CHOICES: Final = frozenset({"/v1/recommendations", "/v1/training/recommendations"})
"""Routes whose requests name what to choose from: an invalid one has the errors of its names too."""

PROBLEM_TYPE: Final = "application/problem+json"
REQUEST_ID_HEADER: Final = "X-Request-ID"
RETRY_AFTER_S: Final = 5
"""`Retry-After` of a service that is not ready, and of bulk requests, which take seconds."""

RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    int(status): {"model": ProblemResponse, "description": status.phrase}
    for status in sorted({*STATUS_OF_KIND.values(), *(status for _, status, _ in STATUS_OF)})
    if status != HTTPStatus.NOT_ACCEPTABLE
}
"""Responses of every route; one that negotiates its media type has `NOT_ACCEPTABLE` too."""


NOT_ACCEPTABLE: Final[dict[int | str, dict[str, Any]]] = {
    int(HTTPStatus.NOT_ACCEPTABLE): {
        "description": HTTPStatus.NOT_ACCEPTABLE.phrase,
        "content": {PROBLEM_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemResponse.__name__}"}}},
    }
}

MAX_LISTED: Final = 30
"""Problems of one request that a response lists."""

MAX_PART: Final = 60
"""Parts of a request that are explained; a request may have a wrong part for each of its bytes."""


def problem_response(
    status: HTTPStatus,
    kind: str,
    detail: str,
    field: str = "",
    did_you_mean: Sequence[str] = (),
    *,
    errors: Sequence[InputError] = (),
    headers: Mapping[str, str] | None = None,
    checks: Mapping[str, Check] | None = None,
) -> JSONResponse:
    """Return problem details as a response; characters that UTF-8 cannot encode are escaped."""
    body = ProblemResponse(
        type=f"urn:roofcast:problem:{kind}",
        title=status.phrase,
        status=int(status),
        detail=_printable(detail),
        problems=[_printable(one.message) for one in errors[:MAX_LISTED]] if len(errors) > 1 else [],
        errors=[_field_error(one) for one in errors[:MAX_LISTED]],
        field=_printable(field),
        did_you_mean=[_printable(name) for name in did_you_mean],
        request_id=correlation_id.get() or "",
        checks=dict(checks) if checks else None,
    )
    retry = {"retry-after": str(RETRY_AFTER_S)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return JSONResponse(
        body.model_dump(exclude_none=True), int(status), {**retry, **(headers or {})}, media_type=PROBLEM_TYPE
    )


def error_response(error: RoofcastError) -> JSONResponse:
    """Return the response to an error; an error without a status is raised."""
    if isinstance(error, RefusedError):
        status = STATUS_OF_KIND[error.kind]
        return problem_response(status, error.kind, str(error), headers=error.headers, checks=error.checks)
    for error_class, status, kind in STATUS_OF:
        if isinstance(error, error_class):
            detail, field, near = _detail(error), getattr(error, "field", ""), getattr(error, "near", ())
            errors = error.all if isinstance(error, InputError) else ()
            return problem_response(status, kind, detail, field, near, errors=errors)
    raise error


def _detail(error: RoofcastError) -> str:
    if isinstance(error, UnknownNameError) and not error.near:
        route = LISTS.get(error.field.rpartition(".")[2])
        return f"{error}; GET {route} lists the known names" if route else str(error)
    return str(error)


def _field_error(error: InputError) -> FieldError:
    return FieldError(
        field=_printable(error.field),
        problem=_printable(error.problem),
        given=None if error.given is None else _printable(error.given),
        expected=error.expected,
        did_you_mean=[_printable(name) for name in error.near],
        mentions=[*error.mentions],
        source=_printable(getattr(error, "source", "")),
        line=getattr(error, "line", 0),
    )


def _printable(text: str, limit: int = 1000) -> str:
    return text[:limit].encode("utf-8", "backslashreplace").decode("utf-8")


FLAT_ROW: Final = 'must be a list; put this row into it: {"rows": [{"model": ..., "accelerator": ...}]}'
"""What is wrong with a row that stands alone."""


def install_handlers(app: FastAPI) -> None:
    """Register the handlers that turn every error into problem details; unexpected errors are logged, not shown."""
    app.add_exception_handler(RoofcastError, _on_roofcast_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(OSError, _on_system_error)
    app.add_exception_handler(Exception, _on_bug)


async def _on_roofcast_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RoofcastError)  # noqa: S101  (as registered)
    return error_response(error)


def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101  (as registered)
    parts = sorted(error.errors(), key=lambda part: part["type"] != "extra_forbidden")[:MAX_PART]  # why others miss
    if any(part["type"] == "missing" and part["loc"] == ("body", "rows") for part in parts) and _is_row(error.body):
        return error_response(InputError("rows", FLAT_ROW))
    errors = [one for part in parts for one in _input_errors(part, request, error.body)]
    is_bounded = not any(part["type"].endswith("too_long") for part in parts)
    if request.scope["route"].path in CHOICES and isinstance(error.body, Mapping) and is_bounded:
        service: Service = request.app.state.service
        errors += request_errors(error.body, service.catalog, ENGINES)
    return error_response(join_errors(errors))


def _is_row(body: object) -> bool:
    return isinstance(body, Mapping) and {"model", "accelerator"} <= body.keys()


def _input_errors(part: Mapping[str, Any], request: Request, body: Any) -> list[InputError]:
    place, *path = part["loc"]
    field = _field(path, body) if place == "body" else ".".join(map(str, path))
    if part["type"] == "extra_forbidden" and place == "body":
        cure, near = _field_cure(str(path[-1]), _models_at(request, path))
        error = InputError(field, f"is not a field here; {cure}")
        error.near = near
        return [error]
    return part_errors(part, field)


def _field_cure(name: str, models: Sequence[type[BaseModel]]) -> tuple[str, list[str]]:
    fields = {one: field for model in models for one, field in model.model_fields.items()}
    within = {
        inner: f"{outer}.{inner}"
        for outer, field in fields.items()
        for model in _models_in(field.annotation)
        for inner in model.model_fields
    }
    if not same_columns(name, fields) and (same := [within[one] for one in same_columns(name, within)]):
        return f"did you mean {' or '.join(same)}?", same
    return column_cure(name, [*fields]), similar_columns(name, fields)


def _models_at(request: Request, path: Sequence[str | int]) -> list[type[BaseModel]]:
    models = _models_in(request.scope["route"].body_field.field_info.annotation)
    for part in path[:-1]:
        fields = [model.model_fields[str(part)] for model in models if part in model.model_fields]
        models = [inner for field in fields for inner in _models_in(field.annotation)] or models
    return models


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _field(path: Sequence[str | int], body: Any) -> str:
    names: list[str] = []
    value = body
    for position, part in enumerate(path):
        is_field = isinstance(value, Mapping) and (part in value or position == len(path) - 1)
        if is_field or (isinstance(value, list) and isinstance(part, int)):
            names.append(str(part))
            value = value.get(part) if isinstance(value, Mapping) else value[part]
    return ".".join(names)


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101  (as registered)
    status = HTTPStatus(error.status_code)
    response = problem_response(status, status.phrase.lower().replace(" ", "-"), str(error.detail))
    response.headers.update(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["allow"] = _allowed_methods(request, response.headers.get("allow", ""))
    return response


async def _on_system_error(_: Request, error: Exception) -> JSONResponse:
    if getattr(error, "errno", None) not in FULL_DISK:
        raise error
    return error_response(NotReadyError("a disk of the service is full; try again later"))


def _allowed_methods(request: Request, allow: str) -> str:
    path = getattr(request.scope.get("route"), "path", "")
    documented = map(str.upper, request.app.openapi()["paths"].get(path, ()))
    return ", ".join(sorted({*filter(None, allow.split(", ")), *documented}))


async def _on_bug(_request: Request, _error: Exception) -> JSONResponse:
    detail = "internal error; the service's log has the traceback under this request id"
    response = problem_response(HTTPStatus.INTERNAL_SERVER_ERROR, "bug", detail)
    if request_id := correlation_id.get():  # this response does not pass the middleware that adds the header
        response.headers[REQUEST_ID_HEADER] = request_id
    return response


def describe_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI document with the media type of problem details."""
    for path in document["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if status in map(str, RESPONSES) and "content" in response:
                    response["content"] = {PROBLEM_TYPE: next(iter(response["content"].values()))}
    return document
