from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.llmperf_homelab import RAW, SETS, build_llmperf_homelab
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules

LLAMA = "unsloth/Meta-Llama-3.1-8B-Instruct"
CODER = "Qwen/Qwen2.5-Coder-14B-Instruct"
Run = tuple[object, ...]
COLUMNS = (
    "timestamp", "model", "gpu_info", "mean_output_tokens", "num_concurrent_requests", "completed_requests",
    "completed_requests_per_min", "mean_latency", "ttft", "raw_results", "data_type",
)  # fmt: skip
SCHEMA = f"create table benchmark_runs (id integer primary key, {', '.join(COLUMNS)})"
INSERT = "insert into benchmark_runs values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def a_run(
    minute: int, model: str, gpu: str, tpot_s: float, *, n_counted: float = 180.0, n_latency: float = 2.5
) -> Run:
    """Return a run whose duration is a number of latencies."""
    ttft_s, e2e_s = 1.0, 1.0 + 149 * tpot_s
    results = {
        "number_input_tokens": {"mean": 600.0},
        "number_output_tokens": {"mean": n_counted},
        "number_errors": 0,
    }
    raw = json.dumps({"stddev_output_tokens": 15, "results": results})
    per_min = 60 * 64 / (n_latency * e2e_s)
    return f"2024-12-18T08:{minute:02}:00", model, gpu, 150, 64, 64, per_min, e2e_s, ttft_s, raw, "BF16"


def write(file: Path, *runs: Run) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(SCHEMA)
        connection.executemany(INSERT, runs)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    root = tmp_path_factory.mktemp("llmperf")
    (root / RAW).mkdir(parents=True)
    runs = {
        "results.db": [
            a_run(0, LLAMA, "A40", 0.09),
            a_run(1, LLAMA, "A40", 0.03),
            a_run(2, LLAMA, "A40", 0.05),
            a_run(3, LLAMA, "A40", 0.04),
            a_run(4, LLAMA, "A40", 0.02, n_latency=4.0),
            a_run(5, CODER, "A40", 0.09),
            a_run(6, CODER, "A40", 0.06, n_counted=150.0),
        ],
        "results_vLLM.db": [a_run(0, LLAMA, "A40", 0.05), a_run(1, LLAMA, "A40", 0.07)],
        "results__results_various_models_mixed.db": [
            a_run(0, LLAMA, "(runpod) RTX 3090", 0.09),
            a_run(1, LLAMA, "(runpod) RTX 3090", 0.03),
            a_run(2, LLAMA, "RTX A5000 + RTX 3090", 0.09),
            a_run(3, LLAMA, "RTX A5000 + RTX 3090", 0.03),
        ],
    }
    for name in SETS:
        write(root / RAW / name, *runs.get(name, []))
    return build_llmperf_homelab(root)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"first_run": 4, "length_unknown": 1, "client_bound": 1, "unknown_accelerator": 1}
    assert result.n_read == 13


def test_repeats_with_cached_prompts_are_one_row_of_the_median(result: BuildResult) -> None:
    row = one(result.rows, stack="trelis/sglang")
    assert row["tpot_s"] == pytest.approx(0.04)
    assert row[["ttft_s", "e2e_s", "output_throughput_token_per_s"]].isna().all()
    assert (row["engine"], row["prefix_caching"], row["prefix_cache_ratio"]) == ("sglang", "on", 499 / 500)


def test_lengths_are_in_tokens_of_the_engine(result: BuildResult) -> None:
    row = one(result.rows, stack="trelis/sglang")
    assert (row["n_input_token"], row["n_output_token"], row["length_variation"]) == (500, 150, 0.1)


def test_first_run_counts_where_prompts_are_not_cached(result: BuildResult) -> None:
    row = one(result.rows, stack="trelis/vllm")
    assert row["tpot_s"] == pytest.approx(0.06)
    assert row["prefix_caching"] == ""


def test_runpod_host_is_a_stack_of_its_own(result: BuildResult) -> None:
    row = one(result.rows, accelerator="nvidia-rtx-3090-24gb")
    assert (row["stack"], row["engine"]) == ("tech_grandpa/runpod", "")


def test_missing_data_base_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_llmperf_homelab(tmp_path)


def test_other_data_base_raises_schema_error(tmp_path: Path) -> None:
    (tmp_path / RAW).mkdir(parents=True)
    with closing(sqlite3.connect(tmp_path / RAW / "results.db")) as connection, connection:
        connection.execute("create table other (id integer)")
    with pytest.raises(SchemaError, match="must be a data base of benchmark runs"):
        build_llmperf_homelab(tmp_path)
