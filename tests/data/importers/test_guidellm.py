import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofcast.data.errors import SchemaError
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


def test_an_open_loop_has_a_request_rate_and_a_note_on_cancelled_requests() -> None:
    first = rows(sample(RATE)).iloc[0]
    assert (first["load"], first["request_rate"], first["request_throughput_per_s"]) == ("open_loop", 4, 3.75)
    assert first["note"] == "served as tiny-llama; 2 requests were cut off at the end"
    assert first[["n_request", "n_failed"]].tolist() == [31, 0]


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


@pytest.mark.parametrize(
    ("strategy", "load", "column", "value"),
    [
        ({"type_": "synchronous"}, "closed_loop", "concurrency", 1),
        ({"type_": "concurrent", "streams": 16}, "closed_loop", "concurrency", 16),
        ({"type_": "poisson", "rate": 3.8}, "open_loop", "request_rate", 3.8),
        ({"type_": "throughput", "max_concurrency": None}, "offline", "n_request", 31),
    ],
)
def test_strategies_determine_the_load(
    tmp_path: Path, strategy: dict[str, Any], load: str, column: str, value: float
) -> None:
    changes = {"benchmarks.0.config.strategy": strategy, "benchmarks.0.metrics.request_latency.successful.mean": 0.25}
    changes["benchmarks.0.metrics.time_to_first_token_ms.successful.mean"] = 150.0
    first = rows(with_changes(RATE, tmp_path, changes)).iloc[0]
    assert (first["load"], first[column]) == (load, value)


B = "benchmarks.0."


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({B + "config.strategy.type_": "burst"}, "benchmarks[0].config.strategy.type_", "must be one of synchronous"),
        ({B + "config.strategy.rate": 0}, "benchmarks[0].config.strategy.rate", "must be a rate above 0"),
        ({B + "metrics.request_totals": ...}, "benchmarks[0].metrics.request_totals.successful", "must be given"),
        ({B + "start_time": 1e300}, "benchmarks[0].start_time", "must be a date such as"),
        ({B + "metrics.time_to_first_token_ms.successful.mean": -1},
         "benchmarks[0].metrics.time_to_first_token_ms.successful.mean", "finite number of at least 0, got -1"),
        ({B + "metrics.request_latency.successful.mean": 890.97}, "e2e_s", "is far from TTFT"),
        ({B + "metrics.time_to_first_token_ms.successful": [1]},
         "benchmarks[0].metrics.time_to_first_token_ms.successful", "must be an object, got an array"),
        ({"benchmarks": []}, "benchmarks", "holds no benchmark"),
        ({"benchmarks": {"a": 1}}, "benchmarks", "must be an array"),
        ({"metadata": {}}, "metadata", "no guidellm_version: this is no report of GuideLLM"),
        ({"config.spec.backend.model": 3}, "config.spec.backend.model", "must be a text"),
    ],
)  # fmt: skip
def test_an_invalid_report_is_refused_with_its_path(
    tmp_path: Path, changes: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(SchemaError, match=problem) as caught:
        rows(with_changes(RATE, tmp_path, changes), name="guidellm")
    assert (caught.value.field, caught.value.source) == (field, "rate.json")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("constant@4.00", "constant@fast", "line 4: Benchmark, Strategy: must be a finite number"),
        ("constant@4.00", "constant", r"benchmarks\[0\].config.strategy.rate: must be a rate above 0"),
        (",31,", ",-31,", "line 4: Request Counts, Successful: must be a finite number"),
        ('"[', '"[0.1, ', "Percentiles: must list 11 numbers: min, p001"),
        ('"[', '"[[', "Percentiles: is not valid JSON"),
        (",31,", ",", "line 4: must have .* cells as the header has"),
        ("Successful,", "Successes,", "line 1: is no CSV report of GuideLLM"),
        ("2026-11-20 04:55:24", "noon", "line 4: Timings, Start Time: must be a date such as"),
    ],
)
def test_an_invalid_csv_is_refused_with_line_and_column(tmp_path: Path, old: str, new: str, problem: str) -> None:
    file = tmp_path / "rate.csv"
    text = sample(RATE_CSV).read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(SchemaError, match=rf"rate\.csv.*{problem}"):
        rows(file, name="guidellm")
