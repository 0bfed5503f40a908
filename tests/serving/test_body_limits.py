from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from roofcast.data.errors import InputError
from roofcast.serving.app import create_app
from roofcast.serving.bodies import MAX_DEPTH, BodyLimit, read_object
from roofcast.serving.settings import Settings
from tests.serving.client import Client, problem_of, running


def nested(depth: int, start: bytes, end: bytes) -> bytes:
    return b'{"a":' + start * (depth - 1) + b"1" + end * (depth - 1) + b"}"


@pytest.mark.parametrize(("start", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_limited(start: bytes, end: bytes) -> None:
    assert read_object(nested(MAX_DEPTH, start, end))
    with pytest.raises(InputError, match=f"nested too deeply; at most {MAX_DEPTH} levels"):
        read_object(nested(MAX_DEPTH + 1, start, end))


def test_brackets_that_nest_nothing_are_no_depth() -> None:
    assert read_object(b'{"a": "' + b"[" * 1000 + b'"}')
    assert len(read_object(b'{"a": [' + b",".join([b'{"b": [1]}'] * 1000) + b"]}")["a"]) == 1000


def test_nesting_is_a_problem_over_http(shared: Client) -> None:
    response = shared.post_text("/v1/predictions", nested(100, b"[", b"]"))
    assert problem_of(response, 422)["field"] == "body"


@pytest.fixture
def hasty(home: Path) -> Iterator[Client]:
    with running(create_app(Settings(home=home, poll_s=3600, max_body_s=0.05))) as opened:
        yield opened


def test_a_body_that_never_ends_is_not_waited_for(hasty: Client) -> None:
    """What the server hands on of a client that sends one byte and then nothing."""
    sent: list[dict[str, Any]] = []
    given = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Any:
        if given:
            return given.pop()
        return await anyio.sleep_forever()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/predictions", "headers": [], "query_string": b""}
    hasty.run(lambda: hasty.app(scope, receive, send))
    headers = dict(sent[0]["headers"])
    assert sent[0]["status"] == 408
    assert headers[b"connection"] == b"close"
    assert b"has not arrived within 0.05 seconds" in sent[1]["body"]


def test_other_traffic_passes(hasty: Client) -> None:
    seen = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        return None

    hasty.run(lambda: BodyLimit(app, 1, 1.0, 1)({"type": "websocket"}, nothing, nothing))
    assert seen == ["websocket"]
