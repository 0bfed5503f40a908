from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.dgx_spark_jvr0x import RAW, build_dgx_spark_jvr0x
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import one, rules


def a_point(concurrency: int, samples: int, **cells: object) -> dict[str, object]:
    latencies = {"p50": 500, "p95": 600, "p99": 700}
    return {
        "concurrency": concurrency, "agg_tok_s": samples * 256 / 180, "per_session_tok_s": 25.6, "ttft_ms": latencies,
        "itl_ms": latencies, "samples": samples, "gpu": {"power_draw_w": 40.5}, **cells,
    }  # fmt: skip


def a_document(hardware: str, series: dict[str, Any], points: list[dict[str, object]]) -> str:
    run = {
        "timestamp": "2026-07-21T11:46:31Z",
        "hardware": {"name": hardware},
        "workload": {"prompt_tokens": 1024, "output_tokens": 256},
        "sweep": {"measure_s": 180},
    }
    return json.dumps({"run": run, "series": [{**series, "points": points}]})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    root = tmp_path_factory.mktemp("jvr0x")
    (root / RAW).mkdir(parents=True)
    llama = {
        "quant": "GGUF Q4_K_M",
        "backend": "llama.cpp",
        "config": {
            "checkpoint": "unsloth/gemma-4-12b-it-GGUF/gemma-4-12b-it-Q4_K_M.gguf", "kv_cache_dtype": "q8_0",
            "ctx": 65536, "parallel": 32, "speculative": "NONE (llama.cpp)", "cuda_graphs": False,
            "chunked_prefill": False, "prefix_caching": False,
        },
    }  # fmt: skip
    vllm = {
        "quant": "W4A16 GPTQ + NVFP4-KV",
        "backend": "vLLM 0.25 (TP=2)",
        "config": {
            "checkpoint": "Sebesky/MiniMax-M3-W4A16-GPTQ", "image": "ghcr.io/aeon-7/aeon-vllm:2026-07-16-v0.25.1",
            "kv_cache_dtype": "nvfp4", "speculative": "EAGLE3, draft_tensor_parallel_size=2, 3 tokens",
            "max_num_seqs": 12, "max_num_batched_tokens": 1024, "cuda_graphs": "true (enforce_eager false)",
            "prefix_caching": "on (defeated by unique prompts)",
        },
    }  # fmt: skip
    points = [a_point(1, 2), a_point(2, 120), a_point(32, 64), a_point(4, 5, _failures=7)]
    (root / RAW / "one.json").write_text(a_document("DGX Spark", llama, points))
    (root / RAW / "two.json").write_text(a_document("DGX Spark x2 (dual, TP=2)", vllm, [a_point(1, 30)]))
    return build_dgx_spark_jvr0x(root)


def test_points_with_failures_are_rejected(result: BuildResult) -> None:
    assert rules(result) == {"failed_requests": 1}
    assert result.n_read == 5


def test_tpot_is_the_inverse_speed_over_the_gaps(result: BuildResult) -> None:
    row = one(result.rows, concurrency=2, statistic="mean")
    assert row["tpot_s"] == pytest.approx(256 / 255 / 25.6, rel=1e-5)
    assert (row["n_input_token"], row["duration_s"], row["power_w"]) == (790, 180, 40.5)
    assert (row["weight_precision"], row["kv_precision"], row["graphs"]) == ("int4", "int8", "off")
    assert (row["max_num_seqs"], row["max_context_token"], row["stack"]) == (32, 65536, "jvr0x/llama.cpp")


def test_percentiles_need_enough_requests(result: BuildResult) -> None:
    statistics = result.rows.groupby(["model", "concurrency"])["statistic"].agg(list)
    assert statistics["google/gemma-4-12B-it", 1] == ["mean"]
    assert statistics["google/gemma-4-12B-it", 2] == ["mean", "p50", "p95", "p99"]
    assert statistics["google/gemma-4-12B-it", 32] == ["mean", "p50", "p95"]


def test_throughput_needs_three_waves(result: BuildResult) -> None:
    means = result.rows[result.rows["statistic"] == "mean"].set_index(["n_accelerator", "concurrency"])
    assert means["output_throughput_token_per_s"].notna().to_dict() == {
        (1, 1): False, (1, 2): True, (1, 32): False, (2, 1): True,
    }  # fmt: skip


def test_speculative_run_has_no_gaps_between_tokens(result: BuildResult) -> None:
    rows = result.rows[result.rows["n_accelerator"] == 2]
    assert rows[["itl_s", "power_w"]].isna().all(axis=None)
    row = one(rows, statistic="p50")
    assert (row["speculation"], row["n_speculative_token"], row["n_node"]) == ("eagle", 3, 2)
    assert (row["prefix_caching"], row["prefix_cache_ratio"], row["graphs"]) == ("on", 0, "on")
    assert (row["engine_version"], row["stack"], row["chunk_size_token"]) == ("0.25.1", "jvr0x/aeon", 1024)


def test_missing_files_raise_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="holds no JSON file"):
        build_dgx_spark_jvr0x(tmp_path)


def test_other_document_raises_schema_error(tmp_path: Path) -> None:
    (tmp_path / RAW).mkdir(parents=True)
    (tmp_path / RAW / "other.json").write_text("{}")
    with pytest.raises(SchemaError, match="must be a result of the harness"):
        build_dgx_spark_jvr0x(tmp_path)
