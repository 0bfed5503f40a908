import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofcast.data.importers import detect_format
from roofcast.data.importers.guidellm import REQUEST_KEYS
from tests.data.importers.clients import by_statistic, rows, sample, with_changes

CONCURRENT = "guidellm/concurrent.json"
RATE = "guidellm/rate.json"
RATE_CSV = "guidellm/rate.csv"
FAILED = "guidellm/all_failed.json"
LATENCIES = ["ttft_s", "tpot_s", "itl_s", "e2e_s"]


def metrics(name: str, benchmark: int = 0) -> dict[str, Any]:
    benchmark_metrics: dict[str, Any] = json.loads(sample(name).read_text())["benchmarks"][benchmark]["metrics"]
    return benchmark_metrics


def test_each_benchmark_of_a_sweep_is_a_run() -> None:
    table = rows(sample(CONCURRENT))
    assert len(table) == 3 * 5
    assert table.drop_duplicates("concurrency")["concurrency"].tolist() == [1, 2, 4]
    assert set(table["load"]) == {"closed_loop"}
    assert set(table["software"]) == {"guidellm 0.8.1"}
    assert set(table["date"]) == {"2026-11-20"}
    assert set(table["note"]) == {"served as tiny-llama"}
    assert {detect_format([sample(name)]).name for name in (CONCURRENT, RATE_CSV)} == {"guidellm"}


def test_units_and_names_are_converted() -> None:
    table = by_statistic(rows(sample(RATE)))
    raw = metrics(RATE)
    assert table.loc["mean", "e2e_s"] == raw["request_latency"]["successful"]["mean"]
    assert table.loc["p95", "ttft_s"] == pytest.approx(
        raw["time_to_first_token_ms"]["successful"]["percentiles"]["p95"] / 1000
    )
    gap_ms = raw["inter_token_latency_ms"]["successful"]
    assert table[["tpot_s", "itl_s"]].iloc[0].tolist() == pytest.approx([gap_ms["mean"] / 1000] * 2)
    assert table.loc["p99", "tpot_s"] == pytest.approx(gap_ms["percentiles"]["p99"] / 1000)
    assert table["itl_s"].notna().tolist() == [True, False, False, False, False]
    assert table["derived"].tolist() == ["itl_s", "", "", "", ""]
    assert table.loc["mean", "output_throughput_token_per_s"] == 61.625


def test_the_tools_time_per_output_token_includes_the_first_and_is_not_used() -> None:
    raw = metrics(RATE)
    inclusive_s = raw["time_per_output_token_ms"]["successful"]["mean"] / 1000
    first = rows(sample(RATE)).iloc[0]
    assert inclusive_s > 8 * first["tpot_s"]
    assert first["e2e_s"] == pytest.approx(first["ttft_s"] + 15 * first["tpot_s"], rel=0.01)


def test_csv_and_json_of_one_run_agree() -> None:
    from_csv, from_json = rows(sample(RATE_CSV)), rows(sample(RATE))
    columns = [*LATENCIES, "n_input_token", "duration_s", "request_rate", "output_throughput_token_per_s"]
    assert from_csv[columns].to_numpy(dtype=float) == pytest.approx(
        from_json[columns].to_numpy(dtype=float), nan_ok=True
    )
    assert from_csv["note"].tolist() == from_json["note"].tolist()
    assert len(rows(sample("guidellm/concurrent_slow.csv"))) == 4 * 5


def test_a_run_as_json_and_csv_is_read_once(tmp_path: Path) -> None:
    for name in (RATE, RATE_CSV):
        shutil.copy(sample(name), tmp_path)
    assert len(rows(tmp_path)) == 5


def test_a_failed_sweep_has_failed_rows_without_throughput() -> None:
    table = rows(sample(FAILED))
    assert table["status"].tolist() == ["failed", "failed"]
    assert table[["n_request", "n_failed"]].to_numpy().tolist() == [[8, 8], [8, 8]]
    assert table[["n_input_token", "n_output_token"]].to_numpy().tolist() == [[64, 16], [64, 16]]
    assert table[[*LATENCIES, "total_throughput_token_per_s"]].isna().all().all()


def test_requests_have_equal_weight_in_statistics(tmp_path: Path) -> None:
    numbers = [(1.0, 500.0, 50.0, 100, 11), (2.6, 600.0, 100.0, 60, 21), (0.4, 400.0, None, 80, 1)]
    requests = [dict(zip(REQUEST_KEYS, values, strict=True)) for values in numbers]
    extra: dict[str, object] = {"request_id": "x", "request_args": "a secret", "output": "text"}
    start = "benchmarks.0."
    file = with_changes(
        RATE,
        tmp_path,
        {start + "requests.successful": [extra | r for r in requests],
         start + "metrics.request_totals.successful": 3,
         start + "metrics.output_token_count.successful.mean": 11.0,
         start + "metrics.output_tokens_per_second.successful.mean": 33 / 8},
    )  # fmt: skip
    table = by_statistic(rows(file))
    assert table.loc["mean", "tpot_s"] == pytest.approx(0.075)
    assert table.loc["p50", "e2e_s"] == 1.0
    assert table.loc["p90", "ttft_s"] == pytest.approx(np.percentile([0.5, 0.6, 0.4], 90))
    assert table.loc["mean", "nttft_s_per_token"] == pytest.approx((0.005 + 0.01 + 0.005) / 3)
