"""Streaming of bulk answers: part by part, and only while the client is connected."""

import json
from typing import Any

import anyio
import pytest

from roofcast.serving.http.body import PATH, Kind, accepted_kind
from roofcast.serving.http.bulk import bulk_answers
from roofcast.serving.http.bulk.chunks import N_ROW
from roofcast.serving.http.guarded_routes import BODY
from tests.serving.http_client import Client, a_question

N_CHUNK = 4


@pytest.fixture
def chunk_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the size of each answered chunk; only the first row of a chunk is predicted."""
    sizes: list[int] = []
    answer_chunk = bulk_answers.answer_chunk

    def answer_first(chunk: Any, options: Any) -> Any:
        n_row = len(chunk.numbers)
        sizes.append(n_row)
        row = {name: cells[:1] for name, cells in chunk.columns.items()}
        first = type(chunk)(row, chunk.unit, chunk.numbers[:1], {}, chunk.echoes[:1])
        return {name: cells.repeat(n_row) for name, cells in answer_chunk(first, options).items()}

    monkeypatch.setattr(bulk_answers, "answer_chunk", answer_first)
    return sizes


def scope_of(caller: str = "test") -> dict[str, Any]:
    headers = [(b"host", b"test"), (b"content-type", Kind.NDJSON.encode())]
    return {
        "type": "http", "method": "POST", "path": PATH, "raw_path": PATH.encode(), "query_string": b"",
        "headers": headers, "http_version": "1.1", "scheme": "http", "server": ("test", 80), "root_path": "",
        "client": (caller, 1),
    }  # fmt: skip


def test_parts_are_sent_as_they_are_answered(shared: Client, chunk_sizes: list[int]) -> None:
    parts: list[tuple[int, int]] = []
    scope = scope_of()
    body = (json.dumps(a_question()) + "\n").encode() * N_ROW * N_CHUNK

    async def send_request() -> None:
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            return messages.pop() if messages else await anyio.sleep_forever()

        async def send(message: Any) -> None:
            if message.get("body"):
                parts.append((len(chunk_sizes), message["body"].count(b"\n")))

        await shared.app(scope, receive, send)

    shared.run(send_request)
    assert parts == [(i + 1, N_ROW) for i in range(N_CHUNK)]
    assert scope[BODY].closed


def test_a_disconnect_stops_the_work(shared: Client, chunk_sizes: list[int]) -> None:
    scope = scope_of()
    body = (json.dumps(a_question()) + "\n").encode() * N_ROW * N_CHUNK

    async def send_request() -> None:
        messages = [{"type": "http.request", "body": body}]
        has_started = anyio.Event()

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await has_started.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message.get("body"):
                has_started.set()
                await anyio.sleep_forever()

        with anyio.fail_after(30):
            await shared.app(scope, receive, send)

    shared.run(send_request)
    assert chunk_sizes == [N_ROW]
    assert scope[BODY].closed


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", Kind.NDJSON), ("*/*", Kind.NDJSON), ("application/*", Kind.NDJSON), ("application/json", Kind.JSON),
        ("application/json;q=0.2, application/vnd.apache.parquet;q=0.3", Kind.PARQUET),
        ("application/x-ndjson;q=0, */*", Kind.JSON), ("Application/JSON ; Q=0.5", Kind.JSON), ("text/*", None),
        ("application/json;q=0", None), (",;", None), ("application/json;q=x", Kind.JSON),
    ],
)  # fmt: skip
def test_the_accept_header_selects_the_media_type(accept: str, kind: Kind | None) -> None:
    assert accepted_kind(accept, Kind.NDJSON) == kind
