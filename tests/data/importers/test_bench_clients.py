from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import detect_format, json_input
from tests.data.importers.clients import by_statistic, rows, sample, with_changes

DEFAULT = "vllm_bench/default.json"
DETAILED = "vllm_bench/detailed.json"
RATE = "vllm_bench/rate.json"
FROM_FILE = {"model": None}
COLUMNS = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "e2e_s"}
SGLANG_COLUMNS = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2e_latency": "e2e_s"}
SWEEP = "sglang_bench/sweep.jsonl"
SGLANG = "sglang_bench/detailed.jsonl"


def test_the_statistics_of_a_summary_are_read() -> None:
    table = by_statistic(rows(sample(DEFAULT), **FROM_FILE))
    raw = json.loads(sample(DEFAULT).read_text())
    assert list(table.index) == ["mean", "p50", "p99"]
    assert table.loc["mean", "ttft_s"] == pytest.approx(raw["mean_ttft_ms"] / 1000)
    assert table.loc["p50", "tpot_s"] == pytest.approx(raw["median_tpot_ms"] / 1000)
    assert table.loc["p99", "itl_s"] == pytest.approx(raw["p99_itl_ms"] / 1000)
    assert table["e2e_s"].isna().all()
    assert table.loc["mean", "output_throughput_token_per_s"] == raw["output_throughput"]
    assert table.loc["mean", "total_throughput_token_per_s"] == raw["total_token_throughput"]
    assert table["output_throughput_token_per_s"].notna().tolist() == [True, False, False]
    assert set(table["load"]) == {"closed_loop"}
    assert set(table["concurrency"]) == {4}
    assert set(table["date"]) == {"2025-11-20"}
    assert set(table["engine"]) == {""}
    assert detect_format([sample(DEFAULT)]).name == "vllm_bench"


def test_statistics_of_arrays_equal_those_of_the_tool() -> None:
    table = by_statistic(rows(sample(DETAILED), **FROM_FILE | {"accelerator": None}))
    raw = json.loads(sample(DETAILED).read_text())
    for statistic, row in table.iterrows():
        for name, column in COLUMNS.items():
            assert row[column] == pytest.approx(raw[f"{statistic}_{name}_ms"] / 1000, rel=1e-9)
    assert (table["n_request"].iloc[0], table["n_failed"].iloc[0]) == (12, 1)
    assert table["n_output_token"].iloc[0] == raw["total_output_tokens"] / 11
    assert (table["nttft_s_per_token"] > 0).all()


def test_a_summary_and_its_arrays_agree(tmp_path: Path) -> None:
    file = with_changes(DETAILED, tmp_path, {"itls": ...})
    summary, arrays = (by_statistic(rows(f, **FROM_FILE | {"accelerator": None})) for f in (file, sample(DETAILED)))
    for column in (*COLUMNS.values(), "n_input_token", "request_throughput_per_s"):
        assert summary[column].to_numpy() == pytest.approx(arrays[column].to_numpy(), nan_ok=True)
    without = with_changes(DETAILED, tmp_path, {"latencies": ...})
    assert by_statistic(rows(without, **FROM_FILE | {"accelerator": None}))["e2e_s"].to_numpy() == pytest.approx(
        arrays["e2e_s"].to_numpy(), rel=1e-5
    )


