"""NDJSON lines of any content: each becomes a row or an error, and is echoed as it was read."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.serving.http.bulk.chunks import InlineModels
from roofcast.serving.http.bulk.ndjson import read_lines, read_row

MODELS = InlineModels(load_catalog())
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30) | st.just([1])
OBJECTS = st.dictionaries(st.sampled_from([*INPUT_COLUMNS, "other", "a:b"]), VALUES, max_size=5)
LINES = st.binary(max_size=40) | OBJECTS.map(lambda row: json.dumps(row).encode())


@settings(deadline=None)
@given(st.lists(LINES, max_size=8), st.sampled_from([b"\n", b"\r\n", b" \n\n"]))
def test_every_line_becomes_a_row_or_an_error(lines: list[bytes], end: bytes) -> None:
    body = end.join(lines)
    n_row = sum(bool(line.strip().removeprefix(b"\xef\xbb\xbf")) for line in body.split(b"\n"))
    chunks = list(read_lines(io.BytesIO(body), MODELS))
    assert sum(len(chunk.numbers) for chunk in chunks) == n_row
    for chunk in chunks:
        assert set(chunk.columns) <= set(INPUT_COLUMNS)
        for i, echo in enumerate(chunk.echoes or ()):
            row = json.loads(echo + b"}")
            assert row.keys() <= INPUT_COLUMNS.keys()
            assert (i in chunk.errors) <= (row == {})


def test_a_carriage_return_in_a_row_is_echoed_as_a_space() -> None:
    (chunk,) = read_lines(io.BytesIO(b'{\r"model": "llama-7b",\r\n{"model":\r"a b"}\r\n'), MODELS)
    assert chunk.echoes == [b"{", b'{"model": "a b"']


@pytest.mark.parametrize("value", ["{}", '{"a": 1}', "[]", '[{"a": 1}]'])
def test_objects_and_lists_as_values_are_refused(value: str) -> None:
    with pytest.raises(InputError, match="tp: must be a number, a text, true, false or null"):
        read_row(f'{{"tp": {value}}}'.encode(), MODELS)


@settings(deadline=None)
@given(OBJECTS)
def test_a_row_is_read_as_by_the_json_module(row: dict[str, object]) -> None:
    line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
    try:
        assert read_row(line, MODELS) == json.loads(line)
    except InputError:
        values = json.loads(line)
        assert not values.keys() <= INPUT_COLUMNS.keys() or [1] in values.values() or b"\\u0000" in line
