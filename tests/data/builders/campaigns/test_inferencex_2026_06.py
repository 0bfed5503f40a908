from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.inferencex_2026_06 import LATENCIES, MODELS, RAW, STATISTICS, build_inferencex_2026_06
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules

SECONDS = {"TTFT": 0.05, "TPOT": 0.004, "ITL": 0.0041, "E2E Latency": 3.7}
GPT_RERUN = "results__gptoss_h200_vllm22.0_sweep1__x__gptoss_fp4_h200_tp4_conc8_isl1024_osl1024.json"
R1_RERUN = "results__deepseekr1_h200_sglang5.12_sweep1__x__gptoss_fp4_h200_tp8_conc8_isl1024_osl1024.json"


def a_snapshot(model: str, engine: str) -> str:
    cells = {
        "Model": model, "ISL": "1024", "OSL": "1024", "Framework": engine, "Precision": "fp4", "TP": "8", "EP": "1",
        "Concurrency": "4", "Date": "2026-06-05", "Throughput/GPU (tok/s)": "250",
        "Output Throughput/GPU (tok/s)": "124",
    }  # fmt: skip
    for statistic in STATISTICS.values():
        cells |= {f"{statistic} {name} (ms)": str(SECONDS[name]) for name in LATENCIES.values()}
    return "\n".join(["# Licensed under Apache License 2.0", ",".join(cells), ",".join(cells.values())])


def a_rerun() -> str:
    latencies = {
        f"{statistic}_{name}_ms": 1000 * value
        for statistic in ("mean", "median", "p90", "p99")
        for name, value in {"ttft": 0.2, "tpot": 0.0075, "itl": 0.0086, "e2el": 7.0}.items()
    }
    totals = {
        "completed": 80, "duration": 74.0, "num_prompts": 80, "max_concurrency": 8, "request_rate": "inf",
        "total_input_tokens": 73777, "total_output_tokens": 73665, "date": "20260611-060111",
        "request_throughput": 80 / 74, "output_throughput": 73665 / 74, "total_token_throughput": 147442 / 74,
    }  # fmt: skip
    return json.dumps({"backend": "vllm", "model_id": "/models/x", **totals, **latencies})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inferencex")
    (folder / RAW).mkdir(parents=True)
    for model, engine in zip(MODELS, ("vllm", "sglang"), strict=True):
        file = folder / RAW / f"results__InferenceX_results_snapshot__InferenceX_{model}_e2e.csv"
        file.write_text(a_snapshot(model, engine))
    (folder / RAW / GPT_RERUN).write_text(a_rerun())
    (folder / RAW / R1_RERUN).write_text(a_rerun())
    return folder


@pytest.fixture(scope="module")
def result(root: Path) -> BuildResult:
    return build_inferencex_2026_06(root)


def test_all_rows_are_read(result: BuildResult) -> None:
    assert (result.n_read, len(result.rows), rules(result)) == (4, 14, {})


def test_columns_of_the_nightly_are_seconds(result: BuildResult) -> None:
    row = one(result.rows, stack="inferencex", engine="vllm", statistic="mean")
    assert (row["ttft_s"], row["tpot_s"], row["e2e_s"], row["itl_s"]) == (0.05, 0.004, 3.7, 0.0041)
    assert (row["output_throughput_token_per_s"], row["n_input_token"], row["n_request"]) == (992, 921.6, 40)


def test_rerun_is_another_stack(result: BuildResult) -> None:
    row = one(result.rows, stack="heyram74/nebius", engine="vllm", statistic="mean")
    assert (row["engine_version"], row["tp"], row["concurrency"], row["date"]) == ("0.22.0", 4, 8, "2026-06-11")
    assert (row["model"], row["ttft_s"], row["note"]) == ("openai/gpt-oss-120b", 0.2, "")


def test_chunks_of_sglang_are_no_tokens(result: BuildResult) -> None:
    assert result.rows.loc[result.rows["engine"] == "sglang", "itl_s"].isna().all()


def test_rerun_without_deployment_raises_schema_error(tmp_path: Path, root: Path) -> None:
    (tmp_path / RAW).mkdir(parents=True)
    for file in (root / RAW).glob("*.csv"):
        (tmp_path / RAW / file.name).write_text(file.read_text())
    (tmp_path / RAW / "results__other_tp8_.json").write_text(a_rerun())
    with pytest.raises(SchemaError, match="must be named after its deployment"):
        build_inferencex_2026_06(tmp_path)


def test_missing_snapshot_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_inferencex_2026_06(tmp_path)
