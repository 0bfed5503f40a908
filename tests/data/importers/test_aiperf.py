import json
import shutil
from pathlib import Path

import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import detect_format
from tests.data.importers.clients import by_statistic, rows, sample, with_changes

SUMMARY = "aiperf/concurrency_2.json"
RECORDS = "aiperf/concurrency_2.jsonl"
CSV = "aiperf/concurrency_2.csv"
SWEEP = "aiperf/sweep.csv"
SATURATED = "aiperf/rate_saturated.json"
LATENCIES = {
    "ttft_s": "time_to_first_token",
    "tpot_s": "inter_token_latency",
    "itl_s": "inter_chunk_latency",
    "e2e_s": "request_latency",
}
THROUGHPUTS = ["output_throughput_token_per_s", "total_throughput_token_per_s", "request_throughput_per_s"]


def test_a_summary_has_five_statistics() -> None:
    table = by_statistic(rows(sample(SUMMARY)))
    raw = json.loads(sample(SUMMARY).read_text())
    for statistic, row in table.iterrows():
        for column, metric in LATENCIES.items():
            key = "avg" if statistic == "mean" else str(statistic)
            assert row[column] == pytest.approx(raw[metric][key] / 1000)
    first = table.iloc[0]
    assert first[["load", "concurrency", "n_request", "n_failed"]].tolist() == ["closed_loop", 2, 16, 0]
    assert first[["date", "software", "note"]].tolist() == ["2026-11-20", "aiperf 0.13.0", "served as tiny-llama"]
    assert first["duration_s"] == raw["benchmark_duration"]["avg"]


def test_summary_requests_and_csv_of_one_run_agree() -> None:
    summary, records, text = (rows(sample(n), concurrency=2) for n in (SUMMARY, RECORDS, CSV))
    columns = [*LATENCIES, "n_input_token", "n_output_token", "n_output_token_at_statistic"]
    numbers = summary[columns].to_numpy(dtype=float)
    assert records[columns].to_numpy(dtype=float) == pytest.approx(numbers, rel=1e-9)
    assert text[columns].to_numpy(dtype=float) == pytest.approx(numbers, abs=1e-5)
    throughputs = [table[[*THROUGHPUTS, "duration_s"]].iloc[0].tolist() for table in (summary, records, text)]
    assert throughputs[1] == pytest.approx(throughputs[0], rel=2e-3)
    assert throughputs[2] == pytest.approx(throughputs[0], rel=2e-3)
    assert records["nttft_s_per_token"].notna().all()


def test_requests_of_the_warm_up_are_skipped(tmp_path: Path) -> None:
    phases = [json.loads(line)["metadata"]["benchmark_phase"] for line in sample(RECORDS).read_text().splitlines()]
    assert (phases.count("warmup"), phases.count("profiling")) == (2, 16)
    assert set(rows(sample(RECORDS), concurrency=2)["n_request"]) == {16}
    file = tmp_path / "warm.jsonl"
    file.write_text("\n".join(sample(RECORDS).read_text().splitlines()[:2]))
    with pytest.raises(SchemaError, match="no request of the phase 'profiling', only 2 of others"):
        rows(file, concurrency=2)


def test_failed_requests_are_counted(tmp_path: Path) -> None:
    file = with_changes(RECORDS, tmp_path, {"error": {"type": "Timeout"}, "metrics": {}}, line=5)
    assert rows(file, concurrency=2)[["n_request", "n_failed"]].iloc[0].tolist() == [16, 1]
    failed = [json.dumps(json.loads(line) | {"error": "x"}) for line in file.read_text().splitlines()]
    file.write_text("\n".join(failed))
    table = rows(file, concurrency=2, n_input_token=64, n_output_token=16)
    assert table[["status", "n_request", "n_failed"]].to_numpy().tolist() == [["failed", 16, 16]]
    one = rows(sample("aiperf/one_failed.json"))
    assert one[["n_request", "n_failed"]].iloc[0].tolist() == [8, 1]


def test_a_summary_without_success_is_a_failed_row(tmp_path: Path) -> None:
    changes = {"request_count": ..., "error_request_count": {"unit": "requests", "avg": 16.0}}
    changes |= dict.fromkeys(("input_sequence_length", "output_sequence_length"), ...)
    table = rows(with_changes(SUMMARY, tmp_path, changes), n_input_token=64, n_output_token=16)
    assert table[["status", "n_request", "n_failed"]].to_numpy().tolist() == [["failed", 16, 16]]


