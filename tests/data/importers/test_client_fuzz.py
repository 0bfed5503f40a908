"""Randomly damaged files of every client are refused with an error, or yield rows that satisfy the schema."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roofcast.data.errors import RoofcastError, SchemaError
from roofcast.data.importers import FORMATS
from roofcast.data.measurements.validation import validate_measurements
from tests.data.importers.clients import rows, sample, with_changes

FILES = (
    "vllm_bench/default.json", "vllm_bench/detailed.json", "sglang_bench/sweep.jsonl", "sglang_bench/detailed.jsonl",
    "guidellm/rate.json", "guidellm/rate.csv", "guidellm/all_failed.json", "aiperf/concurrency_2.json",
    "aiperf/concurrency_2.jsonl", "aiperf/concurrency_2.csv", "aiperf/sweep.csv",
)  # fmt: skip
DOCUMENTS = tuple(name for name in FILES if not name.endswith(".csv"))
INVALID_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 0.5, 1e308, 10**400, float("nan"), float("inf"), "", "x", "=1+1", "\ud800", "\u202e",
    "../../x", "9" * 500, [], [None], [[]], {}, {"a": 1}, [1e-300], "2025-01-01T00:00:00",
)  # fmt: skip
FRAGMENTS = (
    b"",
    b",",
    b'"',
    b"\n",
    b"[",
    b"{",
    b"}",
    b"nan",
    b"NaN",
    b"-",
    b"1e999",
    b"\x00",
    b"\xff",
    b"9" * 30,
    b"\\u",
)

quick = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def check(file: Path, name: str) -> None:
    overrides = {"concurrency": 2} if file.suffix != ".json" and name == "aiperf" else {}
    try:
        table = rows(file, name=name, model=None, accelerator=None)
    except RoofcastError:
        try:
            table = rows(file, name=name, **overrides)
        except RoofcastError as error:
            assert str(error).isprintable()  # noqa: PT017
            return
    validate_measurements(table)


@pytest.mark.parametrize("name", FILES)
@quick
@given(data=st.data())
def test_files_with_damaged_bytes(name: str, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(sample(name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position : position + data.draw(st.sampled_from([0, 1, 9, 400]))] = data.draw(
            st.sampled_from(FRAGMENTS)
        )
    file = tmp_path / Path(name).name
    file.write_bytes(content)
    check(file, name.partition("/")[0])
    for entry in FORMATS.values():
        assert entry.recognises(file) in (True, False)


@pytest.mark.parametrize("name", DOCUMENTS)
@quick
@given(data=st.data())
def test_files_with_invalid_values(name: str, tmp_path: Path, data: st.DataObject) -> None:
    lines = sample(name).read_text().splitlines() if name.endswith("l") else [sample(name).read_text()]
    at = data.draw(st.integers(0, len(lines) - 1))
    document = json.loads(lines[at])
    for _ in range(data.draw(st.integers(1, 3))):
        node: Any = document
        while node:
            key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
            if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.integers(0, 5)) == 0:
                node[key] = copy.deepcopy(data.draw(st.sampled_from(INVALID_VALUES)))
                break
            node = node[key]
    lines[at] = json.dumps(document)
    file = tmp_path / Path(name).name
    file.write_text("\n".join(lines))
    check(file, name.partition("/")[0])


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("model_id", "\ud800", "model_id: must hold no half of a surrogate pair"),
        ("output_lens.0", 1e308, "E2E of .* is far from TTFT"),
    ],
)
def test_unstorable_values_are_refused_and_the_file_closed(
    path: str, value: object, problem: str, tmp_path: Path
) -> None:
    file = with_changes("vllm_bench/detailed.json", tmp_path, {path: value})
    with pytest.raises(SchemaError, match=problem):
        rows(file, name="vllm_bench", model=None)
    assert file not in {link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
