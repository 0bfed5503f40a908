"""A service with the shipped predictor in a process of its own, and Debian's Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.conditions import wait_until
from tests.serving.http.test_serve import answers, free_port
from tests.slow.page.tabs import PATIENCE_MS, PHONE, WIDE, Service, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

sync_api = pytest.importorskip("playwright.sync_api")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home, port = tmp_path_factory.mktemp("service"), free_port()
    main = "from roofcast.serving.cli.app import main; main()"
    environment = {**os.environ, "ROOFCAST_HOME": str(home), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", main, "serve", "--port", str(port)], env=environment)  # noqa: S603
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/readyz", process))
        yield Service(url, home)
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    yield from _open(browser, WIDE)


@pytest.fixture
def phone(browser: Browser) -> Iterator[Tab]:
    yield from _open(browser, PHONE)


def _open(browser: Browser, size: ViewportSize) -> Iterator[Tab]:
    context = browser.new_context(viewport=size)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    opened = Tab(page)
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.on("console", lambda message: _note(opened, message.type, message.text))
    yield opened
    context.close()
    assert opened.errors == []


def _note(opened: Tab, kind: str, text: str) -> None:
    if kind == "error" and "status of" not in text and "ERR_" not in text:
        opened.errors.append(text)
