"""Bodies of requests: media type, size, time to arrive, place on disk, JSON object, nesting depth, plain text."""

import asyncio
import functools
import os
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from roofcast.data.errors import InputError
from roofcast.data.model_config.huggingface import parse_config
from roofcast.serving.http.problem_details import RefusedError, busy_error

PATH: Final = "/v1/predictions"
FILES_PATH: Final = "/v1/measurements/files"
TRAINING_FILES_PATH: Final = "/v1/training/measurements/files"
VERSION_HEADER: Final = "X-Predictor-Version"
LEVEL_HEADER: Final = "X-Prediction-Level"
STACK_HEADER: Final = "X-Stack"

_QUALITY: Final = re.compile(r";\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)", re.IGNORECASE)


class Kind(StrEnum):
    """Media types of rows and answers."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    PARQUET = "application/vnd.apache.parquet"


def bulk_kind(scope: Scope) -> Kind | None:
    """Return the media type of a bulk prediction request; None for any other request."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != PATH:
        return None
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    return Kind(kind) if kind in {Kind.NDJSON, Kind.PARQUET} else None


@functools.lru_cache(maxsize=64)
def accepted_kind(accept: str, default: Kind) -> Kind | None:
    """Return the media type that an ``Accept`` header prefers; None if it admits none.

    `accept`: empty if the request has no such header. `default`: preferred among equals.

    Examples
    --------
    >>> accepted_kind("application/json;q=0.5, application/x-ndjson", Kind.JSON)
    <Kind.NDJSON: 'application/x-ndjson'>
    >>> accepted_kind("text/html, */*;q=0.1", Kind.PARQUET)
    <Kind.PARQUET: 'application/vnd.apache.parquet'>
    >>> accepted_kind("text/csv", Kind.JSON) is None
    True
    """
    qualities = {part.partition(";")[0].strip().lower(): _quality(part) for part in accept.split(",") if part.strip()}
    if not qualities:
        return default

    def quality(kind: Kind) -> float:
        return next((qualities[name] for name in (kind, "application/*", "*/*") if name in qualities), 0.0)

    best = max([default, *Kind], key=quality)
    return best if quality(best) else None


def _quality(part: str) -> float:
    match = _QUALITY.search(part)
    return float(match[1]) if match else 1.0


JSON_TYPE: Final = "application/json"

MAX_DEPTH: Final = 64
"""Deepest nesting of a body; a model's configuration needs fewer than ten levels."""

RETRY_AFTER_S: Final = 5
"""`Retry-After` of bulk requests, which take seconds."""

RESERVE_BYTE: Final = 32_000_000
"""Space of the temporary folder that bodies leave free, for the files of others in it."""


