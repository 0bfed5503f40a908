"""Kinds of bodies that predictions are asked and answered in, and which of them a request means."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

PATH: Final = "/v1/predictions"
VERSION_HEADER: Final = "X-Predictor-Version"
LEVEL_HEADER: Final = "X-Prediction-Level"

_QUALITY: Final = re.compile(r";\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)", re.IGNORECASE)


class Kind(StrEnum):
    """Media types of rows of questions and answers."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    PARQUET = "application/vnd.apache.parquet"


def bulk_kind(scope: Scope) -> Kind | None:
    """Return in which kind a request brings rows in bulk, or None if it does not."""
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != PATH:
        return None
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    return Kind(kind) if kind in {Kind.NDJSON, Kind.PARQUET} else None


def wanted_kind(accept: str, default: Kind) -> Kind | None:
    """Return the kind that an ``Accept`` header likes best, or None if it takes none of them.

    Parameters
    ----------
    accept
        Blank if nothing is said.
    default
        What is taken where it likes several the same.

    Examples
    --------
    >>> wanted_kind("application/json;q=0.5, application/x-ndjson", Kind.JSON)
    <Kind.NDJSON: 'application/x-ndjson'>
    >>> wanted_kind("text/html, */*;q=0.1", Kind.PARQUET)
    <Kind.PARQUET: 'application/vnd.apache.parquet'>
    >>> wanted_kind("text/csv", Kind.JSON) is None
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
    found = _QUALITY.search(part)
    return float(found[1]) if found else 1.0
