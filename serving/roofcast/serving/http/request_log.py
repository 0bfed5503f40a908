"""Request log and headers of responses: one log line and one observation of the duration per request."""

import logging
import re
import time
from contextlib import suppress
from typing import Final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.data.units import ms_from_s
from roofcast.serving.abandonment import AbandonedError
from roofcast.serving.http.access import CALLER, RATE_HEADERS
from roofcast.serving.http.problem_details import BUG, CLIENT_CLOSED, FIRST_ERROR
from roofcast.serving.http.telemetry.prometheus import REQUEST_SECONDS

logger = logging.getLogger("roofcast.access")

OTHER: Final = "other"
"""Label of paths without a route and of methods unknown to HTTP."""

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes that are polled every few seconds; only their errors are logged at INFO."""

MAX_PATH: Final = 200

CSP: Final = "content-security-policy"
DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
"""Policy of responses that are no page: a browser that shows one runs and loads nothing."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def is_request_id(text: str) -> bool:
    """Return whether a caller's request id is safe to log; others are replaced.

    Examples
    --------
    >>> is_request_id("build-7:3"), is_request_id("a b")
    (True, False)
    """
    return _REQUEST_ID.fullmatch(text) is not None


class RequestLog:
    """ASGI middleware that logs and measures requests; bodies, queries and headers are never logged.

    It sets ``nosniff``, a content security policy and the rate limit of every response. Nobody waits for the response
    of a request whose client left, so none is sent.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, then log the request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = CLIENT_CLOSED

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers.setdefault(CSP, DATA_POLICY)
                headers.update(scope.get(RATE_HEADERS, {}))
            await send(message)

        start, bug = time.perf_counter(), None
        try:
            with suppress(AbandonedError, ClientDisconnect):
                await self.app(scope, receive, send_with_headers)
        except Exception as error:
            status, bug = BUG, error
            raise
        finally:
            _log(scope, status, time.perf_counter() - start, bug)


def _log(scope: Scope, status: int, duration_s: float, bug: Exception | None) -> None:
    route = getattr(scope.get("route"), "path", OTHER)
    method = scope["method"] if scope["method"] in METHODS else OTHER
    REQUEST_SECONDS.labels(method, route, str(status)).observe(duration_s)
    is_quiet = route in QUIET and status < FIRST_ERROR
    level = logging.ERROR if bug else logging.DEBUG if is_quiet else logging.INFO
    if logger.isEnabledFor(level):
        took_ms = round(ms_from_s(duration_s), 2)
        path = quote(scope["path"])[:MAX_PATH]
        fields = {"method": method, "path": path, "route": route, "status": status, "took_ms": took_ms}
        fields["caller"] = scope.get(CALLER, "")
        values = method, path, status, took_ms, fields["caller"]
        logger.log(level, "%s %s %d in %g ms for %s", *values, extra=fields, exc_info=bug)