class Bodies:
    """Reader of bodies within limits.

    Bulk bodies are spooled to files in the temporary folder. Their number at a time is limited, and so is the space
    that they leave free; one caller may have all but one of them, so that it cannot block the others.

    `reserve_byte`: free space of the temporary folder below which bulk bodies are refused.
    """

    def __init__(
        self,
        max_byte: int,
        max_s: float,
        max_bulk_byte: int,
        max_bulk_request: int,
        reserve_byte: int = RESERVE_BYTE,
    ) -> None:
        self._max_byte = max_byte
        self._max_s = max_s
        self._max_bulk_byte = max_bulk_byte
        self._max_bulk_request = max_bulk_request
        self._reserve_byte = reserve_byte
        self._n_bulk: Counter[str] = Counter()

    async def read(self, request: Request) -> bytes:
        """Return the body of a request. Raises `RefusedError` if it is too large or too slow."""
        parts: list[bytes] = []
        await self._receive(request, parts.append, self._max_byte)
        return b"".join(parts)

    async def store(self, request: Request, file: IO[bytes]) -> None:
        """Write a bulk body to a file; raises as `read`, and if the disk is full."""

        async def write(part: bytes) -> None:
            if file.tell() + len(part) <= self._max_byte:
                file.write(part)
                return
            if _free_byte() < self._reserve_byte:
                detail = "the temporary folder of the service is full; try again later, or send the body in parts"
                raise RefusedError("not-ready", detail)
            await to_thread.run_sync(file.write, part)  # the file is on disk, which may be slow

        await self._receive(request, write, self._max_bulk_byte)
        file.seek(0)

    @contextmanager
    def bulk_file(self, caller: str) -> Iterator[SpooledTemporaryFile[bytes]]:
        """Give the file of a bulk body, one of the few at a time. Raises `RefusedError` if there are too many."""
        if self._n_bulk.total() >= self._max_bulk_request:
            raise busy_error(
                f"{self._max_bulk_request} bulk requests are in progress, the most at a time", RETRY_AFTER_S
            )
        if self._n_bulk[caller] >= max(1, self._max_bulk_request - 1):
            problem = f"{self._n_bulk[caller]} of your bulk requests are in progress, the most of one caller"
            raise busy_error(problem, RETRY_AFTER_S)
        self._n_bulk[caller] += 1
        try:
            with SpooledTemporaryFile(max_size=self._max_byte) as file:
                yield file
        finally:
            self._n_bulk -= Counter([caller])

    async def _receive(
        self, request: Request, write: Callable[[bytes], Awaitable[None] | None], max_byte: int
    ) -> None:
        declared = request.headers.get("content-length", "")
        n_byte = int(declared[:20]) if declared.isdecimal() else 0
        n_received = 0
        try:
            async with asyncio.timeout(self._max_s):
                if n_byte <= max_byte:
                    async for part in request.stream():
                        n_received += len(part)
                        if n_received > max_byte:
                            break
                        if part and (written := write(part)):
                            await written
        except TimeoutError:
            detail = f"the body has not arrived within {self._max_s:g} seconds; send it in parts"
            raise RefusedError("too-slow", detail, {"connection": "close"}) from None
        if max(n_byte, n_received) > max_byte:
            raise RefusedError("too-large", f"the body is over {max_byte} bytes; send it in parts")


def _free_byte() -> int:
    stats = os.statvfs(tempfile.gettempdir())
    return stats.f_bavail * stats.f_frsize


def is_json(content_type: str) -> bool:
    """Return whether a media type is that of JSON."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON_TYPE or (kind.startswith("application/") and kind.endswith("+json"))


def read_object(body: bytes) -> Mapping[str, Any]:
    """Return the fields of an untrusted JSON object.

    Raises `InputError` if it is no JSON object, is nested too deeply, or a text in it cannot be stored; names the
    field.

    Examples
    --------
    >>> read_object(b'{"model": "llama-7b"}')
    {'model': 'llama-7b'}
    >>> read_object(b'{"model": 1, "model": 2}')
    Traceback (most recent call last):
    ...
    roofcast.data.errors.SchemaError: body: model: is given twice; keep one
    """
    fields = parse_config(body, "body")
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _check_depth(fields)
    if b"\\u" in body:  # in UTF-8, NUL and lone surrogates can only be written as escapes
        _check_texts(fields)
    return fields


def _check_depth(fields: Mapping[str, Any]) -> None:
    level: list[Any] = [fields]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise InputError("body", f"is nested too deeply; at most {MAX_DEPTH} levels are read")


def _check_texts(fields: Mapping[str, Any]) -> None:
    pending: list[tuple[str, Any]] = [("", fields)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str) and not is_plain(value):
            raise InputError(path, "contains NUL or a lone surrogate; send plain text")
        if isinstance(value, dict):
            pending += ((path, name) for name in value if not is_plain(name))
            pending += ((f"{path}.{name}".lstrip("."), item) for name, item in value.items())
        elif isinstance(value, list):
            pending += ((f"{path}.{i}", item) for i, item in enumerate(value))


def is_plain(text: str) -> bool:
    """Return whether any file or database can store a text."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
