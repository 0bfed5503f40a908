"""The page at ``/``: all its files come from the service, none allows code or styles inside it."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.http.routes.page import CHART_FILES, FOLDER, page_files

LINK = re.compile(r'(?:href|src)="([^"#]+)"')
IMPORT = re.compile(r'^import [^;]*?from "([^"]+)";', re.MULTILINE)
SCRIPTS = sorted(FOLDER.rglob("*.js"))
MAX_BYTE = 5_000_000
MAX_LINE = 300


class Service:
    """An application that has not started: the page needs neither store nor predictor."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(request())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """Return a client of an application that has not started: the page needs no predictor."""
    return Service(create_app(Settings(home=tmp_path_factory.mktemp("page"))))


def test_the_page_and_its_links_come_from_the_service(service: Service) -> None:
    page = service.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in set(LINK.findall(page.text)) - {"data:,"}:
        assert service.get(f"/{name}").status_code == 200
    assert service.get("/", "HEAD").status_code == 200


def test_the_charts_come_from_the_installed_package(service: Service) -> None:
    (folder,) = re.findall(r'data-charts="([^"]+)"', service.get("/").text)
    for name in CHART_FILES:
        answer = service.get(f"/{folder}/{name}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_the_content_security_policy_admits_only_own_files(service: Service) -> None:
    first, second = service.get("/"), service.get("/")
    policy = first.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-")
    assert "unsafe" not in policy
    assert policy != second.headers["content-security-policy"]
    (nonce,) = re.findall(r'nonce="([^"]+)"', first.text)
    assert f"'nonce-{nonce}'" in policy
    assert first.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", [*SCRIPTS, *sorted(FOLDER.rglob("*.css")), FOLDER / "index.html"], ids=lambda p: p.name
)
def test_files_hold_no_address_and_no_inline_code(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacentHTML|\bon\w+=\"|\beval\(|\bstyle=", text)
    assert len(text.splitlines()) <= MAX_LINE


def test_imports_of_the_scripts_exist(service: Service) -> None:
    for script in SCRIPTS:
        for name in IMPORT.findall(script.read_text()):
            target = (script.parent / name).resolve().relative_to(FOLDER)
            assert service.get(f"/page/{target}").status_code == 200, (script, name)


def test_routes_in_the_scripts_exist(service: Service) -> None:
    paths = set(service.get("/openapi.json").json()["paths"])
    for script in SCRIPTS:
        for path in re.findall(r'ask\("(v1/[\w/-]+)"', script.read_text()):
            assert f"/{path}" in paths, (script, path)


def test_a_file_is_sent_once(service: Service) -> None:
    etag = service.get("/page/main.js").headers["etag"]
    again = service.get("/page/main.js", **{"if-none-match": etag})
    assert again.status_code == 304
    assert not again.content


@pytest.mark.parametrize("name", ["../app.py", "index.html", "no.js", "bokeh-0/bokeh.min.js"])
def test_other_files_are_not_served(service: Service, name: str) -> None:
    assert service.get(f"/page/{name}").status_code == 404


def test_the_assets_are_small() -> None:
    assert sum(file.stat().st_size for file in page_files().values()) < MAX_BYTE
