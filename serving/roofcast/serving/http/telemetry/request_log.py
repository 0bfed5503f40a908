"""One line in the log and one observation for each request."""

from __future__ import annotations

import logging
import re
import time
from typing import Final
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.data.units import ms_from_s
from roofcast.serving.http.auth import CONSUMER
from roofcast.serving.http.telemetry.prometheus import REQUEST_SECONDS

logger = logging.getLogger("roofcast.access")

OTHER: Final = "other"
"""Stands for every path that no route has, and every method that HTTP does not know."""

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked by machines every few seconds; logged only when something is wrong."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")

CLIENT_LEFT: Final = 499
MAX_PATH: Final = 200


def is_request_id(text: str) -> bool:
    """Return whether a caller's id of a request is fit for logs; others are replaced.

    Examples
    --------
    >>> is_request_id("build-7:3"), is_request_id("a b")
    (True, False)
    """
    return _REQUEST_ID.fullmatch(text) is not None


class Observation:
    """ASGI middleware that logs and measures; neither body, query nor header of a request is logged."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and watch what becomes of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = CLIENT_LEFT

        async def watching(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        started = time.perf_counter()
        try:
            await self.app(scope, receive, watching)
        except Exception:
            status = 500
            raise
        finally:
            _tell(scope, status, time.perf_counter() - started)


def _tell(scope: Scope, status: int, took_s: float) -> None:
    route = getattr(scope.get("route"), "path", OTHER)
    method = scope["method"] if scope["method"] in METHODS else OTHER
    REQUEST_SECONDS.labels(method, route, str(status)).observe(took_s)
    level = logging.DEBUG if route in QUIET and status < 400 else logging.INFO
    if logger.isEnabledFor(level):
        took_ms = round(ms_from_s(took_s), 2)
        path = quote(scope["path"])[:MAX_PATH]
        fields = {"method": method, "path": path, "route": route, "status": status, "took_ms": took_ms}
        fields["caller"] = scope.get(CONSUMER, "")
        logger.log(level, "%s %s %d in %g ms for %s", method, path, status, took_ms, fields["caller"], extra=fields)
