from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.deplodock import RAW, build_deplodock
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules

TASK = """============ Benchmark Task ============
gpu_name: NVIDIA B200
==================================================
"""
RESULT = """============ Serving Benchmark Result ============
Successful requests:                     {done}
Maximum request concurrency:             8
Benchmark duration (s):                  646.79
Total input tokens:                      320000
Total generated tokens:                  320000
Output token throughput (tok/s):         494.75
---------------Time to First Token----------------
Mean TTFT (ms):                          1767.85
Median TTFT (ms):                        853.28
P99 TTFT (ms):                           11710.34
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          15.73
Median TPOT (ms):                        15.70
P99 TPOT (ms):                           16.34
==================================================

============ Docker Compose Configuration ============
services:
"""
SERVICE = """  {engine}_0:
    image: {image}
    command: >
      {options}
    healthcheck:
      test: ["CMD"]
"""
COMMAND = """============ Benchmark Command ============
vllm bench serve
    --model {model}
    --max-concurrency 8
    --num-prompts 80
    --random-input-len 4000
    --random-output-len 4000
"""


def a_file(file: Path, services: str, model: str, done: int = 80, task: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(task + RESULT.format(done=done) + services + COMMAND.format(model=model))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    root = tmp_path_factory.mktemp("deplodock")
    kimi = "nvidia/Kimi-K2.5-NVFP4"
    options = (
        "--tp 4 --pp-size 1 --dp 1 --context-length 262144 --max-running-requests 32 --disable-radix-cache"
        " --kv-cache-dtype bf16"
    )
    sglang = SERVICE.format(engine="sglang", image="lmsysorg/sglang:v0.5.9", options=options)
    file = root / RAW / "experiments/x/2026-03-09_06-38-55_e57/b200x4_sglang_benchmark.txt"
    a_file(file, sglang, kimi, task=TASK)
    options = "--tensor-parallel-size 8 --max-model-len 8192 --max-model-len 16384 --enable-expert-parallel"
    vllm = SERVICE.format(engine="vllm", image="vllm/vllm-openai:latest", options=options)
    folder = root / RAW / "results/pro6000_h100_h200_b200_01_2026/h100"
    a_file(folder / "h100_x_8_GLM_vllm_benchmark.txt", vllm, "zai-org/GLM-4.6-FP8", done=79)
    a_file(folder / "pro6000_x_8_GLM_vllm_benchmark.txt", vllm, "zai-org/GLM-4.6-FP8")
    a_file(folder / "h100_x_2_GLM_vllm_benchmark.txt", vllm + vllm.replace("_0", "_1"), "zai-org/GLM-4.6-FP8")
    return build_deplodock(root)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"replicas": 1, "unknown_accelerator": 1}
    assert result.n_read == 4


def test_options_of_sglang(result: BuildResult) -> None:
    row = one(result.rows, engine="sglang", statistic="mean")
    assert (row["engine_version"], row["n_accelerator"], row["tp"], row["max_num_seqs"]) == ("0.5.9", 4, 4, 32)
    assert (row["prefix_caching"], row["kv_precision"], row["weight_precision"]) == ("off", "bf16", "fp4")
    assert (row["date"], row["stack"]) == ("2026-03-09", "deplodock/b200-sxm-180gb_sglang")


def test_latest_image_has_no_version_and_the_last_option_holds(result: BuildResult) -> None:
    row = one(result.rows, engine="vllm", statistic="mean")
    assert (row["engine_version"], row["max_context_token"], row["ep"], row["date"]) == ("", 16384, 8, "2026-01")
    assert (row["n_request"], row["n_failed"], row["accelerator"]) == (80, 1, "nvidia-h100-sxm-80gb")


def test_lengths_are_those_of_requests_that_succeeded(result: BuildResult) -> None:
    rows = result.rows[result.rows["statistic"] == "mean"].set_index("engine")
    assert (rows.at["sglang", "n_output_token"], rows.at["sglang", "length_variation"]) == (4000, 0)
    assert rows["length_variation"].isna()["vllm"]


def test_statistics_in_seconds(result: BuildResult) -> None:
    rows = result.rows[result.rows["engine"] == "sglang"].set_index("statistic")
    assert rows["ttft_s"].to_dict() == {"mean": 1.76785, "p50": 0.85328, "p99": 11.7103}
    assert rows.at["mean", "output_throughput_token_per_s"] == 494.75


def test_missing_files_raise_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="holds no benchmark"):
        build_deplodock(tmp_path)


def test_file_without_result_raises_schema_error(tmp_path: Path) -> None:
    (tmp_path / RAW).mkdir(parents=True)
    (tmp_path / RAW / "x_benchmark.txt").write_text(TASK)
    with pytest.raises(SchemaError, match="must have the section Serving Benchmark Result"):
        build_deplodock(tmp_path)
