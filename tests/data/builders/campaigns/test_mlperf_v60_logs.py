from __future__ import annotations

import math
import shutil
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.mlperf_inference import RAW as TABLES_RAW
from builders.campaigns.mlperf_inference import TABLES
from builders.campaigns.mlperf_v60_logs import DESCRIPTIONS, INPUT_LENGTHS, RAW, build_mlperf_v60_logs
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules

HEADER = "round,id,org,system,accel,n_accel,nodes,model,scenario,units,result,division,availability,label\n"
TABLE = HEADER + "".join(
    f"v6.0,v6.0-1,{org},{system},{accel},{n},{nodes},{model},{scenario},{units},{result},Closed,available,\n"
    for org, system, accel, n, nodes, model, scenario, units, result in (
        ("Ours", "Rack (TensorRT)", "NVIDIA GB300", 8, 2, "gpt-oss-120b", "Server", "Tokens/s", 2000),
        ("Ours", "Cards-450W", "Intel(R) Arc Pro(R) B70", 4, 1, "llama3.1-8b", "Offline", "Samples/s", 10),
        ("Other", "Mixed", "MI300X and MI355X", 16, 2, "llama2-70b-99", "Offline", "Tokens/s", 1000),
    )
)

LOG = """MLPerf Results Summary
SUT name : PySUT
Scenario : {scenario}
Mode     : PerformanceOnly
{words}amples per second{spaces}: {samples}
{tokens_words}okens per second: {tokens}
Result is : {verdict}
Scheduled samples per second : 2.5
Mean latency (ns)                : 9000000000
50.00 percentile latency (ns)   : 8000000000
Mean First Token latency (ns)               : 500000000
Mean Time per Output Token (ns)               : 10000000
No errors encountered during test.
"""


def a_log(scenario: str, samples: float, tokens: float, verdict: str = "VALID") -> str:
    is_server = scenario == "Server"
    return LOG.format(
        scenario=scenario, words="Completed s" if is_server else "S", spaces="    ", samples=samples,
        tokens_words="Completed t" if is_server else "T", tokens=tokens, verdict=verdict,
    )  # fmt: skip


def name_of(submitter: str, system: str, benchmark: str, scenario: str) -> str:
    return (
        f"closed__{submitter}__results__{system}__{benchmark}__{scenario}__performance__run_1__mlperf_log_summary.txt"
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lengths = tmp_path / TABLES_RAW / "dataset_token_lengths"
    shutil.copytree(INFERENCE / TABLES_RAW / "dataset_token_lengths", lengths)
    (lengths / INPUT_LENGTHS["gpt-oss-120b"]).write_text("input_length\n100\n300\n")
    (tmp_path / TABLES_RAW / TABLES).write_text(TABLE)
    (tmp_path / RAW).mkdir(parents=True)
    (tmp_path / DESCRIPTIONS).parent.mkdir(parents=True, exist_ok=True)
    url = "https://github.com/x/y/blob/main/closed/Ours/results/rack/gpt-oss-120b/Server/performance/run_1/log.txt"
    (tmp_path / DESCRIPTIONS).write_text(
        f'source_url,weight_precision,software\n{url},fp4,"TensorRT 10.14, vLLM 0.14.1"\n'
    )
    return tmp_path


def build(root: Path, logs: dict[str, str]) -> BuildResult:
    for name, text in logs.items():
        (root / RAW / name).write_text(text)
    return build_mlperf_v60_logs(root)


def test_table_and_description_complete_a_log(root: Path) -> None:
    result = build(root, {name_of("Ours", "rack", "gpt-oss-120b", "Server"): a_log("Server", 2.0, 2000.0)})
    row = one(result.rows, statistic="mean")
    assert (row["accelerator"], row["n_accelerator"], row["n_node"]) == ("nvidia-gb300", 8, 2)
    assert (row["engine"], row["engine_version"], row["weight_precision"]) == ("trtllm", "", "fp4")
    assert (row["n_input_token"], row["n_output_token"], row["request_rate"]) == (200, 1000, 2.5)
    assert (row["stack"], row["load"], row["output_throughput_token_per_s"]) == ("mlperf/ours", "open_loop", 2000)
    assert math.isnan(row["length_variation"])
    assert one(result.rows, statistic="p50")["e2e_s"] == 8.0


def test_table_in_samples_per_second_and_power_limit(root: Path) -> None:
    result = build(root, {name_of("Ours", "cards", "llama3_1-8b", "offline"): a_log("Offline", 10.0, 1280.0)})
    row = one(result.rows, statistic="mean")
    assert (row["accelerator"], row["n_accelerator"], row["power_limit_w"]) == ("intel-arc-pro-b70-32gb", 4, 450)
    assert row["length_variation"] > 0
    assert pd.isna(row["e2e_s"])


def test_rejections_by_rule(root: Path) -> None:
    result = build(
        root,
        {
            name_of("Ours", "rack", "gpt-oss-120b", "Server"): a_log("Server", 2.0, 2000.0),
            name_of("Ours", "rack", "gpt-oss-120b", "Interactive"): a_log("Server", 1.0, 1000.0, "INVALID"),
            name_of("Other", "mixed", "llama2-70b-99", "Offline"): a_log("Offline", 4.0, 1000.0),
            name_of("Other", "mixed", "llama2-70b-99.9", "Offline"): a_log("Offline", 4.0, 1000.0),
        },
    )
    assert rules(result) == {"invalid_result": 1, "unknown_accelerator": 1, "same_run_twice": 1}


def test_run_of_other_campaign_keeps_latencies_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = pd.DataFrame(
        {
            "stack": "mlperf/ours",
            "model": ["openai/gpt-oss-120b", "openai/gpt-oss-120b"],
            "load": ["open_loop", "offline"],
            "output_throughput_token_per_s": [2000.0, 3000.0],
            "date": "2026",
        }
    )
    monkeypatch.setattr("builders.campaigns.mlperf_v60_logs.load_campaigns", lambda _: known)
    result = build(
        root,
        {
            name_of("Ours", "rack", "gpt-oss-120b", "Server"): a_log("Server", 2.0, 2000.0),
            name_of("Ours", "rack", "gpt-oss-120b", "Offline"): a_log("Offline", 3.0, 3000.0),
        },
    )
    assert rules(result) == {"repeats_other_campaign": 1}
    row = one(result.rows, statistic="mean")
    assert math.isnan(row["output_throughput_token_per_s"])
    assert (row["ttft_s"], row["request_throughput_per_s"]) == (0.5, 2.0)


def test_missing_logs_raise_schema_error(root: Path) -> None:
    with pytest.raises(SchemaError, match="has no logs"):
        build_mlperf_v60_logs(root)


@pytest.mark.slow
@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("mlperf_v60_logs", build_mlperf_v60_logs)
