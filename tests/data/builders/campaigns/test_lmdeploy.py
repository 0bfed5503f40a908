from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.lmdeploy import build_lmdeploy
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_lmdeploy(INFERENCE)


def test_percentiles_have_their_own_rows(result: BuildResult) -> None:
    rows = result.rows[result.rows["load"] == "static_batch"]
    assert rows["statistic"].tolist() == ["mean", "p50", "p95", "p99"]
    assert rows["ttft_s"].dropna().tolist() == [0.031]
    assert rows["itl_s"].dropna().tolist() == [0.029, 0.029, 0.03]
    assert set(rows["n_accelerator"]) == {4}


def test_lengths_of_sampled_requests_derive_from_rates(result: BuildResult) -> None:
    row = one(result.rows, load="closed_loop", concurrency=64)
    assert row["n_output_token"] == pytest.approx(2562.435 / 10.275, rel=1e-5)
    assert row["n_input_token"] == pytest.approx((5283.547 - 2562.435) / 10.275, rel=1e-5)


def test_blank_model_repeats_the_line_above(result: BuildResult) -> None:
    assert one(result.rows, concurrency=128)["model"] == "meta-llama/Llama-2-7b-hf"


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"repeats_revision": 1, "accelerator_not_stated": 1, "no_lengths": 1}


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"tables\.jsonl: cannot be read"):
        build_lmdeploy(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("lmdeploy", build_lmdeploy)