def test_metadata_named_like_a_column_is_read() -> None:
    table = rows(sample(DETAILED), **FROM_FILE | {"accelerator": None})
    first = table.iloc[0]
    assert (first["accelerator"], first["tp"], first["engine"]) == ("nvidia-h100-sxm-80gb", 2, "vllm")
    with pytest.raises(SchemaError, match=r"detailed\.json: accelerator: is 'nvidia-h100.* set to 'nvidia-a"):
        rows(sample(DETAILED), **FROM_FILE | {"accelerator": "nvidia-a100-pcie-40gb"})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tp": "two"}, "tp"),
        ({"n_accelerator": [1]}, "n_accelerator"),
        ({"concurrency": 8}, "concurrency"),
        ({"load": "steady"}, "load"),
        ({"note": "=1+1"}, "note"),
        ({"engine": "a\u202eb"}, "engine"),
    ],
)
def test_invalid_metadata_is_refused(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        rows(with_changes(DETAILED, tmp_path, changes), model=None, accelerator=None)
    assert (caught.value.field, caught.value.source) == (field, "detailed.json")


@pytest.mark.parametrize(
    ("changes", "load", "column", "value"),
    [
        ({"request_rate": 5.0, "max_concurrency": None}, "open_loop", "request_rate", 5.0),
        ({"request_rate": "5", "max_concurrency": 8}, "open_loop", "request_rate", 5.0),
        ({"request_rate": "inf", "max_concurrency": 1}, "closed_loop", "concurrency", 1),
        ({"request_rate": math.inf, "max_concurrency": None}, "offline", "n_request", 12),
        ({"request_rate": ..., "max_concurrency": ...}, "offline", "n_request", 12),
    ],
)
def test_the_load_is_read_from_rate_and_concurrency(
    tmp_path: Path, changes: dict[str, Any], load: str, column: str, value: float
) -> None:
    first = rows(with_changes(RATE, tmp_path, changes), model=None).iloc[0]
    assert (first["load"], first[column]) == (load, value)
    assert math.isnan(first["concurrency"]) is (load != "closed_loop")


def test_a_rate_that_was_not_reached_is_noted(tmp_path: Path) -> None:
    notes = rows(with_changes(RATE, tmp_path, {"max_concurrency": 8}), model=None)["note"]
    assert set(notes) == {"at most 8 requests in flight; asked for 5 requests/s, reached 2.13"}


def test_a_run_without_a_completed_request_is_a_failed_row(tmp_path: Path) -> None:
    file = with_changes(DEFAULT, tmp_path, {"completed": 0, "failed": 12, "mean_ttft_ms": 0.0})
    with pytest.raises(SchemaError, match=r"n_input_token: is not in the file; .* --set n_input"):
        rows(file, model=None)
    table = rows(file, model=None, n_input_token=1000, n_output_token=30)
    assert table[["status", "n_request", "n_failed"]].to_numpy().tolist() == [["failed", 12, 12]]
    assert table["ttft_s"].isna().all()


def test_failed_requests_of_older_files_are_counted_from_the_prompts(tmp_path: Path) -> None:
    table = rows(with_changes(DEFAULT, tmp_path, {"failed": ..., "num_prompts": 15}), model=None)
    assert set(table["n_failed"]) == {3}


@pytest.mark.parametrize(
    ("name", "note"),
    [("/models/secret/llama", "served as llama"), ("C:\\m\\llama", "served as llama"), ("./", ""), ("", "")],
)
def test_a_path_is_no_model_name(tmp_path: Path, name: str, note: str) -> None:
    file = with_changes(DEFAULT, tmp_path, {"model_id": name})
    assert set(rows(file)["note"]) == {note}
    with pytest.raises(SchemaError, match=r"model: is not in the file; .* --set model="):
        rows(file, model=None)


def test_model_names_in_any_alphabet_are_read(tmp_path: Path) -> None:
    file = with_changes(DEFAULT, tmp_path, {"model_id": "通义/千问-7B"})
    assert set(rows(file, model=None)["model"]) == {"通义/千问-7B"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, "12", True, [1], {"a": 1}, 10**400])
