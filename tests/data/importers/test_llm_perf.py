"""Importer of llm-perf; the samples have made-up values in the layout of optimum-benchmark."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import detect_format, read_measurements
from tests.data.importers.clients import by_statistic, sample, with_changes

COMPLETE = "llm_perf/benchmark.json"
REPEATED = "llm_perf/benchmark_repeated.json"
FAILED = "llm_perf/benchmark_failed.json"
SEPARATE = "llm_perf/apart/benchmark_report.json"
SAMPLE_OVERRIDES = {
    "model": "ours/m", "accelerator": "nvidia-t4-16gb", "n_accelerator": 1, "concurrency": 2, "n_input_token": 64,
}  # fmt: skip


def rows(*files: Path, **overrides: object) -> pd.DataFrame:
    return read_measurements("llm_perf", files, "ours", overrides=overrides)


def values(name: str, phase: str) -> Any:
    return np.array(json.loads(sample(name).read_text())["report"][phase]["latency"]["values"])


def test_a_batch_has_all_statistics() -> None:
    table = by_statistic(rows(sample(COMPLETE)))
    assert list(table.index) == ["mean", "p50", "p90", "p95", "p99"]
    assert table.loc["mean", "ttft_s"] == pytest.approx(values(COMPLETE, "prefill").mean())
    assert table.loc["p90", "tpot_s"] == pytest.approx(np.percentile(values(COMPLETE, "decode") / 15, 90))
    assert table.loc["p99", "itl_s"] == pytest.approx(np.percentile(values(COMPLETE, "per_token"), 99))
    assert table.loc["p50", "nttft_s_per_token"] == pytest.approx(np.median(values(COMPLETE, "prefill")) / 64)
    assert table["e2e_s"].notna().tolist() == [True] + [False] * 4
    assert detect_format([sample(COMPLETE)]).name == "llm_perf"


def test_throughput_counts_first_tokens_and_prefill() -> None:
    row = rows(sample(COMPLETE)).iloc[0]
    e2e_s = (values(COMPLETE, "prefill") + values(COMPLETE, "decode")).mean()
    assert row["e2e_s"] == pytest.approx(e2e_s)
    assert row["output_throughput_token_per_s"] == pytest.approx(4 * 16 / e2e_s)
    assert row["total_throughput_token_per_s"] == pytest.approx(4 * (64 + 16) / e2e_s)
    assert row["request_throughput_per_s"] == pytest.approx(4 / e2e_s)
    throughputs = {f"{name}_token_per_s" for name in ("output_throughput", "total_throughput")}
    assert set(str(row["derived"]).split()) == {"e2e_s", "power_w", "request_throughput_per_s", *throughputs}


def test_repeated_gaps_yield_no_itl_and_a_measured_e2e_is_read() -> None:
    table = by_statistic(rows(sample(REPEATED)))
    assert table["itl_s"].isna().all()
    assert table["tpot_s"].notna().all()
    assert table.loc["p95", "e2e_s"] == pytest.approx(np.percentile(values(REPEATED, "generate"), 95))
    assert "e2e_s" not in str(table.loc["mean", "derived"])


@pytest.mark.parametrize(
    ("trace", "status"),
    [("torch.OutOfMemoryError: CUDA out of memory.", "out_of_memory"), ("KeyError: 'x'", "failed")],
)
def test_a_report_of_an_exception_is_a_row_without_outcomes(tmp_path: Path, trace: str, status: str) -> None:
    table = rows(with_changes(FAILED, tmp_path, {"report.traceback": trace}))
    assert table["status"].tolist() == [status]
    assert table["ttft_s"].isna().all()
    assert table["n_output_token"].tolist() == [64]


def test_the_configuration_of_a_report_is_read_from_its_folder() -> None:
    row = rows(sample(SEPARATE).parent).iloc[0]
    assert (row["concurrency"], row["n_output_token"], row["engine"]) == (2, 8, "transformers")
    assert {"tpot_s", "e2e_s"} <= set(row["derived"].split())


def test_a_report_without_configuration_needs_overrides() -> None:
    with pytest.raises(SchemaError, match=r"benchmark_report\.json: model: is not in the file; .*--set model="):
        rows(sample(SEPARATE))
    row = rows(sample(SEPARATE), **SAMPLE_OVERRIDES).iloc[0]
    assert (row["n_output_token"], row["concurrency"], row["n_accelerator"]) == (8, 2, 1)


def test_each_run_of_a_folder_is_read_once(tmp_path: Path) -> None:
    for run in ("a", "b"):
        shutil.copytree(sample(SEPARATE).parent, tmp_path / run)
    shutil.copy(sample(COMPLETE), tmp_path / "a" / "benchmark.json")
    table = rows(tmp_path)
    assert table[table["statistic"] == "mean"]["concurrency"].tolist() == [4, 2]


def test_a_configuration_without_a_report_is_refused() -> None:
    file = sample("llm_perf/apart/benchmark_config.json")
    assert detect_format([file]).name == "llm_perf"
    with pytest.raises(SchemaError, match=r"prefill\.latency: no such field: this is no report"):
        rows(file)


def test_different_devices_are_refused(tmp_path: Path) -> None:
    changes = {"config.environment.gpu": ["Tesla T4", "NVIDIA A10G"], "config.backend.device_ids": "0,1"}
    with pytest.raises(
        SchemaError, match=r"config\.environment\.gpu: must be of one kind, got Tesla T4, NVIDIA A10G"
    ):
        rows(with_changes(COMPLETE, tmp_path, changes))
    one = rows(with_changes(COMPLETE, tmp_path, changes | {"config.backend.device_ids": "1"}))
    assert set(one["accelerator"]) == {"nvidia-a10g-24gb"}


def test_milliseconds_in_place_of_seconds_are_refused(tmp_path: Path) -> None:
    raw = json.loads(sample(COMPLETE).read_text())["report"]
    in_ms = {
        f"report.{phase}.latency.{name}": raw[phase]["latency"][name] * 1000
        for phase in ("prefill", "decode")
        for name in ("mean", "p50", "p90", "p95", "p99")
    }
    with pytest.raises(SchemaError, match=r"report\.decode\.throughput\.value: gives 60000 tokens with its latency"):
        rows(with_changes(COMPLETE, tmp_path, in_ms))


def test_numbers_whose_product_overflows_are_refused(tmp_path: Path) -> None:
    huge = {"report.decode.throughput.value": 1e308, "report.decode.latency.mean": 1e308}
    with pytest.raises(SchemaError, match="n_output_token"):
        rows(with_changes(REPEATED, tmp_path, huge))
