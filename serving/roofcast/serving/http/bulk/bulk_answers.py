"""Bulk prediction, chunk by chunk: read rows, answer them, write the answers."""

import importlib.util
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import Any, Final, Protocol

from anyio import CapacityLimiter, to_thread
from starlette.responses import StreamingResponse
from starlette.types import Send

from roofcast.data.errors import OutOfRangeError
from roofcast.data.measurements.cells import Table
from roofcast.serving.http.body import LEVEL_HEADER, STACK_HEADER, VERSION_HEADER, Kind
from roofcast.serving.http.bulk.chunks import Chunk, InlineModels
from roofcast.serving.http.bulk.ndjson import JsonWriter, NdjsonWriter, check_lines, read_lines
from roofcast.serving.http.bulk.parquet_reader import read_parquet
from roofcast.serving.http.bulk.parquet_writer import ParquetWriter
from roofcast.serving.http.problem_details import NOT_ACCEPTABLE
from roofcast.serving.http.schemas.resources import EXAMPLE_ROW
from roofcast.serving.http.telemetry.prometheus import count_answers
from roofcast.serving.predict.row_answers import ANSWER_METRICS, SATURATED, PredictOptions, answer_columns
from roofcast.serving.request_fields import StackResponse


class Writer(Protocol):
    """Serializer of rows with their answers, one chunk after another."""

    def write(self, chunk: Chunk, answers: Table) -> bytes:
        """Return the bytes of a chunk."""

    def end(self) -> bytes:
        """Return the bytes after the last chunk."""


def has_parquet() -> bool:
    """Return whether pyarrow is installed."""
    return importlib.util.find_spec("pyarrow") is not None


def answer_body(
    body: SpooledTemporaryFile[bytes],
    kinds: tuple[Kind, Kind],
    options: PredictOptions,
    version: str,
    max_row: int,
    *,
    stack: StackResponse | None = None,
) -> Iterator[bytes]:
    """Yield the parts of the response; an error of the whole request is raised before the first part.

    Raises `InputError` if the body cannot be read; `OutOfRangeError` if the measurements cannot support the level.

    - `kinds`: Media types of the body and of the response.
    - `version`: Of the predictor.
    - `stack`: What the request's stack is, for a response that has a place for it.
    """
    kind, accepted = kinds
    if kind == Kind.PARQUET:
        chunks = read_parquet(body, max_row)
    else:
        check_lines(body, max_row)
        chunks = read_lines(body, InlineModels(options.catalog))
    highest = options.bundle.predictor.highest_level(ANSWER_METRICS)
    if options.level > highest:
        message = f"the measurements cannot support level {options.level:g}; ask for at most {highest:.3f}"
        raise OutOfRangeError(message)
    writer = writer_of(accepted, version, options.level, stack)
    for chunk in chunks:
        yield writer.write(chunk, answer_chunk(chunk, options))
    yield writer.end()


def answer_chunk(chunk: Chunk, options: PredictOptions) -> Table:
    """Return the answer columns of a chunk; a reason starts with the line or row that it is about."""
    if chunk.models:
        options = replace(options, catalog=chunk.models.extend(options.catalog))
    answers = answer_columns(chunk.columns, options)
    count_answers(answers)
    if chunk.unit:
        reasons = answers["reason"]
        for i, status in enumerate(answers["status"].tolist()):
            if status not in ("ok", SATURATED):
                reasons[i] = f"{chunk.unit} {chunk.numbers[i]}: {chunk.errors.get(i, reasons[i])}"
    return answers


def writer_of(kind: Kind, version: str, level: float, stack: StackResponse | None) -> Writer:
    """Return the writer of a media type; `stack` is for one that has a place for it."""
    if kind == Kind.NDJSON:
        return NdjsonWriter()
    return JsonWriter(version, level, stack) if kind == Kind.JSON else ParquetWriter(version, level)


_LINES: Final = {
    "schema": {
        "type": "string",
        "description": "One JSON object per line: a row as in the JSON body's `rows`. `model` may be an object as in "
        "its `models` in place of a name, up to 100 different ones in a body.",
    },
    "example": json.dumps(EXAMPLE_ROW) + "\n",
}
_FILE: Final = {
    "schema": {
        "type": "string",
        "format": "binary",
        "description": "Columns as the fields of a row: texts, numbers, truth values; models by name only.",
    }
}

BULK_REQUEST: Final[dict[str, Any]] = {
    "requestBody": {"content": {Kind.NDJSON.value: _LINES, Kind.PARQUET.value: _FILE}}
}

_HEADERS: Final = {
    name: {"description": f"{description}, in bulk responses.", "schema": {"type": "string"}}
    for name, description in (
        (VERSION_HEADER, "Predictor version"),
        (LEVEL_HEADER, "Level of the intervals"),
        (STACK_HEADER, "Kind and name of the stack that the request names, and notes on it, percent-encoded"),
    )
}

BULK_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    int(HTTPStatus.OK): {
        "description": "The rows with their answers, in the order of the request.",
        "headers": _HEADERS,
        "content": {
            Kind.NDJSON.value: {
                "schema": {
                    "type": "string",
                    "description": "One JSON object per line: a row as in the JSON response's `rows`.",
                }
            },
            Kind.PARQUET.value: _FILE,
        },
    },
    **NOT_ACCEPTABLE,
}


N_THREAD: Final = 1
"""Chunks that a process computes at once; bulk requests take turns, so memory stays bounded."""

_LIMITER: Final = CapacityLimiter(N_THREAD)


async def stream(parts: Iterator[bytes], kind: Kind, headers: Mapping[str, str]) -> StreamingResponse:
    """Return a response whose parts are computed one by one, each after the one before it was sent.

    The first part is computed before the response begins, so an error of the whole request gets a status.
    """
    first = await to_thread.run_sync(next, parts, limiter=_LIMITER)
    return _Stream(_continue(first, parts), media_type=kind, headers=headers)


async def _continue(part: bytes | None, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while part is not None:
        yield part
        part = await to_thread.run_sync(next, parts, None, limiter=_LIMITER)


class _Stream(StreamingResponse):
    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]  # `_continue` is a generator
            await super().stream_response(send)
