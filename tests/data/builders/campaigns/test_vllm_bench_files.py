from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.vllm_bench_files import (
    RAW,
    build_hikarioyama_pro6000,
    build_pillaiharish_5070ti,
    build_tsho_gemma4_tpu_a100,
)
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import check_shipped, needs_raw, one, rules

BUILDERS = {
    "hikarioyama_pro6000": build_hikarioyama_pro6000,
    "tsho_gemma4_tpu_a100": build_tsho_gemma4_tpu_a100,
    "pillaiharish_5070ti": build_pillaiharish_5070ti,
}


def write_run(file: Path, **fields: object) -> None:
    run = {
        "date": "20260820-015524", "model_id": "google/gemma-4-31B-it", "request_rate": "inf",
        "max_concurrency": None, "num_prompts": 16, "completed": 16, "failed": 0, "duration": 18.0,
        "total_input_tokens": 16 * 1024, "total_output_tokens": 16 * 128,
        "request_throughput": 16 / 18, "output_throughput": 16 * 128 / 18, "total_token_throughput": 16 * 1152 / 18,
        "mean_ttft_ms": 140.0, "median_ttft_ms": 141.0, "p99_ttft_ms": 160.0,
        "mean_tpot_ms": 16.6, "median_tpot_ms": 16.6, "p99_tpot_ms": 16.7,
    }  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(run | fields))


def test_last_of_three_runs_stands_for_a_configuration(tmp_path: Path) -> None:
    folder = tmp_path / RAW / "hikarioyama_pro6000" / "results"
    for part, model in (("maxq", "qwen38-nvfp4"), ("ws", "qwen38-nvfp4-ws")):
        for number in (1, 2, 3):
            file = folder / f"2026-08-20-{part}" / f"random-in1024-out128-c2-run{number}.json"
            write_run(file, model_id=model, max_concurrency=2, mean_ttft_ms=140.0 + number)
    result = build_hikarioyama_pro6000(tmp_path)
    assert rules(result) == {"repeated_run": 4}
    row = one(result.rows, stack="hikarioyama/maxq", statistic="mean")
    assert (row["model"], row["ttft_s"]) == ("Qwen/Qwen3.8-27B", 0.143)
    assert (row["power_limit_w"], row["kv_precision"], row["max_num_seqs"]) == (300, "bf16", 8)
    row = one(result.rows, stack="hikarioyama/ws", statistic="mean")
    assert (row["power_limit_w"], row["accelerator"]) == (600, "nvidia-rtx-pro-6000-blackwell-workstation")


def tsho(tmp_path: Path) -> BuildResult:
    folder = tmp_path / RAW / "tsho_gemma4_tpu_a100"
    write_run(folder / "20260426-222601-gemma4-tpu" / "result-short-rate1.json", request_rate=0.9)
    write_run(folder / "20260427-104816-gemma4-gpu" / "result-short-rateinf.json")
    write_run(folder / "20260427-104816-gemma4-gpu" / "result-long-rate1.json", request_rate=1, mean_ttft_ms=9e9)
    return build_tsho_gemma4_tpu_a100(tmp_path)


def test_rates_are_open_loops_and_an_infinite_rate_is_offline(tmp_path: Path) -> None:
    rows = tsho(tmp_path).rows
    row = one(rows, accelerator="google-tpu-v6e", statistic="mean")
    assert (row["load"], row["request_rate"], row["tp"], row["stack"]) == ("open_loop", 0.9, 4, "tsho/tpu")
    row = one(rows, accelerator="nvidia-a100-sxm-80gb")
    assert (row["load"], row["statistic"], row["output_throughput_token_per_s"]) == ("offline", "mean", 113.778)
    assert row[["ttft_s", "tpot_s"]].isna().all()


def test_run_that_contradicts_itself_is_rejected(tmp_path: Path) -> None:
    assert rules(tsho(tmp_path)) == {"implausible": 1}


def test_model_of_a_path_is_named(tmp_path: Path) -> None:
    file = tmp_path / RAW / "pillaiharish_5070ti" / "results" / "day06.json"
    write_run(file, model_id="models/Qwen/Qwen2.5-0.5B-Instruct", max_concurrency=2)
    rows = build_pillaiharish_5070ti(tmp_path).rows
    assert set(rows["model"]) == {"Qwen/Qwen2.5-0.5B-Instruct"}
    assert set(rows["concurrency"]) == {2}


@pytest.mark.parametrize("build", BUILDERS.values())
def test_missing_files_are_an_error(build: Callable[[Path], BuildResult], tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no file"):
        build(tmp_path)


@needs_raw
@pytest.mark.parametrize("name", BUILDERS)
def test_shipped_rows_match_published_files(name: str) -> None:
    check_shipped(name, BUILDERS[name])
