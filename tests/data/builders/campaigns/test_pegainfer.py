from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pegainfer import JULY, JUNE, RAW, build_pegainfer
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules

JUNE_PAGE = """# Qwen3.5-4B serving
## PegaInfer Direct A/B
| Workload | Metric | upstream/main |
| --- | --- | ---: |
| 1 input / 256 output | steady TPOT avg | 6.524 ms |
## HTTP Concurrency Sweep
| Max concurrency | pegainfer TTFT mean | vLLM TTFT mean | pegainfer TPOT mean | vLLM TPOT mean | pegainfer output tok/s | vLLM output tok/s |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| 2 | 82.07 ms | 97.64 ms | 8.146 ms | **7.148 ms** | 237.06 | **266.55** |
"""  # noqa: E501
JULY_PAGE = """# Qwen3.5-4B serving
## Fixed / Concurrency
| Cell | ok OI/vLLM | fail OI/vLLM | avg in OI/vLLM | TPOT ms OI/vLLM | out tok/s OI/vLLM | ITL p99 OI/vLLM |
| --- | --- | --- | --- | --- | --- | --- |
| 1024/256 c8 | 24/24 | 0/0 | 998.8/1024.0 | 11.67/8.39 | 624/825 | 58.49/11.85 |
| 2048/1 c1 | 12/12 | 0/0 | 1955.5/2048.0 | 0.00/0.00 | 10/9 | 0.04/0.00 |
## QPS Sweep
| QPS | ok OI/vLLM | fail OI/vLLM | avg in OI/vLLM | TPOT ms OI/vLLM | out tok/s OI/vLLM | ITL p99 OI/vLLM |
| --- | --- | --- | --- | --- | --- | --- |
| 4 | 24/24 | 0/0 | 998.8/1024.0 | 11.28/9.18 | 321/345 | 59.54/79.74 |
## Overload And Recovery
| Cell | ok OI/vLLM | fail OI/vLLM | TPOT ms OI/vLLM | out tok/s OI/vLLM |
| --- | --- | --- | --- | --- |
| 1024/256 c32 | 96/96 | 0/0 | 25.27/11.04 | 1042/2193 |
"""


def a_snapshot(gpu: str, ttft_ms: float, **parts: object) -> str:
    def statistics(value: float, samples: int) -> dict[str, float]:
        return {"avg_ms": value, "p50_ms": value, "p95_ms": value, "p99_ms": value, "samples": samples}

    first = statistics(ttft_ms, 20)
    prefill = {"ttft_ms": first, "steady_tpot_ms": None, "e2e_ms": first}
    decode = {
        "ttft_ms": statistics(ttft_ms / 10, 20),
        "steady_tpot_ms": statistics(8.0, 5080),
        "e2e_ms": statistics(ttft_ms / 10 + 2040, 20),
    }
    return json.dumps(
        {
            "commit": "13b0285", "date": "2026-04-02", "model": "Qwen3-4B", "gpu": gpu,
            "prefill_heavy": {"prompt_len": 10000, "output_len": 1, "metrics": prefill},
            "decode_heavy": {"prompt_len": 1024, "output_len": 256, "metrics": decode}, **parts,
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    folder = tmp_path_factory.mktemp("pegainfer") / RAW
    folder.mkdir(parents=True)
    (folder / JUNE).write_text(JUNE_PAGE)
    (folder / JULY).write_text(JULY_PAGE)
    (folder / "bench_snapshots__a100__qwen3-4b.json").write_text(a_snapshot("NVIDIA A100-SXM4-80GB", 520.0))
    mixed = {
        "config": {"bg_prompt_len": 512, "bg_output_len": 1024, "bg_concurrency": 4},
        "baseline_itl": {"avg_ms": 11.9, "p50_ms": 11.8, "p95_ms": 12.2, "p99_ms": 12.4},
    }
    cached = a_snapshot("NVIDIA GeForce RTX 5070 Ti", 24.0, mixed_itl=mixed)
    (folder / "bench_snapshots__rtx-5070-ti__qwen3-4b.json").write_text(cached)
    uneven = a_snapshot("NVIDIA GeForce RTX 4090", 700.0, mixed_itl={**mixed, "warnings": ["a stream ended"]})
    (folder / "bench_snapshots__rtx-4090__qwen3-4b.json").write_text(uneven)
    (folder / "bench_snapshots__rtx-5090__throughput.json").write_text('{"kind": "throughput_evidence"}')
    return build_pegainfer(folder.parents[2])


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {
        "comparison": 1, "cached_prompt": 1, "mixed_load": 2, "uneven_load": 1, "metric_by_row": 1, "no_lengths": 2,
    }  # fmt: skip


def test_snapshot_has_one_request_at_a_time(result: BuildResult) -> None:
    rows = result.rows[result.rows["accelerator"] == "nvidia-a100-sxm-80gb"]
    prefill = one(rows, n_output_token=1, statistic="mean")
    assert (prefill["ttft_s"], prefill["concurrency"], prefill["n_request"]) == (0.52, 1, 20)
    decode = one(rows, n_output_token=256, statistic="mean")
    assert (decode["tpot_s"], decode["itl_s"], decode["ttft_s"]) == (0.008, 0.008, 0.052)


def test_cached_prompt_leaves_the_gaps(result: BuildResult) -> None:
    rows = result.rows[(result.rows["accelerator"] == "nvidia-rtx-5070-ti-16gb") & (result.rows["concurrency"] == 1)]
    assert rows[["ttft_s", "e2e_s"]].isna().all(axis=None)
    assert set(rows["prefix_caching"]) == {"on"}


def test_background_streams_run_alone_before_others_join(result: BuildResult) -> None:
    row = one(result.rows, concurrency=4, statistic="p99")
    assert (row["itl_s"], row["n_input_token"], row["n_output_token"]) == (0.0124, 512, 1024)


def test_sweep_of_june_has_both_engines(result: BuildResult) -> None:
    row = one(result.rows, engine_version="0.23.0")
    assert (row["ttft_s"], row["tpot_s"], row["output_throughput_token_per_s"]) == (0.09764, 0.007148, 266.55)
    assert row["n_input_token"] == 1024


def test_cells_of_july_are_of_three_runs(result: BuildResult) -> None:
    rows = result.rows[(result.rows["engine_version"] == "0.25.1") & (result.rows["statistic"] == "mean")]
    row = one(rows, concurrency=8)
    assert (row["tpot_s"], row["n_request"], row["prefix_caching"]) == (0.00839, 8, "off")
    assert one(rows, load="open_loop")["request_rate"] == 4
    single = one(rows, n_output_token=1)
    assert (single["output_throughput_token_per_s"], str(single["tpot_s"])) == (9, "nan")


def test_missing_snapshots_raise_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="holds no snapshot"):
        build_pegainfer(tmp_path)
