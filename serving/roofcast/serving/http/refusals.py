"""Refusals of the HTTP edge, each of a kind that `problem_details` maps to a status."""

from collections.abc import Mapping
from typing import Literal

from roofcast.data.errors import RoofcastError
from roofcast.serving.http.schemas.resources import Check

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
