from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.argonne import build_argonne
from builders.campaigns.build_result import BuildResult
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_argonne(INFERENCE)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {
        "prompt_chunk": 1,
        "faster_than_weights": 1,
        "beyond_context": 1,
        "repeats_other_file": 6,
        "unknown_accelerator": 1,
        "unknown_model": 1,
        "no_kv_cache": 1,
        "kv_block_size": 1,
        "accelerator_not_stated": 1,
    }
    assert result.n_read == len(result.rows) + len(result.rejected)


def test_throughput_counts_input_and_output_of_the_batch(result: BuildResult) -> None:
    row = one(result.rows, accelerator="nvidia-h100-sxm-80gb", n_input_token=1024, n_output_token=1024)
    assert row["total_throughput_token_per_s"] == pytest.approx(2488.32, rel=1e-5)  # as published
    assert row["output_throughput_token_per_s"] == pytest.approx(row["total_throughput_token_per_s"] / 2, rel=1e-5)
    assert "output_throughput_token_per_s" in row["derived"]


def test_power_is_in_watts(result: BuildResult) -> None:
    assert result.rows["power_w"].dropna().tolist() == [494.785]


def test_llama_cpp_runs_one_sequence(result: BuildResult) -> None:
    row = one(result.rows, engine="llama.cpp")
    assert (row["concurrency"], row["tp"], row["pp"]) == (1, 1, 2)
    assert row["total_throughput_token_per_s"] == pytest.approx(201.149, rel=1e-5)  # as published
    assert "64 tokens at a time" in row["note"]


def test_latency_of_one_output_token_is_ttft(result: BuildResult) -> None:
    row = one(result.rows, n_output_token=1)
    assert row["ttft_s"] == row["e2e_s"] == 0.421648
    assert row["concurrency"] == 16


def test_parallelism(result: BuildResult) -> None:
    four = result.rows[(result.rows["engine"] == "trtllm") & (result.rows["n_accelerator"] == 4)]
    splits = four[["tp", "pp", "ep", "moe_tp"]].fillna(0).astype(int).to_numpy().tolist()
    assert splits == [[1, 4, 0, 0], [4, 1, 4, 1], [4, 1, 2, 2]]
    assert result.rows.loc[result.rows["accelerator"] == "amd-mi250-128gb", "tp"].isna().all()


def test_precisions_and_speculation(result: BuildResult) -> None:
    quantised = one(result.rows, weight_precision="int8")
    assert quantised["kv_precision"] == "fp8"
    assert one(result.rows, speculation="draft")["n_speculative_token"] == 3
    assert set(result.rows.loc[result.rows["engine"] == "deepspeed", "weight_precision"]) == {"bf16"}


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="Fig_16_a_b_power_results"):
        build_argonne(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("argonne", build_argonne)
