"""Headers that limit what a browser does with a response, and the page ``/docs``."""

import base64
import hashlib
import re
from contextlib import suppress
from typing import Final

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roofcast.serving.abandonment import AbandonedError
from roofcast.serving.http.access import RATE_HEADERS

CSP: Final = "content-security-policy"
DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
"""Policy of responses that are no page: a browser that shows one runs and loads nothing."""

DOCS: Final = "/docs"
STATIC: Final = "/static-offline-docs"

_INLINE_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class SafeResponses:
    """ASGI middleware that sets ``nosniff``, a content security policy and the rate limit of every response.

    Nobody waits for the response of a request whose client left, so none is sent.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application with a `send` that adds the headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers.setdefault(CSP, DATA_POLICY)
                headers.update(scope.get(RATE_HEADERS, {}))
            await send(message)

        with suppress(AbandonedError, ClientDisconnect):
            await self.app(scope, receive, send_with_headers)


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
