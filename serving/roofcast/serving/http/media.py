"""Media types of bulk bodies, and content negotiation between those of predictions."""

import functools
import re
from enum import StrEnum
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

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
