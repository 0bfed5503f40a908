"""Headers that limit what a browser does with a response, the page ``/docs``, and ambiguous requests."""

from __future__ import annotations

import base64
import hashlib
import re
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.serving.http.errors import problem_response

CSP: Final = "content-security-policy"
DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
"""Policy of responses that are no page: a browser that shows one runs and loads nothing."""

DOCS: Final = "/docs"
STATIC: Final = "/static-offline-docs"

_INLINE_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class SafeResponses:
    """ASGI middleware that sets ``nosniff`` and a content security policy, and refuses ambiguous requests.

    A request with both ``Content-Length`` and ``Transfer-Encoding`` may end elsewhere for a proxy than here: a second
    request could hide in the body of the first (RFC 9112, section 6.1). One without a ``Host``, or with two, may be
    meant for another server (section 3.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application with a `send` that adds the headers."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers.setdefault(CSP, DATA_POLICY)
            await send(message)

        if problem := _ambiguity(scope):
            response = problem_response(
                HTTPStatus.BAD_REQUEST, "bad-request", problem, headers={"connection": "close"}
            )
            await response(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)


def _ambiguity(scope: Scope) -> str:
    """Return what is ambiguous in a request; a blank if nothing is."""
    headers = Headers(scope=scope)
    if "content-length" in headers and "transfer-encoding" in headers:
        return "send either content-length or transfer-encoding, not both"
    n_host = len(headers.getlist("host"))
    if n_host > 1 or (n_host == 0 and scope["http_version"] != "1.0"):
        return f"send one host header, not {n_host}"
    return ""


def serve_docs(app: FastAPI) -> None:
    """Add the page ``/docs``, from the files of fastapi-offline, with a policy that admits its own script alone."""

    @app.get(DOCS, include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        root = request.scope.get("root_path", "")
        page = get_swagger_ui_html(
            openapi_url=f"{root}{app.openapi_url}",
            title=f"{app.title} - Swagger UI",
            swagger_js_url=f"{root}{STATIC}/swagger-ui-bundle.js",
            swagger_css_url=f"{root}{STATIC}/swagger-ui.css",
            swagger_favicon_url=f"{root}{STATIC}/favicon.png",
            swagger_ui_parameters=app.swagger_ui_parameters,
        )
        page.headers[CSP] = docs_policy(bytes(page.body))
        return page


def docs_policy(page: bytes) -> str:
    """Return the content security policy of a page of Swagger UI, whose inline scripts it names by their hashes.

    Examples
    --------
    >>> docs_policy(b"<script>a</script>").split("; ")[1]
    "script-src 'self' 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='"
    """
    digests = (hashlib.sha256(script).digest() for script in _INLINE_SCRIPT.findall(page))
    scripts = " ".join(["'self'", *(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
