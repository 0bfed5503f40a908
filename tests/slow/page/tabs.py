"""A running service and a tab of a browser."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roofcast.data.store.api_keys import KeyStore, Scope
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

WIDE: Final[ViewportSize] = {"width": 1440, "height": 900}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
PATIENCE_MS: Final = 120_000


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