def test_a_saturated_open_loop_is_noted() -> None:
    first = rows(sample(SATURATED)).iloc[0]
    assert first[["load", "request_rate"]].tolist() == ["open_loop", 4]
    assert first["note"].endswith("asked for 4 requests/s, reached 1.01")


@pytest.mark.parametrize(("unit", "factor"), [("s", 1e-3), ("us", 1e3), ("ns", 1e6), ("sec", 1e-3)])
def test_metrics_are_read_by_their_unit(tmp_path: Path, unit: str, factor: float) -> None:
    raw = json.loads(sample(SUMMARY).read_text())["time_to_first_token"]
    other = {key: value * factor for key, value in raw.items() if key != "unit"} | {"unit": unit}
    table = rows(with_changes(SUMMARY, tmp_path, {"time_to_first_token": other}))
    assert table["ttft_s"].to_numpy() == pytest.approx(rows(sample(SUMMARY))["ttft_s"].to_numpy())


def test_the_table_of_a_sweep_has_the_mean_of_each_level() -> None:
    table = rows(sample(SWEEP))
    assert table["concurrency"].tolist() == [1, 2, 4, 8]
    assert set(table["statistic"]) == {"mean"}
    mean = rows(sample(SUMMARY)).iloc[0]
    columns = [*LATENCIES, *THROUGHPUTS]
    assert table.iloc[1][columns].tolist() == pytest.approx(mean[columns].tolist(), rel=1e-3)


def test_each_run_of_an_artifact_folder_is_read_once(tmp_path: Path) -> None:
    for level in (2, 8):
        run = tmp_path / f"concurrency_{level}"
        (run / "phases" / "profiling").mkdir(parents=True)
        for folder in (run, run / "phases" / "profiling"):
            shutil.copy(sample(f"aiperf/concurrency_{level}.json"), folder / "profile_export_aiperf.json")
            shutil.copy(sample(CSV), folder / "profile_export_aiperf.csv")
        shutil.copy(sample(RECORDS), run / "profile_export.jsonl")
        (run / "inputs.json").write_text('{"data": []}')
    (tmp_path / "sweep_aggregate").mkdir()
    shutil.copy(sample(SWEEP), tmp_path / "sweep_aggregate" / "profile_export_aiperf_sweep.csv")
    assert detect_format([tmp_path]).name == "aiperf"
    table = rows(tmp_path)
    assert table["concurrency"].tolist() == [2] * 5 + [8] * 5
    for run in tmp_path.glob("concurrency_*"):
        shutil.rmtree(run)
    assert rows(tmp_path)["concurrency"].tolist() == [1, 2, 4, 8]


def test_a_folder_without_artifacts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inputs.json").write_text('{"data": []}')
    with pytest.raises(SchemaError, match=r"inputs\.json: request_count: no such field"):
        rows(tmp_path, name="aiperf")
    with pytest.raises(SchemaError, match=r"inputs\.json: is in none of the known formats"):
        rows(tmp_path)


def test_a_missing_load_must_be_set(tmp_path: Path) -> None:
    file = with_changes(SUMMARY, tmp_path, {"input_config": {}, "run_info": {}})
    with pytest.raises(SchemaError, match=r"concurrency: is not in the file; .* --set conc"):
        rows(file)
    assert set(rows(file, concurrency=2)["load"]) == {"closed_loop"}
    assert set(rows(file, request_rate=2)["load"]) == {"open_loop"}
    assert set(rows(file, load="offline")["load"]) == {"offline"}


def test_numbers_with_thousands_separators_are_read(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    file.write_text(sample(CSV).read_text().replace("680.46", '"1,000.46"'))
    assert rows(file, concurrency=2)["ttft_s"].iloc[0] == pytest.approx(1.00046)


def test_a_request_rate_that_is_set_and_not_reached_is_noted() -> None:
    table = rows(sample("aiperf/concurrency_2.csv"), request_rate=1000)
    assert set(table["load"]) == {"open_loop"}
    assert set(table["note"].str.partition(",")[0]) == {"asked for 1e+03 requests/s"}
