"""The pages ``/`` and ``/docs``: own scripts and styles, and BokehJS and Swagger UI from installed packages."""

import base64
import functools
import hashlib
import re
import secrets
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.staticfiles import NotModifiedResponse

from roofcast.data.errors import UnknownNameError
from roofcast.serving.http.request_log import CSP

router = APIRouter(include_in_schema=False)

FOLDER: Final = Path(__file__).parents[1] / "page"
INDEX: Final = "index.html"

CHART_FILES: Final = ("bokeh.min.js", "bokeh-api.min.js")
"""Files of BokehJS that the page loads: models and views, and the plotting interface."""

SUFFIXES: Final = (".js", ".css")

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-$nonce'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Content security policy; a nonce admits the style elements that BokehJS makes, and nothing inline otherwise."""

HEADERS: Final = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
STATIC: Final = "/static-offline-docs"
"""Path of the files of fastapi-offline."""

_INLINE_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)

IMMUTABLE: Final = "public, max-age=31536000, immutable"


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Return Swagger UI, from the files of fastapi-offline, with a policy that admits its own script alone."""
    app, root = request.app, request.scope.get("root_path", "")
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


@router.head("/")
@router.get("/")
def index() -> Response:
    """Return the page, with a nonce of this response and the address of BokehJS."""
    nonce = secrets.token_urlsafe(16)
    text = _index_template().substitute(nonce=nonce, charts=f"page/{_chart_folder()}")
    headers = HEADERS | {CSP: Template(POLICY).substitute(nonce=nonce), "cache-control": "no-cache"}
    return Response(text, media_type="text/html", headers=headers)


@router.get("/page/{name:path}")
def file(name: str, request: Request) -> Response:
    """Return a file of the page; 304 if the client has it."""
    path = page_files().get(name)
    if path is None:
        raise UnknownNameError("file", name[:200])
    cache_control = "no-cache" if path.is_relative_to(FOLDER) else IMMUTABLE
    headers = HEADERS | {"cache-control": cache_control, "etag": _etag(path)}
    response = FileResponse(path, stat_result=path.stat(), headers=headers)
    is_known = StaticFiles().is_not_modified(response.headers, request.headers)
    return NotModifiedResponse(response.headers) if is_known else response


@functools.cache
def _etag(path: Path) -> str:
    """Return a digest of the content: files of a wheel of each version may have one date."""
    return f'"{hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()}"'


@functools.cache
def page_files() -> Mapping[str, Path]:
    """Return the files of the page by their path under ``/page/``."""
    own = {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.suffix in SUFFIXES}
    return own | {f"{_chart_folder()}/{name}": _bokeh_folder() / name for name in CHART_FILES}


@functools.cache
def _index_template() -> Template:
    return Template((FOLDER / INDEX).read_text(encoding="utf-8"))


def _chart_folder() -> str:
    return f"bokeh-{version('bokeh')}"


def _bokeh_folder() -> Path:
    spec = find_spec("bokeh")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("bokeh is not installed; install roofcast with its dependencies")
    return Path(spec.origin).parent / "server" / "static" / "js"


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
