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


def test_a_run_without_a_completed_request_is_a_failed_row(tmp_path: Path) -> None:
    file = with_changes(DEFAULT, tmp_path, {"completed": 0, "failed": 12, "mean_ttft_ms": 0.0})
    with pytest.raises(SchemaError, match=r"n_input_token: is not in the file; .* --set n_input"):
        rows(file, model=None)
    table = rows(file, model=None, n_input_token=1000, n_output_token=30)
    assert table[["status", "n_request", "n_failed"]].to_numpy().tolist() == [["failed", 12, 12]]
    assert table["ttft_s"].isna().all()


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


def test_statistics_of_arrays_equal_those_of_sglang() -> None:
    table = by_statistic(rows(sample(SGLANG)))
    raw = lines(SGLANG)[0]
    for statistic, row in table.iterrows():
        for name, column in SGLANG_COLUMNS.items():
            key = f"median_{name}_ms" if statistic == "p50" else f"{statistic}_{name}_ms"
            assert row[column] == pytest.approx(raw[key] / 1000, rel=1e-9)
    assert table[["n_request", "n_failed"]].iloc[0].tolist() == [12, 1]
    assert table["engine"].iloc[0] == "sglang"


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