@pytest.mark.parametrize("field", ["mean_ttft_ms", "duration", "total_output_tokens", "output_throughput"])
def test_a_field_that_is_no_number_is_refused_with_its_name(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(SchemaError) as caught:
        rows(with_changes(DEFAULT, tmp_path, {field: value}), name="vllm_bench", model=None)
    assert (caught.value.field, caught.value.source) == (field, "default.json")


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"ttfts.2": -0.1}, "ttfts[2]", "must be a finite number of at least 0"),
        ({"itls.1.0": None}, "itls[1][0]", "must be a finite number of at least 0, got nothing"),
        ({"itls.1": 4}, "itls[1]", "must be an array of numbers, got 4"),
        ({"itls": [[0.1]]}, "itls", "must have 12 entries as input_lens has, got 1"),
        ({"errors": ["x"]}, "errors", "must have 12 entries"),
        ({"errors": "x"}, "errors", "must be an array"),
        ({"errors": ["x"] * 12}, "output_lens", "no request completed, although the file counts some"),
        ({"latencies.0": 0.001}, "", r"latencies\[0\] must be at least ttfts\[0\]"),
        ({"date": "yesterday"}, "date", "must be a date such as"),
        ({"date": "20259999-000000"}, "date", "must be a date such as"),
        ({"request_rate": "fast"}, "request_rate", "must be a rate above 0 or inf"),
        ({"request_rate": 0}, "request_rate", "must be a rate above 0 or inf"),
        ({"model_id": 7}, "model_id", "must be a text"),
        ({"model_id": "@cmd"}, "model", "must not begin with"),
        ({"duration": ...}, "duration", "no such field: this is no result of vllm bench serve, or a truncated one"),
    ],
)
def test_an_invalid_file_is_refused_with_its_field(
    tmp_path: Path, changes: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(SchemaError, match=problem) as caught:
        rows(with_changes(DETAILED, tmp_path, changes), name="vllm_bench", model=None, accelerator=None)
    assert (caught.value.field, caught.value.source) == (field, "detailed.json")


def in_other_unit(name: str, factor: float, part: str = "_ms") -> dict[str, float]:
    raw = json.loads(sample(name).read_text())
    return {key: value * factor for key, value in raw.items() if key.endswith(part)}


@pytest.mark.parametrize(
    ("name", "part", "factor", "problem"),
    [
        (
            DEFAULT,
            "_ms",
            1e-3,
            r"e2e_s: 12 requests in 1\.496 s, each of 0\.0004.* s, are .* concurrency is 4; are",
        ),
        (DEFAULT, "_ms", 1e3, "e2e_s: a mean of 434.* s is longer than the run of 1.496 s"),
        (RATE, "e2el_ms", 1e-3, r"E2E of 0\.000409 s is far from TTFT \+ TPOT x \(output tokens - 1\) = 0\.1072 \+ "),
        (RATE, "tpot_ms", 1e-3, r"E2E of 0\.409 s is far from TTFT \+ TPOT"),
        (RATE, "ttft_ms", 1e3, r"E2E of 0\.409 s is far from TTFT \+ TPOT"),
        (RATE, "_ms", 1e-7, "ttft_s: mean must be between 1e-07 s and a day, got 1.072e-08 s"),
        (RATE, "_ms", 1e9, "ttft_s: mean must be between 1e-07 s and a day"),
        (
            RATE,
            "output_throughput",
            1e3,
            r"token_per_s: 5\.545e\+04 tokens/s is far from 313 tokens in",
        ),
    ],
)
def test_inconsistent_numbers_are_refused(tmp_path: Path, name: str, part: str, factor: float, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        rows(with_changes(name, tmp_path, in_other_unit(name, factor, part)), model=None)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"[]", "line 1: must be a JSON object, got an array"),
        (b'{"a": 1}', "completed: no such field"),
        (b'{"a":\n\n 1', "line 3: ends early: the file is truncated"),
        (b'{"a":\n "x', "line 2: ends early: the file is truncated"),
        (b'{"a": 1,}', "line 1: is not valid JSON"),
        (b'{"a":\n"\xff"}', "line 2: must be UTF-8"),
        (b'{"a":' + b"[" * 100_000, "is nested too deeply"),
        (b'{"a":' + b"9" * 5000 + b"}", "holds a number of too many digits"),
    ],
)
def test_other_files_are_refused_with_their_line(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(content)
    with pytest.raises(SchemaError, match=rf"run\.json(, |: ){problem}"):
        rows(file, name="vllm_bench")


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_input, "MAX_DOCUMENT_BYTE", 100)
    with pytest.raises(SchemaError, match=r"default\.json: must be at most 100 bytes"):
        rows(sample(DEFAULT), model=None)


def test_the_results_of_a_folder_are_one_table(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(sample(DEFAULT).read_bytes())
    assert len(rows(tmp_path, model=None)) == 6


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sample(name).read_text().splitlines()]


