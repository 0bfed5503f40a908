"""Readers of published files: one record a row in each format, and errors that name place and cure."""

from pathlib import Path
from typing import Any

import pytest

from builders.published import FileSet
from roofcast.data.errors import SchemaError

PAGE = (
    '{"first": "2024-01-02", "last": "2024-03-04", "file": "a.md", "head": "H100", "intro": "", "row": {"TP": "8"}}'
)
MARKDOWN = "# Speeds\n## H100\n| TP | note |\n|---|:-:|\n| 8 | a\\|b |\n"
HTML = "<table><tr><td rowspan=2>H100</td><td>1</td></tr>\n<tr><td>2</td></tr></table>"


def read(folder: Path, text: str, name: str = "a.txt", **options: Any) -> list[dict[str, Any]]:
    (folder / "sub").mkdir()
    (folder / "sub" / name).write_text(text, encoding="utf-8")
    return list(FileSet(("sub/*",), **options).cells(folder))


@pytest.mark.parametrize(
    ("options", "text", "cells"),
    [
        (
            {"format": "csv"},
            "gpu, tps\n\nH100,5\nA100, 3 \n",
            [{"gpu": "H100", "tps": "5", "@line": 3}, {"tps": "3"}],
        ),
        ({"format": "csv", "comment": "#"}, "# made by\ngpu\nH100\n", [{"gpu": "H100"}]),
        ({"format": "csv", "unquoted": "b"}, "a,b,c\n1,x, y,2\n", [{"a": "1", "b": "x, y", "c": "2"}]),
        ({"format": "csv", "is_loose": True}, "a,b\n1\n", [{"a": "1"}]),
        ({"format": "csv", "is_plain": True}, "Batch_ Size\n1\n", [{"batch size": "1"}]),
        ({"format": "csv", "repeated": ("a",)}, "a,b\n1,x\n,y\n", [{"a": "1"}, {"a": "1", "b": "y"}]),
        ({"format": "json"}, '{"gpu": "H100"}', [{"gpu": "H100", "@row": 1}]),
        ({"format": "json"}, '[{"n": 1}, {"n": 2}]', [{"n": 1, "@position": 0}, {"n": 2, "@position": 1}]),
        ({"format": "json", "rows": ("s", "p")}, '{"g": 4, "s": [{"p": [{"n": 1}]}]}', [{"g": 4, "n": 1}]),
        (
            {"format": "json", "keys": ("test", "part")},
            '{"a": {"g2": {"n": 1}}}',
            [{"test": "a", "part": "g2", "n": 1}],
        ),
        ({"format": "jsonl"}, '{"n": 1}\n\n{"n": 2}\n', [{"n": 1, "@line": 1}, {"n": 2, "@line": 3}]),
        ({"format": "jsonl", "columns": ("a", "b")}, "[1, 2]\n", [{"a": 1, "b": 2}]),
        ({"format": "pages"}, PAGE, [{"TP": "8", "@date": "2024-01-02", "@heading": "H100", "@page": "a.md"}]),
        ({"format": "markdown"}, MARKDOWN, [{"TP": "8", "note": "a|b", "@headings": ("Speeds", "H100"), "@line": 5}]),
        ({"format": "markdown", "is_loose": True}, "| a |\n|---|\n| 1 | 2 |\n", [{"@line": 3}]),
        ({"format": "html"}, HTML, [{"0": "H100", "1": "1", "@table": 0}, {"0": "H100", "1": "2", "@line": 2}]),
        ({"format": "text", "fields": r"^(\w+): (.+)$"}, "TP: 8\nrest\n", [{"TP": "8", "@text": "TP: 8\nrest\n"}]),
    ],
)
def test_each_format_yields_its_rows(
    options: dict[str, Any], text: str, cells: list[dict[str, Any]], tmp_path: Path
) -> None:
    records = read(tmp_path, text, **options)
    assert [{name: record[name] for name in row} for record, row in zip(records, cells, strict=True)] == cells
    assert {(record["@file"], record["@path"]) for record in records} == {("a.txt", "sub/a.txt")}


@pytest.mark.parametrize(
    ("options", "text", "problem"),
    [
        ({"format": "csv"}, "a,b\n1\n", r"a\.txt, line 2: .*must have 2 cells as the header has, got 1"),
        ({"format": "json"}, "{", r"a\.txt: .*must be JSON"),
        ({"format": "jsonl"}, "{}\n3\n", r"a\.txt, line 2: .*must be a JSON object, got int"),
        ({"format": "json", "rows": ("runs",)}, "{}", r"runs: must be a list"),
        ({"format": "json", "keys": ("test",)}, '{"a": 1}', r"a\.txt: .*must be a JSON object, got int"),
        ({"format": "pages"}, '{"row": {}}', r"line 1: .*must have first, last, file, head, intro and row"),
        (
            {"format": "markdown"},
            "| a |\n|---|\n| 1 | 2 |\n",
            r"line 3: .*must have 1 cells as the header has, got 2",
        ),
    ],
)
def test_malformed_file_is_refused_with_its_place(
    options: dict[str, Any], text: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match=problem):
        read(tmp_path, text, **options)


def test_files_are_read_in_the_order_of_the_patterns(tmp_path: Path) -> None:
    for name in ("b.csv", "a2.csv", "a1.csv"):
        (tmp_path / name).write_text("n\n1\n")
    records = FileSet(("b.csv", "a*.csv"), "csv").cells(tmp_path)
    assert [record["@file"] for record in records] == ["b.csv", "a1.csv", "a2.csv"]
    with pytest.raises(SchemaError, match=r"no file c\*\.csv: put the published files there, see --raw"):
        list(FileSet(("c*.csv",), "csv").cells(tmp_path))
