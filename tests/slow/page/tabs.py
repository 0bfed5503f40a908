"""A running service and a tab of a browser."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from roofcast.data.store.api_keys import KeyStore, Scope
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, ViewportSize

WIDE: Final[ViewportSize] = {"width": 1440, "height": 900}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
PATIENCE_MS: Final = 120_000
READY: Final = {
    "recommend": "#recommend .card.first", "predictor": "#predictor .canvas[data-drawn]",
    "measurements": "#measurements .drop",
    "training": "#training-results[aria-busy=false] #training-answer > *",
}  # fmt: skip
"""What each view shows once it is answered."""


@dataclass
class Service:
    url: str
    home: Path

    def key(self, scope: Scope) -> str:
        state = build_service(Settings(home=self.home))
        secret = KeyStore(state.store.database).create(f"{scope}-{os.urandom(4).hex()}", scope, None)[1]
        state.store.close()
        return secret

    def post(self, path: str, body: dict[str, Any], key: str) -> None:
        """Send a request as a client besides the page does."""
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), headers)  # noqa: S310
        urllib.request.urlopen(request).close()  # noqa: S310


@dataclass
class Tab:
    """A page with what it reported: errors of scripts, and what the content security policy blocked."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def go(self, service: Service, view: str = "recommend", request: object = None) -> None:
        """Open a view, with the question of a link if there is one."""
        query = f"?q={quote(json.dumps(request))}" if request else ""
        self.page.goto(f"{service.url}/#/{view}{query}")

    def open(self, service: Service, view: str = "recommend", request: object = None) -> None:
        """Open a view and wait for its answer."""
        self.go(service, view, request)
        self.page.locator(READY[view]).first.wait_for()

    def change_answers(self, address: str, change: Callable[[Any], object]) -> None:
        """Let the page get the service's answers with a change."""

        def answer(route: Route) -> None:
            response = route.fetch()
            body = response.json()
            change(body)
            route.fulfill(response=response, json=body)

        self.page.route(address, answer)
