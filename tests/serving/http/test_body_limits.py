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
from roofcast.serving.http.body import MAX_DEPTH, Bodies, read_object
from tests.serving.http.bulk.test_bulk_streaming import scope_of
from tests.serving.http_client import Client, a_question, problem_of, running


def nested(depth: int, start: bytes, end: bytes) -> bytes:
    return b'{"a":' + start * (depth - 1) + b"1" + end * (depth - 1) + b"}"


@pytest.mark.parametrize(("start", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_nesting_depth_is_limited(start: bytes, end: bytes) -> None:
    assert read_object(nested(MAX_DEPTH, start, end))
    with pytest.raises(InputError, match=f"nested too deeply; at most {MAX_DEPTH} levels"):
        read_object(nested(MAX_DEPTH + 1, start, end))


def test_brackets_in_texts_and_lists_are_not_counted_as_depth() -> None:
    assert read_object(b'{"a": "' + b"[" * 1000 + b'"}')
    assert len(read_object(b'{"a": [' + b",".join([b'{"b": [1]}'] * 1000) + b"]}")["a"]) == 1000


def test_deep_nesting_over_http_is_a_problem(shared: Client) -> None:
    response = shared.post_text("/v1/predictions", nested(100, b"[", b"]"))
    assert problem_of(response, 422)["field"] == "body"


@pytest.fixture
def impatient(home: Path) -> Iterator[Client]:
    with running(create_app(Settings(home=home, poll_s=3600, max_body_s=0.05))) as client:
        yield client


def test_a_body_that_does_not_end_is_answered_408(impatient: Client) -> None:
    """The messages are those of a client that sends one byte and then no_message."""
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        return await anyio.sleep_forever()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/predictions", "query_string": b"",
        "headers": [(b"host", b"test")],
    }  # fmt: skip
    impatient.run(lambda: impatient.app(scope, receive, send))
    headers = dict(sent[0]["headers"])
    assert sent[0]["status"] == 408
    assert headers[b"connection"] == b"close"
    assert b"has not arrived within 0.05 seconds" in sent[1]["body"]


class Bulk:
    """A bulk request whose body ends when `may_end` is set."""

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


def test_the_number_of_concurrent_bulk_requests_is_limited(home: Path) -> None:
    settings = Settings(home=home, poll_s=3600, max_bulk_request=2, max_body_byte=1000)
    admitted, second, refused, later = [Bulk(20), Bulk()], Bulk(), Bulk(), Bulk()

    async def send_all() -> None:
        async with anyio.create_task_group() as group:
            for bulk, caller in zip(admitted, ("a", "b"), strict=True):
                group.start_soon(client.app, scope_of(caller), bulk.receive, bulk.send)
                await anyio.wait_all_tasks_blocked()
                if bulk is admitted[0]:
                    await client.app(scope_of(caller), second.receive, second.send)
            await client.app(scope_of("c"), refused.receive, refused.send)
            for bulk in (*admitted, later):
                bulk.may_end.set()
        await client.app(scope_of(), later.receive, later.send)

    with running(create_app(settings)) as client:
        client.run(send_all)
        assert client.post("/v1/predictions", {"rows": [a_question()]}).status_code == 200
    assert [bulk.status for bulk in (*admitted, second, refused, later)] == [200, 200, 503, 503, 200]
    assert b"1 of your bulk requests are in progress, the most of one caller" in second.answer[1]["body"]
    assert dict(refused.answer[0]["headers"])[b"retry-after"] == b"5"
    assert b"2 bulk requests are in progress" in refused.answer[1]["body"]


def test_bodies_on_disk_are_written_by_another_thread(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[str] = []
    write = SpooledTemporaryFile.write

    def record_thread(file: Any, part: bytes) -> int:
        writers.append(threading.current_thread().name)
        return write(file, part)

    monkeypatch.setattr(SpooledTemporaryFile, "write", record_thread)
    bulk = Bulk(20)
    bulk.may_end.set()
    with running(create_app(Settings(home=home, poll_s=3600, max_body_byte=4000))) as client:
        client.run(lambda: client.app(scope_of(), bulk.receive, bulk.send))
    assert bulk.status == 200
    assert len(writers) == 2
    assert "AnyIO worker thread" in writers[-1]
    assert "AnyIO worker thread" not in writers[0]


def test_a_body_that_would_fill_the_disk_is_answered_503(home: Path) -> None:
    small, large = Bulk(), Bulk(20)
    for bulk in (small, large):
        bulk.may_end.set()
    with running(create_app(Settings(home=home, poll_s=3600))) as client:
        client.app.state.bodies = Bodies(2000, 30.0, 10**6, 2, reserve_byte=2**62)
        client.run(lambda: client.app(scope_of(), small.receive, small.send))
        client.run(lambda: client.app(scope_of(), large.receive, large.send))
    assert (small.status, large.status) == (200, 503)
    assert b"temporary folder of the service is full" in large.answer[1]["body"]
