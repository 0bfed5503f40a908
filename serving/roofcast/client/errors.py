"""Errors of the client, from the problem details (RFC 9457) of the service."""

from http import HTTPStatus
from typing import Any, Final

import httpx


class RoofcastError(Exception):
    """Base of the client's errors.

    - `detail`: What is wrong, what was expected and how to fix it.
    - `problem`: The problem details; empty if there are none.
    - `status`: HTTP status; 0 without a response.
    - `retry_after_s`: When to try again; None if unknown.
    """

    def __init__(
        self, detail: str, problem: dict[str, Any] | None = None, status: int = 0, retry_after_s: float | None = None
    ) -> None:
        super().__init__(detail, problem, status, retry_after_s)
        self.detail = detail
        self.problem = problem or {}
        self.status = status
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return self.detail

    @property
    def field(self) -> str:
        """Field at fault; empty if none is named."""
        return str(self.problem.get("field", ""))

    @property
    def problems(self) -> list[str]:
        """Each problem of the request; `detail` has all of them in one text."""
        return list(self.problem.get("problems", [])) or [self.detail]

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Each problem of a refused request in parts: `field`, `problem`, `given`, `expected`, `did_you_mean`."""
        return list(self.problem.get("errors", []))

    @property
    def did_you_mean(self) -> list[str]:
        """Known names similar to the one given."""
        return list(self.problem.get("did_you_mean", []))

    @property
    def request_id(self) -> str:
        """Id of the request in the service's log."""
        return str(self.problem.get("request_id", ""))


class InputError(RoofcastError):
    """The request is invalid: a field, its size or its media type."""


class UnknownNameError(InputError):
    """The name is unknown; `did_you_mean` lists similar ones."""


class NotAllowedError(RoofcastError):
    """The API key is missing, invalid, or lacks the scope."""


class NoAnswerError(RoofcastError):
    """The request is valid but has no answer."""


class TooManyRequestsError(RoofcastError):
    """The rate limit is reached; try again after `retry_after_s`."""


class NotReadyError(RoofcastError):
    """The service or a part of it is not ready; try again after `retry_after_s`."""


class ServiceError(RoofcastError):
    """Internal error of the service; its log has the traceback under `request_id`."""


class UnreachableError(RoofcastError):
    """No complete response arrived."""


_ERRORS: Final[dict[int, type[RoofcastError]]] = {
    HTTPStatus.UNAUTHORIZED: NotAllowedError,
    HTTPStatus.FORBIDDEN: NotAllowedError,
    HTTPStatus.NOT_FOUND: UnknownNameError,
    HTTPStatus.CONFLICT: NoAnswerError,
    HTTPStatus.TOO_MANY_REQUESTS: TooManyRequestsError,
    HTTPStatus.SERVICE_UNAVAILABLE: NotReadyError,
}


def error_of(response: httpx.Response) -> RoofcastError:
    """Return the error of a response without success; its body must have been read."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    status = response.status_code
    error_class = _ERRORS.get(status, InputError if 400 <= status < 500 else ServiceError)
    wait = response.headers.get("retry-after", "")
    detail = str(problem.get("detail") or f"{status} {response.reason_phrase}")
    return error_class(detail, problem, status, float(wait) if wait.isdecimal() else None)
