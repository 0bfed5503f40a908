"""The page at ``/``: a form for recommendations in the browser, which uses the public API."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Response

router = APIRouter(include_in_schema=False)

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


@router.head("/")
@router.get("/")
def index() -> Response:
    """Return the page."""
    return _file("index.html", "text/html")


@router.get("/page.js")
def script() -> Response:
    """Return the page's script."""
    return _file("page.js", "text/javascript")


@router.get("/page.css")
def style() -> Response:
    """Return the page's style."""
    return _file("page.css", "text/css")


def _file(name: str, kind: str) -> Response:
    content = files("roofcast.serving.http").joinpath("page", name).read_bytes()
    return Response(content, media_type=kind, headers=HEADERS)
