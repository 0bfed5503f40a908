"""What a service answers when it does not answer: problem details of RFC 9457 as exceptions."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import httpx


class RoofcastError(Exception):
    """Base of all that the client raises.

    Parameters
    ----------
    detail
        What was wanted, what was got and how to mend it.
    problem
        The problem details, empty if there are none.
    status
        HTTP status; 0 if no answer came.
    retry_after_s
        When to ask again, None if it is not said.
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
        """Field that is to be mended; blank if none is named."""
        return str(self.problem.get("field", ""))

    @property
    def did_you_mean(self) -> list[str]:
        """Names that are known and look like the one given."""
        return list(self.problem.get("did_you_mean", []))

    @property
    def request_id(self) -> str:
        """By which the service's log knows the request."""
        return str(self.problem.get("request_id", ""))


class InputError(RoofcastError):
    """The request is to be mended: its fields, its size or its kind."""


class UnknownNameError(InputError):
    """Nothing of that name is known; `did_you_mean` lists what looks like it."""


class NotAllowedError(RoofcastError):
    """A key is missing, is not valid, or may not do this."""


class NoAnswerError(RoofcastError):
    """The question is sound but has no answer."""


class TooManyRequestsError(RoofcastError):
    """Asked too often; `retry_after_s` says when to ask again."""


class NotReadyError(RoofcastError):
    """The service, or what this takes, is not ready; `retry_after_s` says when to ask again."""


class ServiceError(RoofcastError):
    """A fault of the service, whose log knows the `request_id`."""


class UnreachableError(RoofcastError):
    """No answer came, or not all of it."""


_ERRORS: Final[dict[int, type[RoofcastError]]] = {
    HTTPStatus.UNAUTHORIZED: NotAllowedError,
    HTTPStatus.FORBIDDEN: NotAllowedError,
    HTTPStatus.NOT_FOUND: UnknownNameError,
    HTTPStatus.CONFLICT: NoAnswerError,
    HTTPStatus.TOO_MANY_REQUESTS: TooManyRequestsError,
    HTTPStatus.SERVICE_UNAVAILABLE: NotReadyError,
}


def error_of(response: httpx.Response) -> RoofcastError:
    """Return what an answer that is no success is raised as; its body must have been read."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    status = response.status_code
    kind = _ERRORS.get(status, InputError if 400 <= status < 500 else ServiceError)
    wait = response.headers.get("retry-after", "")
    detail = str(problem.get("detail") or f"{status} {response.reason_phrase}")
    return kind(detail, problem, status, float(wait) if wait.isdecimal() else None)
