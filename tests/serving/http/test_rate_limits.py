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
    with running(create_app(Settings(home=home, poll_s=3600, rate_limit="3/hour"))) as client:
        yield client


def test_a_request_over_the_limit_has_retry_after(limited: Client) -> None:
    remaining = [limited.get(MODELS).headers["ratelimit-remaining"] for _ in range(3)]
    assert remaining == ["2", "1", "0"]
    response = limited.get(MODELS)
    assert "requests is reached; try again in" in problem_of(response, 429)["detail"]
    assert response.headers["ratelimit-limit"] == "3"
    assert response.headers["ratelimit-policy"] == "3;w=3600"
    assert 0 < int(response.headers["retry-after"]) <= 3600
    assert limited.get("/readyz").status_code == limited.get("/metrics").status_code == 200


def test_each_key_and_each_address_has_its_own_count(limited: Client) -> None:
    statuses = []
    for key in (limited.make_key("read"), limited.make_key("read"), None, "nonsense"):
        limited.use_key(key)
        statuses.append([limited.get(MODELS).status_code for _ in range(4)])
    of_key, of_address = [200, 200, 200, 429], [200, 429, 429, 429]
    assert statuses == [of_key, of_key, of_address, [429] * 4], "a first request counts for its address too"


def test_rates_are_limited_by_default(shared: Client) -> None:
    assert shared.get(MODELS).headers["ratelimit-policy"] == "1000;w=1"


def test_the_headers_describe_the_tightest_of_several_limits() -> None:
    async def hits() -> list[tuple[bool, str]]:
        rates = RateLimits("2/hour; 100/day")
        answers = [await rates.hit("me") for _ in range(3)]
        return [(is_admitted, headers["ratelimit-policy"]) for is_admitted, headers in answers]

    assert anyio.run(hits) == [(True, "2;w=3600"), (True, "2;w=3600"), (False, "2;w=3600")]


def test_a_caller_that_waits_for_the_reset_is_admitted() -> None:
    async def hits() -> bool:
        rates = RateLimits("2/second")
        is_admitted = True
        while is_admitted:
            is_admitted, headers = await rates.hit("me")
        time.sleep(int(headers["ratelimit-reset"]))
        return (await rates.hit("me"))[0]

    assert anyio.run(hits)
