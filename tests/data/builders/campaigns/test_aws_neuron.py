from __future__ import annotations

import pytest

from builders.campaigns.aws_neuron import build_aws_neuron
from builders.campaigns.build_result import BuildResult
from roofcast.data.campaigns import load_campaign_info
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_aws_neuron(INFERENCE)


def test_accelerators_count_chips_of_two_cores(result: BuildResult) -> None:
    counts = result.rows.groupby("accelerator")[["n_accelerator", "tp"]].max().astype(int).to_numpy().tolist()
    assert counts == [[12, 12], [16, 16]]


def test_percentiles_have_their_own_rows(result: BuildResult) -> None:
    rows = result.rows[(result.rows["accelerator"] == "aws-inferentia2") & (result.rows["concurrency"] == 1)]
    assert rows["statistic"].tolist() == ["mean", "p50", "p99"]
    assert rows["ttft_s"].dropna().tolist() == [0.02947, 0.04205]
    assert rows["tpot_s"].dropna().tolist() == [0.00741, 0.00768]
    assert one(rows, statistic="mean")["output_throughput_token_per_s"] == 144.98


def test_undefined_latency_is_rejected(result: BuildResult) -> None:
    assert rules(result) == {"latency_undefined": 8}


def test_licence_requires_share_alike() -> None:
    info = load_campaign_info("aws_neuron")
    assert info.licence == "CC-BY-SA-4.0"
    assert "shared under the same licence" in info.attribution


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("aws_neuron", build_aws_neuron)
