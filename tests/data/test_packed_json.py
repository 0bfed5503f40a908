from __future__ import annotations

import io
import json
import tracemalloc
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.errors import SchemaError
from roofcast.data.importers.json_input import Node, read_document
from roofcast.data.importers.sources import Source
from roofcast.data.packed_json import MIN_ARRAY, parse_packed
from tests.effort import n_example

LONG = [0.25, 3, 1e-3] * MIN_ARRAY
TEXTS = st.text() | st.sampled_from(["[" + "1, " * MIN_ARRAY + "1]", '"', "\\", '\\"[', '{"\\u0000packed":0}'])
NUMBERS = st.lists(st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False), max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def unpack(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unpack(entry) for key, entry in value.items()}
    return [unpack(entry) for entry in value] if isinstance(value, list | array) else value


@settings(max_examples=n_example(150), deadline=None)
@given(value=VALUES, indent=st.none() | st.just(1))
def test_packed_values_equal_those_of_the_json_module(value: Any, indent: int | None) -> None:
    assert unpack(parse_packed(json.dumps(value, indent=indent))) == value


def test_long_arrays_of_numbers_alone_are_packed() -> None:
    document = {"a": LONG, "b": [LONG, LONG[:2]], "c": [*LONG, "x"], "d": [*LONG, -1]}
    packed = parse_packed(json.dumps(document))
    assert isinstance(packed["a"], array)
    assert [type(entry) for entry in packed["b"]] == [array, list]
    assert isinstance(packed["c"], list)
    node = Node(packed, "", "run.json")
    assert node["b"].items()[0].numbers().tolist() == LONG
    assert (node["a"].is_array, node["b"].is_array, node["a"].items()[1].number()) == (True, True, 3)
    with pytest.raises(SchemaError, match=r"d\[192\]: must be a finite number of at least 0, got -1"):
        node["d"].numbers()
    with pytest.raises(SchemaError, match="a: must be a text, got an array"):
        node["a"].text()


def test_the_hook_is_called_with_objects_alone() -> None:
    packed = parse_packed(json.dumps({"a": {"gaps": LONG}}), lambda members: [*members, "seen"])
    assert packed == ["a", "seen"]
    packed = parse_packed(json.dumps({"a": {"gaps": LONG}}), lambda members: members | {"seen": True})
    assert unpack(packed) == {"a": {"gaps": LONG, "seen": True}, "seen": True}


@pytest.mark.parametrize("tail", ["", "1,,", "1]}, ", '"open]}', "1]\n}x"])
def test_the_error_of_a_damaged_text_has_its_line(tail: str) -> None:
    text = '{"b": ' + json.dumps(LONG, indent=1) + ',\n"a": [' + tail
    with pytest.raises(SchemaError) as caught:
        read_document(Source("run.json", io.BytesIO(text.encode())))
    assert caught.value.line >= len(LONG) + 3


def test_texts_without_long_arrays_need_no_extra_memory() -> None:
    text = json.dumps([{"id": str(i), "latency_s": 0.25} for i in range(20_000)])
    tracemalloc.start()
    try:
        parse_packed(text, lambda members: members.clear())
        peak_byte = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_byte < len(text)


def test_a_packed_number_takes_about_eight_bytes(tmp_path: Path) -> None:
    n_request, n_gap = 200, 1000
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"itls": [[round(0.001 * i, 4) for i in range(n_gap)]] * n_request}))
    with file.open("rb") as stream:
        tracemalloc.start()
        try:
            document = read_document(Source("run.json", stream))
            stored_byte, peak_byte = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(document["itls"].items()) == n_request
    assert stored_byte < 10 * n_request * n_gap
    assert peak_byte < stored_byte + 2.5 * file.stat().st_size
