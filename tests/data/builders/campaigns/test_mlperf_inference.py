from __future__ import annotations

import math

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.mlperf_inference import build_mlperf_inference
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_mlperf_inference(INFERENCE)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {
        "no_lengths": 2,
        "same_run_twice": 1,
        "invalid_result": 1,
        "open_division": 1,
        "no_language_model": 1,
        "unit_doubtful": 1,
        "covered_by_logs": 1,
    }


def test_interactive_log_has_four_statistics(result: BuildResult) -> None:
    rows = result.rows[result.rows["note"].str.contains("AMD, 8xMI300X_2xEPYC_9575F, Interactive")]
    assert rows["statistic"].tolist() == ["mean", "p50", "p90", "p99"]
    assert set(rows["load"]) == {"open_loop"}
    mean, tail = rows.iloc[0], rows.iloc[3]
    assert (mean["ttft_s"], mean["tpot_s"], mean["e2e_s"]) == (0.20133, 0.0321025, 9.71674)
    assert mean["request_rate"] == 29.62
    assert mean["output_throughput_token_per_s"] == 8840.42
    assert tail["ttft_s"] == 0.435976
    assert math.isnan(tail["output_throughput_token_per_s"])


def test_offline_has_throughput_only(result: BuildResult) -> None:
    rows = result.rows[result.rows["load"] == "offline"]
    assert rows[["ttft_s", "tpot_s", "e2e_s", "request_rate", "concurrency"]].isna().all(axis=None)
    assert rows["output_throughput_token_per_s"].notna().all()


def test_lengths_come_from_data_set_and_logs(result: BuildResult) -> None:
    row = one(result.rows, accelerator="amd-mi300x-192gb", load="offline")
    assert row["n_input_token"] == pytest.approx((146 + 122 + 141) / 3, rel=1e-5)
    assert row["n_output_token"] == pytest.approx(27803.9 / row["request_throughput_per_s"], rel=1e-5)


@pytest.mark.parametrize(
    ("accelerator", "load", "n_accelerator", "n_node"),
    [
        ("nvidia-gb200", "offline", 72, 18),
        ("amd-mi355x-288gb", "open_loop", 87, 11),
        ("amd-mi300x-192gb", "offline", 8, 1),
    ],
)
def test_accelerators_count_the_whole_system(
    result: BuildResult, accelerator: str, load: str, n_accelerator: int, n_node: int
) -> None:
    row = one(result.rows, accelerator=accelerator, load=load)
    assert (row["n_accelerator"], row["n_node"]) == (n_accelerator, n_node)


def test_dual_card_is_two_accelerators(result: BuildResult) -> None:
    rows = result.rows[result.rows["accelerator"] == "intel-arc-pro-b60-24gb"]
    assert set(rows["n_accelerator"]) == {2, 8}
    assert set(rows.loc[rows["n_accelerator"] == 2, "weight_precision"]) == {"int4"}


def test_single_stream_is_a_closed_loop(result: BuildResult) -> None:
    assert set(result.rows.loc[result.rows["concurrency"] == 1, "load"]) == {"closed_loop"}


def test_precision_of_table_comes_from_logs(result: BuildResult) -> None:
    row = one(result.rows, accelerator="nvidia-h200-sxm-141gb", load="open_loop")
    assert row["date"] == "2025-04"
    assert (row["engine"], row["weight_precision"]) == ("trtllm", "fp8")
    assert row["request_rate"] * row["n_output_token"] == pytest.approx(
        row["output_throughput_token_per_s"], rel=1e-5
    )


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("mlperf_inference", build_mlperf_inference)
