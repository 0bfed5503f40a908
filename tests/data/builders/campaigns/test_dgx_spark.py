from __future__ import annotations

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.dgx_spark import build_dgx_spark
from roofcast.data.campaigns import load_campaign_info, load_licence
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_dgx_spark(INFERENCE)


def test_served_run_has_five_statistics(result: BuildResult) -> None:
    rows = result.rows[result.rows["note"].str.startswith("10-monday-peak")]
    assert rows["statistic"].tolist() == ["mean", "p50", "p90", "p95", "p99"]
    assert set(rows["request_rate"]) == {1.5}
    assert set(rows["concurrency"]) == {25}
    assert rows["output_throughput_token_per_s"].notna().tolist() == [True, False, False, False, False]
    assert rows["ttft_s"].is_monotonic_increasing is False  # a mean above the median
    assert (rows["prefix_caching"] == "off").all()
    assert (rows["kv_precision"] == "fp8").all()


def test_prompt_and_generation_speed_make_one_derived_row(result: BuildResult) -> None:
    row = one(result.rows, load="static_batch", n_input_token=1024)
    assert row["ttft_s"] == 0.59001
    assert row["tpot_s"] == pytest.approx(1 / 23.88, rel=1e-5)
    assert row["derived"] == "ttft_s tpot_s"


def test_context_depth_counts_as_input(result: BuildResult) -> None:
    assert one(result.rows, load="static_batch", n_output_token=512)["n_input_token"] == 2048 + 4


def test_unpaired_speed_is_rejected(result: BuildResult) -> None:
    assert rules(result) == {"no_partner": 1}
    assert result.n_read == 3 + 5


def test_precision_of_checkpoint_takes_precedence(result: BuildResult) -> None:
    weights = result.rows.groupby("model")["weight_precision"].unique().map(list).to_dict()
    assert weights["mistralai/Ministral-3-3B-Instruct-2512"] == ["fp8"]
    assert weights["google/gemma-4-26B-A4B-it"] == ["bf16"]


def test_speculation_is_parsed_from_arguments(result: BuildResult) -> None:
    rows = result.rows[result.rows["speculation"] != ""]
    assert set(rows["model"]) == {"meta-models/Muse-Glimmer-30B"}
    assert set(rows["n_speculative_token"]) == {15}


def test_licence_requires_attribution() -> None:
    assert "djangodevreng" in load_campaign_info("dgx_spark").attribution
    assert load_licence("dgx_spark").startswith("Attribution 4.0 International")


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("dgx_spark", build_dgx_spark)
