"""Importer of MLPerf logs; the samples have random values in LoadGen's layout and belong to no submission."""

from __future__ import annotations

import math
import re
import tarfile
from pathlib import Path

import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import detect_format, mlperf, read_measurements
from tests.data.importers.clients import by_statistic, sample

SAMPLE_OVERRIDES = {
    "model": "meta-llama/Llama-2-70b-hf",
    "accelerator": "amd-mi300x-192gb",
    "n_accelerator": 8,
    "n_input_token": 294,
}
SERVER = "mlperf_summary/server_summary.txt"
OLD = "mlperf_summary/server_old_invalid_summary.txt"
OFFLINE = "mlperf_summary/offline_summary.txt"
SINGLE = "mlperf_summary/single_stream_summary.txt"


def rows(*files: Path, **overrides: object) -> pd.DataFrame:
    given = {key: value for key, value in {**SAMPLE_OVERRIDES, **overrides}.items() if value is not None}
    return read_measurements("mlperf_summary", files, "ours", overrides=given)


def read_log_value(name: str, label: str) -> float:
    match = re.search(rf"^{re.escape(label)}\s*: ([0-9.]+)$", sample(name).read_text(), flags=re.MULTILINE)
    assert match, label
    return float(match[1])


def with_edits(name: str, folder: Path, *changes: tuple[str, str]) -> Path:
    text = sample(name).read_text()
    for old, new in changes:
        text, n = re.subn(old, new, text, flags=re.MULTILINE)
        assert n, old
    file = folder / "mlperf_log_summary.txt"
    file.write_text(text)
    return file


def test_the_server_scenario_has_all_statistics_of_ttft_tpot_and_e2e() -> None:
    table = by_statistic(rows(sample(SERVER)))
    assert list(table.index) == ["mean", "p50", "p90", "p95", "p99"]
    assert table.loc["mean", "ttft_s"] == pytest.approx(read_log_value(SERVER, "Mean First Token latency (ns)") / 1e9)
    assert table.loc["p99", "ttft_s"] == pytest.approx(
        read_log_value(SERVER, "99.00 percentile first token latency (ns)") / 1e9
    )
    assert table.loc["mean", "tpot_s"] == pytest.approx(
        read_log_value(SERVER, "Mean Time per Output Token (ns)") / 1e9
    )
    assert table.loc["p90", "tpot_s"] == pytest.approx(
        read_log_value(SERVER, "90.00 percentile time to output token (ns)") / 1e9
    )
    assert table.loc["p95", "e2e_s"] == pytest.approx(read_log_value(SERVER, "95.00 percentile latency (ns)") / 1e9)


def test_the_server_scenario_is_an_open_loop_at_the_scheduled_rate() -> None:
    row = rows(sample(SERVER)).iloc[0]
    assert (row["load"], row["request_rate"], row["request_throughput_per_s"]) == ("open_loop", 9.62, 9.55)
    assert row["output_throughput_token_per_s"] == read_log_value(SERVER, "Completed tokens per second")
    assert row["n_output_token"] == pytest.approx(row["output_throughput_token_per_s"] / 9.55)
    assert row["note"] == "MLPerf Server; system under test OurSUT"
    assert detect_format([sample(SERVER)]).name == "mlperf_summary"


def test_without_a_scheduled_rate_the_target_rate_is_used(tmp_path: Path) -> None:
    file = with_edits(
        SERVER, tmp_path, (r"^Scheduled samples.*\n", ""), ("^Scenario : Server", "Scenario : Interactive")
    )
    row = rows(file).iloc[0]
    assert (row["request_rate"], row["note"][:18]) == (9.6, "MLPerf Interactive")


def test_the_note_of_an_invalid_result_has_the_broken_rules() -> None:
    table = by_statistic(rows(sample(OLD)))
    assert table.loc["mean", "tpot_s"] == pytest.approx(read_log_value(OLD, "Mean Time to Output Token (ns)") / 1e9)
    assert table["note"].iloc[0].endswith("result INVALID: performance constraints, early stopping")
    assert set(table["status"]) == {"ok"}


def test_a_rate_that_was_not_reached_and_errors_are_noted(tmp_path: Path) -> None:
    changes = (
        ("samples per second : 9.62", "samples per second : 12.5"),
        ("^No errors enc.*", "2 ERRORS encountered."),
    )
    note = rows(with_edits(SERVER, tmp_path, *changes))["note"].iloc[0]
    assert note.endswith("LoadGen counted 2 errors; asked for 12.5 requests/s, reached 9.55")


def test_the_offline_scenario_has_throughput_alone() -> None:
    table = rows(sample(OFFLINE))
    assert table["statistic"].tolist() == ["mean"]
    row = table.iloc[0]
    assert (row["load"], row["n_request"]) == ("offline", 4096)
    assert math.isnan(row["e2e_s"])
    assert row["request_throughput_per_s"] == read_log_value(OFFLINE, "Samples per second")
    assert row["output_throughput_token_per_s"] == read_log_value(OFFLINE, "Tokens per second")
    assert row["duration_s"] == pytest.approx(4096 / row["request_throughput_per_s"], rel=1e-5)


