from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.built import Built
from builders.campaigns.lmdeploy import build_lmdeploy
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def built() -> Built:
    return build_lmdeploy(INFERENCE)


def test_percentiles_go_to_their_rows(built: Built) -> None:
    rows = built.rows[built.rows["load"] == "static_batch"]
    assert rows["statistic"].tolist() == ["mean", "p50", "p95", "p99"]
    assert rows["ttft_s"].dropna().tolist() == [0.031]
    assert rows["itl_s"].dropna().tolist() == [0.029, 0.029, 0.03]
    assert set(rows["n_accelerator"]) == {4}


def test_lengths_of_sampled_requests_follow_from_the_rates(built: Built) -> None:
    row = one(built.rows, load="closed_loop", concurrency=64)
    assert row["n_output_token"] == pytest.approx(2562.435 / 10.275, rel=1e-5)
    assert row["n_input_token"] == pytest.approx((5283.547 - 2562.435) / 10.275, rel=1e-5)


def test_a_blank_model_is_that_of_the_line_above(built: Built) -> None:
    assert one(built.rows, concurrency=128)["model"] == "meta-llama/Llama-2-7b-hf"


def test_each_rule_sets_aside_what_it_names(built: Built) -> None:
    assert rules(built) == {"repeats_revision": 1, "accelerator_not_stated": 1, "no_lengths": 1}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"tables\.jsonl: cannot be read"):
        build_lmdeploy(tmp_path)


@needs_raw
def test_shipped_rows_are_those_of_the_published_files() -> None:
    check_shipped("lmdeploy", build_lmdeploy)
