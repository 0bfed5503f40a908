from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import detect_format, json_input
from tests.data.importers.clients import by_statistic, rows, sample, with_changes

SWEEP = "sglang_bench/sweep.jsonl"
DETAILED = "sglang_bench/detailed.jsonl"
COLUMNS = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2e_latency": "e2e_s"}


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
        for name, column in COLUMNS.items():
            assert row[column] == pytest.approx(raw[f"mean_{name}_ms"] / 1000)
        assert row["total_throughput_token_per_s"] == raw["total_throughput"]


def test_the_server_settings_are_read() -> None:
    first = rows(sample(SWEEP), model=None).iloc[0]
    assert first[["model", "engine", "engine_version"]].tolist() == ["Qwen/Qwen2.5-7B-Instruct", "sglang", "0.5.23"]
    assert first[["tp", "pp", "dp", "ep"]].tolist() == [2, 1, 1, 1]
    assert first["prefix_caching"] == "off"


def test_statistics_of_arrays_equal_those_of_the_tool() -> None:
    table = by_statistic(rows(sample(DETAILED)))
    raw = lines(DETAILED)[0]
    for statistic, row in table.iterrows():
        for name, column in COLUMNS.items():
            key = f"median_{name}_ms" if statistic == "p50" else f"{statistic}_{name}_ms"
            assert row[column] == pytest.approx(raw[key] / 1000, rel=1e-9)
    assert table[["n_request", "n_failed"]].iloc[0].tolist() == [12, 1]
    assert table["engine"].iloc[0] == ""


def test_speculative_decoding_is_noted(tmp_path: Path) -> None:
    assert "speculative decoding" in rows(with_changes(DETAILED, tmp_path, {"accept_length": 2.5}))["note"].iloc[0]


def test_a_run_without_a_completed_request_is_a_failed_row(tmp_path: Path) -> None:
    file = with_changes(DETAILED, tmp_path, {"completed": 0})
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


def test_a_truncated_line_is_refused_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(sample(SWEEP).read_text()[:-30])
    with pytest.raises(SchemaError, match=r"run\.jsonl, line 3: (ends early|is not valid JSON)"):
        rows(file, model=None)


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
