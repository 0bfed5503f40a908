"""Recipes: entries of columns, statistics, cases and rules on small records, and errors with their cure."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.campaigns.assembly import assemble
from builders.columns import value_of
from builders.published import FileSet, Record, RejectionError
from builders.recipe import Recipe, RowMaker, Source, load_recipe
from roofcast.data.errors import SchemaError

NAMES = {"precision": {"W8A8": "int8", "F8": "fp8"}, "engine": {"^vllm": "vllm", "": "sglang"}}
CELLS = {
    "gpu": "NVIDIA H100", "ttft": "1,250", "empty": "-", "quant": "F8", "image": "vllm:v0.9.1", "n": 4, "tps": "20",
    "config": {"tp": 2}, "day": "10/31/2025",
}  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("gpu", "NVIDIA H100"),
        ("config.tp", 2),
        ("{gpu} x{n:g}", "NVIDIA H100 x4"),
        (["config.pp", "n"], 4),
        ({"from": "gpu", "match": r"(\w\d+)"}, "H100"),
        ({"from": "day", "match": r"(\d+)/(\d+)/(\d+)", "as": "{3}-{1}-{2}"}, "2025-10-31"),
        ({"from": "gpu", "lower": True, "trim": "^nvidia ", "into": "rig/{@value}_{n}"}, "rig/h100_4"),
        ({"from": "gpu", "slug": "_"}, "nvidia_h100"),
        ({"from": "n", "day": "s"}, "1970-01-01"),
        ({"from": "day", "count": "[0-9]+"}, 3),
        ({"from": "quant", "names": "precision"}, "fp8"),
        ({"from": "gpu", "names": "precision", "keep": True}, "NVIDIA H100"),
        ({"from": "gpu", "names": "precision", "default": "bf16"}, "bf16"),
        ({"from": "image", "search": "engine"}, "vllm"),
        ({"from": "ttft", "unit": "ms"}, 1.25),
        ({"from": "tps", "unit": "1/x"}, 0.05),
        ({"from": "ttft", "times": "n", "per": 2}, 2500.0),
        ({"from": "none", "default": 7}, 7),
    ],
)
def test_entry_of_a_column_gives_its_value(entry: object, value: object) -> None:
    assert value_of(entry, CELLS, NAMES) == value


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("gpus", r"gpus: no such column; the row has gpu, ttft"),
        ({"from": "gpu", "names": "precision"}, r"'NVIDIA H100' has no name: add it to \[names\.precision\]"),
    ],
)
def test_missing_column_or_name_is_an_error(entry: object, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        value_of(entry, CELLS, NAMES)


def a_maker(**parts: Any) -> RowMaker:
    return RowMaker(Recipe("some", Source("raw"), **parts), ("tp", "ttft_s", "tpot_s"))


def test_rows_have_shared_cells_columns_and_outcomes_by_statistic() -> None:
    maker = a_maker(
        shared={"engine": "vllm"},
        columns={"tp": "tp", "note": {"from": "note", "default": ""}},
        names={"statistic": {"mean": "Mean", "p99": "P99"}},
        outcomes={"mean": {"tpot_s": "tpot"}, "each": {"ttft_s": {"from": "{statistic} TTFT", "unit": "ms"}}},
        case=[{"is": {"tp": "2"}, "shared": {"pp": 3}}],
    )
    cells = {"tp": "2", "note": "", "tpot": "0.5", "Mean TTFT": "100", "P99 TTFT": "-"}
    row = {"engine": "vllm", "tp": 2.0, "pp": 3, "statistic": "mean", "tpot_s": 0.5, "ttft_s": 0.1}
    assert maker.rows(Record("a:1", cells)) == [row]


def test_first_rule_that_holds_rejects_and_repeats_are_remembered() -> None:
    maker = a_maker(
        reject=[
            {"reason": "no_outcome", "detail": "{tps} on {gpu}", "above": {"tps": 99}},
            {"reason": "no_lengths", "detail": "none", "blank": ["isl", "osl"], "no_match": {"gpu": "^T4"}},
            {"reason": "repeat", "detail": "again", "repeats": ["gpu", "isl"]},
        ],
    )
    verdicts = []
    for cells in ({"tps": "100"}, {"tps": "1"}, {"isl": "8"}, {"isl": "8"}, {"gpu": "T4", "tps": "1"}, {"isl": "9"}):
        try:
            maker.rows(Record("a", {"gpu": "H100", "tps": "", **cells}))
            verdicts.append("")
        except RejectionError as error:
            verdicts.append(f"{error.reason}: {error.detail}")
    assert verdicts == ["no_outcome: 100 on H100", "no_lengths: none", "", "repeat: again", "", ""]


def test_hooks_change_records_and_add_rows(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("n\n1\n2\n")
    hooks = SimpleNamespace(
        records=lambda published: (record.having(double=2 * int(record.cells["n"])) for record in published),
        rows=lambda cells, common: [{"ttft_s": cells["double"] * common["tp"]}],
    )
    recipe = Recipe("some", Source("raw"), (FileSet(("a.csv",), "csv"),), hooks=hooks, columns={"tp": "n"})
    maker = RowMaker(recipe, ("tp",))
    rows = [(record.reference, maker.rows(record)) for record in recipe.records(tmp_path)]
    assert rows == [("a.csv:2", [{"tp": 1.0, "ttft_s": 2.0}]), ("a.csv:3", [{"tp": 2.0, "ttft_s": 8.0}])]


def test_recipe_extends_its_base_with_cells_for_its_rules(tmp_path: Path) -> None:
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases" / "common.toml").write_text("""
        [source]
        folder = "."
        [cells]
        size = { from = "name", match = "x([0-9]+)" }
        [[reject]]
        reason = "small"
        detail = "{size}"
        below = { size = 4 }
        [columns]
        tp = "size"
        note = "name"
    """)
    (tmp_path / "some.toml").write_text("""
        base = "common"
        [[files]]
        glob = "a.csv"
        format = "csv"
        [[reject]]
        reason = "blank"
        detail = "no size in {name}"
        blank = "size"
        [columns]
        note = "of {name}"
    """)
    (tmp_path / "a.csv").write_text("name\nT4 x8\nT4 x2\nT4\n")
    recipe = load_recipe(tmp_path / "some.toml", "builders.campaigns")
    results: list[object] = []
    maker = RowMaker(recipe, ("tp",))
    for record in recipe.records(tmp_path):
        try:
            results += maker.rows(record)
        except RejectionError as error:
            results.append((error.reason, error.detail))
    assert results == [{"tp": 8.0, "note": "of T4 x8"}, ("small", "2"), ("blank", "no size in T4")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("shared = [", "must be TOML"),
        ("[sources]\nfolder = 'raw'", r"sources: no such section; choose from .*source"),
        ("[columns]\ntp = { form = 'TP' }", r"columns\.tp: must be a source column, a template, or a table with"),
        ("[columns]\ntp = { from = 'TP', units = 'ms' }", r"units: no such key of columns\.tp; choose from .*unit"),
        ("[columns]\ntp = { from = 'TP', unit = 'min' }", r"columns\.tp: unit must be one of s, ms, .* got 'min'"),
        ("[[reject]]\nreason = 'a'\nwhen = 'b'", r"when: no such key of \[\[reject\]\]; choose from above, .*"),
        ("stack = 'a'", r"source\.folder: must be the folder of the published files below --raw"),
        ("[source]\nfolder = 'a'\n[[files]]\nformat = 'csv'", r"files\.glob: must be a pattern, or a list"),
        (
            "[source]\nfolder = 'a'\n[[files]]\nglob = 'a'\nformat = 'xls'",
            r"files\.format: must be one of csv, .* got 'xls'",
        ),
        ("[source]\nurl = 'a'", r"url: no such key of \[source\]; choose from archive, flat, folder"),
    ],
)
def test_faulty_recipe_is_refused_with_a_cure(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(text)
    with pytest.raises(SchemaError, match=problem):
        load_recipe(tmp_path / "some.toml", "builders.campaigns")


HEADER = "model,gpu,load,e2e,ttft,tpot,tp"
GOOD = "llama,card,static_batch,1.23456789,,,1"
RECIPE = Recipe(
    "some",
    Source("raw"),
    (FileSet(("a.csv",), "csv"),),
    names={"model": {"llama": "meta-llama/Llama-2-7b-hf"}, "accelerator": {"card": "nvidia-h100-sxm-80gb"}},
    shared={
        "n_accelerator": 1, "n_input_token": 128.0, "n_output_token": 8.0, "concurrency": 1, "statistic": "mean",
    },
    columns={
        "model": "model", "accelerator": "gpu", "load": "load", "e2e_s": "e2e", "ttft_s": "ttft", "tpot_s": "tpot",
        "tp": "tp",
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("no-such,card,static_batch,1,,,1", "unknown_model", "no-such"),
        ("llama,abacus,static_batch,1,,,1", "unknown_accelerator", "abacus"),
        ("llama,,static_batch,1,,,1", "unknown_accelerator", "not stated"),
        ("llama,card,static_batch,1.2345678,,,1", "exact_repeat", "the same run to the last digit"),
        ("llama,card,closed_loop,0.24,0.1,2.0,1", "implausible", "seconds and milliseconds"),
    ],
)
def test_rules_of_all_campaigns_reject_a_row(line: str, reason: str, detail: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("\n".join((HEADER, GOOD, line)))
    result = assemble(RECIPE, tmp_path)
    row = result.rows.iloc[0]
    assert (result.n_read, len(result.rows), row["e2e_s"], row["campaign"]) == (2, 1, 1.23457, "some")
    assert row["model"] == "meta-llama/Llama-2-7b-hf"
    assert result.rejected["reference"].tolist() == ["a.csv:3"]
    assert result.rejected["reason"].tolist() == [reason]
    assert detail in result.rejected["detail"][0]


def test_row_that_breaks_the_schema_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text(f"{HEADER}\n{GOOD[:-1]}1.5\n")
    with pytest.raises(SchemaError, match="tp: must be a whole number"):
        assemble(RECIPE, tmp_path)
