from __future__ import annotations

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.dstack import build_dstack
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_dstack(INFERENCE)


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"repeats_other_file": 2, "no_outcome": 1, "aggregated": 1, "implausible": 1}


def test_disaggregated_workers_have_two_accelerators_each(result: BuildResult) -> None:
    rows = result.rows[result.rows["engine"] == "sglang"]
    assert set(rows["statistic"]) == {"mean", "p50", "p99"}
    assert (rows["n_prefill_accelerator"] + rows["n_decode_accelerator"] == rows["n_accelerator"]).all()
    assert set(rows["n_accelerator"]) == {4}
    assert set(rows["n_failed"]) == {0}


def test_offline_run_queues_all_requests(result: BuildResult) -> None:
    row = one(result.rows, load="offline", n_accelerator=4)
    assert (row["n_request"], row["n_input_token"], row["n_output_token"]) == (16, 128, 2048)
    assert row["accelerator"] == "amd-mi300x-192gb"
    ratio = row["total_throughput_token_per_s"] / row["output_throughput_token_per_s"]
    assert ratio == pytest.approx((128 + 2048) / 2048, rel=1e-4)


def test_static_batch_has_latencies_by_statistic(result: BuildResult) -> None:
    rows = result.rows[result.rows["load"] == "static_batch"]
    assert rows["statistic"].tolist() == ["mean", "p50", "p90", "p99"]
    assert rows["e2e_s"].tolist() == [84.2203, 84.2203, 84.2625, 84.272]


def test_request_rates_are_open_loops(result: BuildResult) -> None:
    rows = result.rows[result.rows["load"] == "open_loop"]
    assert set(rows["accelerator"]) == {"amd-mi300x-192gb", "nvidia-h100-sxm-80gb"}
    assert set(rows["request_rate"]) == {16}
    assert set(rows.loc[rows["accelerator"].str.startswith("nvidia"), "chunked_prefill"]) == {"on"}


def test_tgi_and_vllm_run_in_half_precision(result: BuildResult) -> None:
    rows = result.rows[result.rows["weight_precision"] == "bf16"]
    assert set(rows["engine"]) == {"tgi", "vllm"}


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("dstack", build_dstack)
