from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.argonne import build_argonne
from builders.campaigns.built import Built
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def built() -> Built:
    return build_argonne(INFERENCE)


def test_each_rule_sets_aside_what_it_names(built: Built) -> None:
    assert rules(built) == {
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
    assert built.n_read == len(built.rows) + len(built.quarantined)


def test_throughput_counts_input_and_output_of_the_batch(built: Built) -> None:
    row = one(built.rows, accelerator="nvidia-h100-sxm-80gb", n_input_token=1024, n_output_token=1024)
    assert row["total_throughput_token_per_s"] == pytest.approx(2488.32, rel=1e-5)  # as published
    assert row["output_throughput_token_per_s"] == pytest.approx(row["total_throughput_token_per_s"] / 2, rel=1e-5)
    assert "output_throughput_token_per_s" in row["derived"]


def test_power_is_in_watts(built: Built) -> None:
    assert built.rows["power_w"].dropna().tolist() == [494.785]


def test_llama_cpp_runs_one_sequence(built: Built) -> None:
    row = one(built.rows, engine="llama.cpp")
    assert (row["concurrency"], row["tp"], row["pp"]) == (1, 1, 2)
    assert row["total_throughput_token_per_s"] == pytest.approx(201.149, rel=1e-5)  # as published
    assert "64 tokens at a time" in row["note"]


def test_time_to_the_first_token_is_that_of_one_output_token(built: Built) -> None:
    row = one(built.rows, n_output_token=1)
    assert row["ttft_s"] == row["e2e_s"] == 0.421648
    assert row["concurrency"] == 16


def test_how_a_model_is_split(built: Built) -> None:
    four = built.rows[(built.rows["engine"] == "trtllm") & (built.rows["n_accelerator"] == 4)]
    splits = four[["tp", "pp", "ep", "moe_tp"]].fillna(0).astype(int).to_numpy().tolist()
    assert splits == [[1, 4, 0, 0], [4, 1, 4, 1], [4, 1, 2, 2]]
    assert built.rows.loc[built.rows["accelerator"] == "amd-mi250-128gb", "tp"].isna().all()


def test_precisions_and_speculation(built: Built) -> None:
    quantised = one(built.rows, weight_precision="int8")
    assert quantised["kv_precision"] == "fp8"
    assert one(built.rows, speculation="draft")["n_speculative_token"] == 3
    assert set(built.rows.loc[built.rows["engine"] == "deepspeed", "weight_precision"]) == {"bf16"}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="Fig_16_a_b_power_results"):
        build_argonne(tmp_path)


@needs_raw
def test_shipped_rows_are_those_of_the_published_files() -> None:
    check_shipped("argonne", build_argonne)