def test_each_line_is_a_run() -> None:
    table = rows(sample(SWEEP), model=None)
    assert detect_format([sample(SWEEP)]).name == "sglang_bench"
    assert len(table) == 3 * 5
    means = table[table["statistic"] == "mean"]
    assert means["load"].tolist() == ["closed_loop", "closed_loop", "offline"]
    assert means["concurrency"].tolist()[:2] == [2, 4]
    for row, raw in zip(means.to_dict("records"), lines(SWEEP), strict=True):
        for name, column in SGLANG_COLUMNS.items():
            assert row[column] == pytest.approx(raw[f"mean_{name}_ms"] / 1000)
        assert row["total_throughput_token_per_s"] == raw["total_throughput"]


@pytest.mark.parametrize(
    ("file", "backend", "engine"),
    [
        (SGLANG, "sglang", "sglang"),
        (SGLANG, "sglang-oai", "sglang"),
        (SGLANG, "trt", "trtllm"),
        (SGLANG, "vllm", ""),  # any server of OpenAI's API
        (DETAILED, "tgi", "tgi"),
        (DETAILED, "openai-chat", ""),
    ],
)
def test_a_backend_of_one_engine_names_it(tmp_path: Path, file: str, backend: str, engine: str) -> None:
    changed = with_changes(file, tmp_path, {"backend": backend, "server_info": None, "engine": None})
    assert set(rows(changed, **(FROM_FILE if file == DETAILED else {}))["engine"]) == {engine}


def test_the_server_settings_are_read() -> None:
    first = rows(sample(SWEEP), model=None).iloc[0]
    assert first[["model", "engine", "engine_version"]].tolist() == ["Qwen/Qwen2.5-7B-Instruct", "sglang", "0.5.23"]
    assert first[["tp", "pp", "dp", "ep"]].tolist() == [2, 1, 1, 1]
    assert first["prefix_caching"] == "off"


def test_statistics_of_arrays_equal_those_of_sglang() -> None:
    table = by_statistic(rows(sample(SGLANG)))
    raw = lines(SGLANG)[0]
    for statistic, row in table.iterrows():
        for name, column in SGLANG_COLUMNS.items():
            key = f"median_{name}_ms" if statistic == "p50" else f"{statistic}_{name}_ms"
            assert row[column] == pytest.approx(raw[key] / 1000, rel=1e-9)
    assert table[["n_request", "n_failed"]].iloc[0].tolist() == [12, 1]
    assert table["engine"].iloc[0] == "sglang"


@pytest.mark.parametrize(
    ("name", "changes", "cells"),
    [
        (
            DEFAULT,
            {
                "spec_decode_acceptance_rate": 58.7, "spec_decode_acceptance_length": 2.76,
                "spec_decode_num_drafts": 14_840, "spec_decode_draft_tokens": 44_520,
            },
            {"n_speculative_token": 3, "acceptance_length": 2.76, "draft_acceptance_ratio": 0.587},
        ),
        (SGLANG, {"accept_length": 2.5}, {"acceptance_length": 2.5}),
        (
            SWEEP,
            {
                "accept_length": 2.5, "server_info.speculative_algorithm": "EAGLE3",
                "server_info.speculative_num_steps": 3,
            },
            {"acceptance_length": 2.5, "speculation": "eagle", "n_speculative_token": 3},
        ),
        (
            SGLANG, {"cache_report": {"total_prompt_tokens": 400, "total_cached_tokens": 100}},
            {"prefix_cache_ratio": 0.25},
        ),
    ],
)  # fmt: skip
def test_speculation_and_prefix_hits_are_kept(
    tmp_path: Path, name: str, changes: dict[str, Any], cells: dict[str, Any]
) -> None:
    row = rows(with_changes(name, tmp_path, changes), model="ours/tiny" if name == SGLANG else None).iloc[0]
    assert {column: row[column] for column in cells} == pytest.approx(cells)


def test_latencies_of_zero_are_left_blank_with_a_note(tmp_path: Path) -> None:
    zeros = {f"{name}_{metric}_ms": 0.0 for name in ("mean", "median", "p99") for metric in ("ttft", "itl")}
    table = by_statistic(rows(with_changes(DEFAULT, tmp_path, zeros), model=None))
    assert table[["ttft_s", "itl_s"]].isna().all(axis=None)
    assert (table["tpot_s"] > 0).all()
    assert set(table["derived"]) == {"tpot_s"}
    assert table["note"].str.contains("nothing was streamed: ttft_s, itl_s of 0 left blank").all()