def test_the_single_stream_scenario_is_a_closed_loop_of_one() -> None:
    table = by_statistic(rows(sample(SINGLE)))
    row = table.loc["mean"]
    assert (row["load"], row["concurrency"]) == ("closed_loop", 1)
    assert row["output_throughput_token_per_s"] == read_log_value(SINGLE, "TPS w/ loadgen overhead")
    assert row["e2e_s"] == pytest.approx(row["ttft_s"] + row["tpot_s"] * (row["n_output_token"] - 1), rel=0.02)
    assert len(table) == 5


def test_columns_that_the_log_lacks_must_be_set() -> None:
    for column in SAMPLE_OVERRIDES:
        with pytest.raises(SchemaError, match=rf"server_summary\.txt: {column}: .* --set {column}="):
            rows(sample(SERVER), **{column: None})


def test_without_counted_tokens_the_output_length_must_be_set(tmp_path: Path) -> None:
    file = with_edits(SERVER, tmp_path, (r"^Completed tokens per second\s*: .*", "Completed tokens per second: 0.00"))
    with pytest.raises(SchemaError, match="n_output_token: is not in the file"):
        rows(file)
    row = rows(file, n_output_token=290).iloc[0]
    assert math.isnan(row["output_throughput_token_per_s"])
    assert row["ttft_s"] > 0


@pytest.mark.parametrize(
    ("change", "field", "problem", "line"),
    [
        (
            ("^Scenario : Server", "Scenario : MultiStream"),
            "Scenario",
            "must be one of Server, Int.*got 'MultiStream'",
            5,
        ),
        (("^Scenario : Server", ""), "Scenario", "must be one of Server", 0),
        (("^Mode     : .*", "Mode     : AccuracyOnly"), "Mode", "must measure speed, as PerformanceOnly does", 6),
        (("^Result is : VALID", "Result is : FINE"), "Result is", "must be VALID or INVALID, got 'FINE'", 9),
        (("^(Mean First Token latency .ns.\\s*): .*", r"\1: nan"), "Mean First Token latency (ns)", "got 'nan'", 38),
        (
            ("^(Mean latency .ns.\\s*): .*", r"\1: -5"),
            "Mean latency (ns)",
            "finite number of at least 0, got '-5'",
            27,
        ),
        (("^(Mean latency .ns.\\s*): .*", r"\1: 1e999"), "Mean latency (ns)", "got '1e999'", 27),
        (("^(Mean latency .ns.\\s*): .*", r"\1: ٣"), "Mean latency (ns)", "must be a finite number", 27),
        (
            ("^Mean latency .ns.", "Mean latency (ms)"),
            "Mean latency (ns)",
            "no such line, which this scenario has",
            0,
        ),
        (("^(Max latency .*)", r"\1\nMean latency (ns) : 7"), "Mean latency (ns)", "is '7' in line 27 and '1881", 28),
    ],
)
def test_an_invalid_log_is_refused_with_its_line(
    tmp_path: Path, change: tuple[str, str], field: str, problem: str, line: int
) -> None:
    with pytest.raises(SchemaError, match=problem) as caught:
        rows(with_edits(SERVER, tmp_path, change))
    assert (caught.value.field, caught.value.line) == (field, line)
    assert caught.value.source == "mlperf_log_summary.txt"


def test_times_in_other_units_are_refused(tmp_path: Path) -> None:
    in_us = (r"^(.*First Token latency \(ns\)\s*: \d+|.*first token latency \(ns\)\s*: \d+)\d{3}$", r"\1")
    in_ps = (r"^(.*Output Token \(ns\)\s*: \d+)$", r"\g<1>000")
    with pytest.raises(SchemaError, match=r"e2e_s: E2E of 18\.81 s is far from TTFT \+ TPOT"):
        rows(with_edits(SERVER, tmp_path, in_ps))
    assert (
        rows(with_edits(SERVER, tmp_path, in_us)).iloc[0]["ttft_s"] < 1e-3
    )  # too small a part of E2E to contradict it


def test_a_truncated_log_is_refused(tmp_path: Path) -> None:
    content = sample(SERVER).read_bytes()
    file = tmp_path / "log.txt"
    for share in (0.05, 0.3, 0.6, 0.9, 0.98):
        file.write_bytes(content[: int(share * len(content))])
        with pytest.raises(SchemaError, match=r"log\.txt.*(ends early|is no summary)"):
            rows(file)


def test_a_log_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlperf, "MAX_LOG_BYTE", 100)
    with pytest.raises(SchemaError, match="must be at most 100 bytes"):
        rows(sample(SERVER))


def test_accuracy_runs_of_a_folder_are_skipped(tmp_path: Path) -> None:
    for part, content in (("performance", sample(SERVER).read_bytes()), ("accuracy", b"No errors encountered.\n")):
        (tmp_path / part).mkdir()
        (tmp_path / part / "mlperf_log_summary.txt").write_bytes(content)
        (tmp_path / part / "mlperf_log_detail.txt").write_text(":::MLLOG {}\n")
    assert len(rows(tmp_path)) == 5
    (tmp_path / "performance" / "mlperf_log_summary.txt").unlink()
    with pytest.raises(SchemaError, match="is no summary of LoadGen"):
        rows(tmp_path)


def test_archives_are_read(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(sample(SERVER), "run/mlperf_log_summary.txt")
    assert len(rows(tmp_path)) == 5
