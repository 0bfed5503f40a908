from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.http.rate_limits import RateLimits
from tests.serving.http_client import Client, problem_of, running

MODELS = "/v1/retrainings"


@pytest.fixture
def limited(home: Path) -> Iterator[Client]:
    with running(create_app(Settings(home=home, poll_s=3600, rate_limit="3/hour"))) as opened:
        yield opened


def test_who_asks_too_often_is_told_when_to_come_back(limited: Client) -> None:
    left = [limited.get(MODELS).headers["ratelimit-remaining"] for _ in range(3)]
    assert left == ["2", "1", "0"]
    refused = limited.get(MODELS)
    assert "requests is reached; try again in" in problem_of(refused, 429)["detail"]
    assert refused.headers["ratelimit-limit"] == "3"
    assert refused.headers["ratelimit-policy"] == "3;w=3600"
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert limited.get("/readyz").status_code == limited.get("/metrics").status_code == 200


def test_each_key_and_each_address_has_its_own_count(limited: Client) -> None:
    statuses = []
    for key in (limited.make_key("read"), limited.make_key("read"), None, "nonsense"):
        limited.use_key(key)
        statuses.append([limited.get(MODELS).status_code for _ in range(4)])
    granted = [200, 200, 200, 429]
    assert statuses == [granted, granted, granted, [429] * 4], "who guesses keys counts as an address"


def test_no_limit_is_set_unless_asked_for(shared: Client) -> None:
    assert not [name for name in shared.get(MODELS).headers if name.startswith("ratelimit")]


def test_all_limits_hold_and_the_tightest_is_told_of() -> None:
    async def hits() -> list[tuple[bool, str]]:
        rates = RateLimits("2/hour; 100/day")
        answers = [await rates.hit("me") for _ in range(3)]
        return [(is_admitted, headers["ratelimit-policy"]) for is_admitted, headers in answers]

    assert anyio.run(hits) == [(True, "2;w=3600"), (True, "2;w=3600"), (False, "2;w=3600")]


def test_who_waits_as_told_is_admitted() -> None:
    async def hits() -> bool:
        rates = RateLimits("2/second")
        is_admitted = True
        while is_admitted:
            is_admitted, headers = await rates.hit("me")
        time.sleep(int(headers["ratelimit-reset"]))
        return (await rates.hit("me"))[0]

    assert anyio.run(hits)
