from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.campaigns.pages import number, ratio, read_pages, split_brackets
from roofcast.data.errors import SchemaError

ROW = {
    "first": "2024-01-01",
    "last": "2024-02-01",
    "file": "README.md",
    "head": "Speed",
    "intro": "",
    "row": {"TP": "1"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8.0), ("1,002", 1002.0), ("3.28e+02", 328.0), ("~1887", 1887.0), ("50.3%", 50.3), ("16.69 GB", 16.69),
        ("3760 token/gpu/sec", 3760.0), ("24.84 min", 24.84), ("17.13 samp/s", 17.13), (" 7 ", 7.0), (".5", 0.5),
        ("[797*](https://example.org/a)", 797.0),
    ],
)  # fmt: skip
def test_numbers_lose_their_units(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    "text", ["", None, "n/a", "-", "x", "OOM", "1 (16)", "8.7 5", "45-46K TPS", "nan", "1.2.3", "\u0661"]
)
def test_other_text_is_none(text: str | None) -> None:
    assert number(text) is None


def test_ratio_is_a_fraction() -> None:
    assert ratio("47.82") == pytest.approx(0.4782)
    assert ratio("0.4782") == 0.4782
    assert ratio("NaN") is None


def test_brackets_hold_a_second_row() -> None:
    outside, inside = split_brackets({"TP": "1 (2)", "Tokens": "31357 (29925)", "TFLOP": "(646)", "GBS": "128"})
    assert outside == {"TP": "1", "Tokens": "31357", "TFLOP": "", "GBS": "128"}
    assert inside == {"TP": "2", "Tokens": "29925", "TFLOP": "646", "GBS": "128"}


def test_rows_have_their_line(tmp_path: Path) -> None:
    file = tmp_path / "tables.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW | {"head": "Memory"}) + "\n", encoding="utf-8")
    first, second = read_pages(file)
    assert (first.reference, first.date, first.cells) == ("tables.jsonl:1", "2024-01-01", {"TP": "1"})
    assert (second.reference, second.heading) == ("tables.jsonl:2", "Memory")


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"first": "2024-01-01"}'])
def test_broken_line_raises_schema_error(tmp_path: Path, line: str) -> None:
    file = tmp_path / "tables.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"tables.jsonl, line 2: must be a JSON object with first, last, file"):
        read_pages(file)


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"tables.jsonl: cannot be read"):
        read_pages(tmp_path / "tables.jsonl")
