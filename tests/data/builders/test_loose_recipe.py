"""Recipes whose rows lack columns: columns that hold a run each, cells computed from others, HTML and lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from builders.columns import arithmetic
from builders.recipe import RowMaker, load_recipe
from roofcast.data.errors import SchemaError


def rows_of(folder: Path, recipe: str, **files: str) -> dict[str, dict[str, Any]]:
    """Return the loose rows of a recipe's files by reference; dots stand as underscores in their keywords."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    (folder / "ours.toml").write_text(
        recipe if "source." in recipe else f"source.folder = '.'\n{recipe}", encoding="utf-8"
    )
    loaded = load_recipe(folder / "ours.toml", "builders")
    maker = RowMaker(loaded, {"tp", "rate", "n"}, lambda _: {})
    return {record.reference: row for record in loaded.records(folder) for row in maker.rows(record)}


def a_page(**row: str) -> str:
    place = {"first": "2024-01-01", "last": "2024-01-02", "file": "a.md", "head": "Runs", "intro": "TP=4"}
    return json.dumps({**place, "row": row})


def test_columns_that_hold_a_run_each_are_spread(tmp_path: Path) -> None:
    recipe = """
        files = [{ glob = "page.jsonl", format = "pages" }]
        spread.columns = '^(?P<gpus>\\d+) GPUs$'
        parse."@intro" = 'TP=(?P<size>\\d)'
        columns = { rate = "@value", n = "gpus", tp = "size", note = "{Model}{absent}" }
        computed.each = "{rate} / {n}"
    """
    rows = rows_of(tmp_path, recipe, page_jsonl=a_page(**{"Model": "m", "8 GPUs": "64", "16 GPUs": "n/a"}))
    assert rows == {
        "page.jsonl:1:8 GPUs": {"rate": 64.0, "n": 8.0, "tp": 4.0, "note": "m", "each": 8.0},
        "page.jsonl:1:16 GPUs": {"n": 16.0, "tp": 4.0, "note": "m"},
    }


def test_cases_see_the_row_and_may_take_cells_back(tmp_path: Path) -> None:
    recipe = """
        files = [{ glob = "runs.txt", format = "lines", fields = '^(?P<name>\\w+) (?P<rate>\\d+)$' }]
        shared = { kind = "fast", n = 2 }
        columns.rate = "rate"
        case = [
            { below = { rate = 5 }, shared.kind = "", computed."@half" = "{rate} / 2" },
            { is = { "@half" = 2.0 }, computed.tp = "round({@half} * 1.3)" },
        ]
        computed.n = "{rate} * 100"
    """
    rows = rows_of(tmp_path, recipe, runs_txt="# head\na 4\nno run\nb 9\n")
    assert rows["runs.txt:2"] == {"kind": "", "n": 2, "rate": 4.0, "tp": 3.0}
    assert rows["runs.txt:4"] == {"kind": "fast", "n": 2, "rate": 9.0}


def test_runs_of_a_configuration_know_their_last(tmp_path: Path) -> None:
    recipe = """
        source.is_beside = true
        files = [{ glob = "runs.csv", format = "csv" }]
        alike = { of = ["model"], by = ["job"], blank = "doubt" }
        columns = { n = "@n_alike", note = "@later" }
    """
    runs = "model,job,doubt\nm,10,\nm,9,\nm,11,guess\nother,1,\n"
    assert rows_of(tmp_path, recipe, runs_csv=runs) == {
        "runs.csv:2": {"n": 2}, "runs.csv:3": {"n": 2, "note": "runs.csv:2"},
        "runs.csv:4": {"n": 2, "note": "runs.csv:2"}, "runs.csv:5": {"n": 1},
    }  # fmt: skip


def test_html_rows_span_and_the_first_may_name_the_columns(tmp_path: Path) -> None:
    recipe = """
        files = [{ glob = "page.md", format = "html", is_titled = true, only = { GiB = '\\d' } }]
        columns = { model = "Model", rate = "GiB", n = "@table" }
    """
    page = (
        "<table>\n<tr><th>Model</th><th>GiB</th></tr>\n<tr><td rowspan=3>qwen</td><td>1</td></tr>\n"
        "<tr><td>2</td></tr>\n<tr><td>OOM</td></tr>\n</table>\n"
    )
    assert rows_of(tmp_path, recipe, page_md=page) == {
        "page.md:3": {"model": "qwen", "rate": 1.0, "n": 0}, "page.md:4": {"model": "qwen", "rate": 2.0, "n": 0},
    }  # fmt: skip


@pytest.mark.parametrize("expression", ["__import__('os')", "{n} ** 2", "min(1, 2)"])
def test_only_arithmetic_is_computed(expression: str) -> None:
    with pytest.raises(SchemaError, match="max of numbers"):
        arithmetic(expression, {"n": 2.0})
