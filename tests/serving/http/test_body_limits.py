from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import anyio
import pytest

from roofcast.data.errors import InputError
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.http.body import MAX_DEPTH, BodyLimit, read_object
from tests.serving.http.bulk.test_bulk_streaming import scope_of
from tests.serving.http_client import Client, a_question, problem_of, running


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

    hasty.run(lambda: BodyLimit(app, 1, 1.0, 1, 1)({"type": "websocket"}, nothing, nothing))
    assert seen == ["websocket"]


class Bulk:
    """A request in bulk whose body comes when it is let."""

    def __init__(self, n_line: int = 1) -> None:
        self.may_end = anyio.Event()
        self.answer: list[dict[str, Any]] = []
        self._parts = [(json.dumps(a_question()) + "\n").encode() * n_line] * 2

    async def receive(self) -> Any:
        if len(self._parts) == 1:
            await self.may_end.wait()
        if self._parts:
            return {"type": "http.request", "body": self._parts.pop(), "more_body": bool(self._parts)}
        return await anyio.sleep_forever()

    async def send(self, message: Any) -> None:
        self.answer.append(message)

    @property
    def status(self) -> int:
        return int(self.answer[0]["status"])


def test_only_so_many_requests_in_bulk_are_taken_at_a_time(home: Path) -> None:
    settings = Settings(home=home, poll_s=3600, max_bulk_request=2, max_body_byte=1000)
    taken, again, refused, later = [Bulk(20), Bulk()], Bulk(), Bulk(), Bulk()

    async def ask() -> None:
        async with anyio.create_task_group() as group:
            for bulk, caller in zip(taken, ("a", "b"), strict=True):
                group.start_soon(client.app, scope_of(caller), bulk.receive, bulk.send)
                await anyio.wait_all_tasks_blocked()
                if bulk is taken[0]:
                    await client.app(scope_of(caller), again.receive, again.send)
            await client.app(scope_of("c"), refused.receive, refused.send)
            for bulk in (*taken, later):
                bulk.may_end.set()
        await client.app(scope_of(), later.receive, later.send)

    with running(create_app(settings)) as client:
        client.run(ask)
        assert client.post("/v1/predictions", {"rows": [a_question()]}).status_code == 200
    assert [bulk.status for bulk in (*taken, again, refused, later)] == [200, 200, 503, 503, 200]
    assert b"1 of your bulk requests are in progress, the most of one caller" in again.answer[1]["body"]
    assert dict(refused.answer[0]["headers"])[b"retry-after"] == b"5"
    assert b"2 bulk requests are in progress" in refused.answer[1]["body"]


def test_bodies_on_disk_are_written_beside_the_event_loop(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[str] = []
    write = SpooledTemporaryFile.write

    def noted(file: Any, part: bytes) -> int:
        writers.append(threading.current_thread().name)
        return write(file, part)

    monkeypatch.setattr(SpooledTemporaryFile, "write", noted)
    bulk = Bulk(20)
    bulk.may_end.set()
    with running(create_app(Settings(home=home, poll_s=3600, max_body_byte=4000))) as client:
        client.run(lambda: client.app(scope_of(), bulk.receive, bulk.send))
    assert bulk.status == 200
    assert len(writers) == 2
    assert "AnyIO worker thread" in writers[-1]
    assert "AnyIO worker thread" not in writers[0]
