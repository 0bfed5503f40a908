"""Random damage to samples: a damaged file is refused with an error, or yields rows that satisfy the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from roofcast.data.errors import RoofcastError
from roofcast.data.importers import FORMATS, read_measurements
from roofcast.data.measurements.validation import validate_measurements

INVALID_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 0.5, 1e308, 10**400, float("nan"), float("inf"), "", "x", "=1+1", "\ud800", "\u202e", "../x",
    "9" * 500, [], [None], {}, {"a": 1}, "a:b", ["x", "y"],
)  # fmt: skip
FRAGMENTS = (
    b"",
    b",",
    b'"',
    b"\n",
    b"[",
    b"{",
    b"}",
    b":",
    b"nan",
    b"-",
    b"1e999",
    b"\x00",
    b"\xff",
    b"9" * 30,
    b"\xd9\xa1",
)

quick = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(file: Path, name: str, overrides: Mapping[str, object]) -> None:
    """Check that a damaged file is refused or yields valid rows."""
    for entry in FORMATS.values():
        assert entry.recognises(file) in (True, False)
    try:
        table = read_measurements(name, [file], "ours", overrides=dict(overrides))
    except RoofcastError as error:
        assert str(error).isprintable()  # noqa: PT017
        return
    validate_measurements(table)


def with_changed_bytes(content: bytes, data: st.DataObject) -> bytes:
    """Return the content with random parts replaced."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, max(len(changed) - 1, 0)))
        changed[position : position + data.draw(st.sampled_from([0, 1, 9, 400]))] = data.draw(
            st.sampled_from(FRAGMENTS)
        )
    return bytes(changed)


def with_changed_values(text: str, data: st.DataObject) -> str:
    """Return a JSON text with random values replaced by invalid ones."""
    document = json.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        node: Any = document
        while node:
            key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
            if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.integers(0, 5)) == 0:
                node[key] = data.draw(st.sampled_from(INVALID_VALUES))
                break
            node = node[key]
    return json.dumps(document)
