from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.rocm_vllm import RAW, build_rocm_vllm
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_rocm_vllm(INFERENCE)


def test_latency_in_either_unit_is_in_seconds(result: BuildResult) -> None:
    small = one(result.rows, model="meta-llama/Llama-3.1-70B", load="static_batch")
    large = one(result.rows, model="meta-llama/Llama-3.1-405B")
    assert (small["e2e_s"], large["e2e_s"]) == (19.0886, 46.632)
    assert small["output_throughput_token_per_s"] == pytest.approx(2048 / 19.08859, rel=1e-5)
    assert set(result.rows["n_accelerator"]) == {8}


def test_throughput_is_offline(result: BuildResult) -> None:
    row = one(result.rows, load="offline")
    assert (row["n_request"], row["output_throughput_token_per_s"], row["kv_precision"]) == (3200, 15105, "fp8")


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"repeats_revision": 1, "no_outcome": 1, "unknown_model": 1}


def test_two_values_of_a_run_in_a_revision_are_rejected(tmp_path: Path) -> None:
    lines = (INFERENCE / RAW).read_text().splitlines()
    other = lines[2].replace("19088.59", "9999")
    (tmp_path / RAW).parent.mkdir(parents=True)
    (tmp_path / RAW).write_text("\n".join([*lines[:3], other]))
    assert rules(build_rocm_vllm(tmp_path)) == {"asked_twice": 2}


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("rocm_vllm", build_rocm_vllm)