def test_a_printed_table_is_a_run_as_the_saved_file_is() -> None:
    table = rows(sample("vllm_bench/printed.txt"))
    means = table[table["statistic"] == "mean"]
    assert means["concurrency"].tolist() == [4, 8]
    assert means["n_input_token"].tolist() == [1024, 1024]
    assert means["ttft_s"].tolist() == [0.1205, 0.15]
    assert means["n_speculative_token"].fillna(0).tolist() == [3, 0]
    assert means["itl_s"].fillna(0).tolist() == [0, 0.034]  # with speculation a gap is one between chunks
    row = rows(sample("sglang_bench/printed.txt")).iloc[0]
    assert row[["concurrency", "acceptance_length", "prefix_cache_ratio", "e2e_s"]].tolist() == [4, 2.8, 0.25, 2.95]


@pytest.mark.parametrize("prefix", ["bench-1  | ", "2026-11-01T10:00:00.123Z ", "[2026-11-01 10:00:00] "])
def test_what_loggers_put_before_lines_is_no_part_of_labels(tmp_path: Path, prefix: str) -> None:
    text = sample("vllm_bench/printed.txt").read_text()
    (file := tmp_path / "job.log").write_text("".join(prefix + line for line in text.splitlines(keepends=True)))
    pd.testing.assert_frame_equal(rows(file), rows(sample("vllm_bench/printed.txt")))


def test_thousands_between_commas_are_one_number(tmp_path: Path) -> None:
    text = sample("vllm_bench/printed.txt").read_text()
    (file := tmp_path / "table.txt").write_text(re.sub(r"(?<=[0-9])(?=[0-9]{3}(?:\.|$))", ",", text, flags=re.M))
    assert "," in file.read_text()
    pd.testing.assert_frame_equal(rows(file), rows(sample("vllm_bench/printed.txt")))


def test_results_that_vllm_appends_are_runs(tmp_path: Path) -> None:
    line = json.dumps(json.loads(sample(DEFAULT).read_text()))
    (file := tmp_path / "all.json").write_text(f"{line}\n{line}\n")
    assert len(rows(file, **FROM_FILE)) == 2 * len(rows(sample(DEFAULT), **FROM_FILE))


def test_a_run_of_sglang_without_a_completed_request_is_a_failed_row(tmp_path: Path) -> None:
    file = with_changes(SGLANG, tmp_path, {"completed": 0})
    assert rows(file, n_input_token=1000, n_output_token=30)["status"].tolist() == ["failed"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"mean_ttft_ms": "fast"}, "mean_ttft_ms"),
        ({"mean_e2e_latency_ms": 1e-3}, "e2e_s"),
        ({"server_info.tp_size": 1.5}, "tp"),
        ({"server_info.version": 5}, "server_info.version"),
        ({"server_info.model_path": "=x"}, "model"),
        ({"completed": None}, "completed"),
        ({"max_concurrency": 0.5}, "concurrency"),
        ({"p99_ttft_ms": 1e12}, "ttft_s"),
    ],
)
def test_an_invalid_line_is_refused_with_line_and_field(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        rows(with_changes(SWEEP, tmp_path, changes, line=2), model=None)
    assert (caught.value.field, caught.value.source, caught.value.line) == (field, "sweep.jsonl", 2)


def test_blank_lines_are_skipped_and_long_ones_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text("\n".join(f"{line}\n" for line in sample(SWEEP).read_text().splitlines()))
    assert len(rows(file, model=None)) == 15
    monkeypatch.setattr(json_input, "MAX_JSON_LINE_BYTE", 100)
    with pytest.raises(SchemaError, match="line 1: a line must be at most 100 bytes long"):
        rows(file, model=None)
    file.write_text("\n\n")
    with pytest.raises(SchemaError, match="is empty"):
        rows(file, name="sglang_bench")
