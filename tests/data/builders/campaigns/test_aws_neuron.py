from __future__ import annotations

import pytest

from builders.campaigns.aws_neuron import build_aws_neuron
from builders.campaigns.built import Built
from roofcast.data.campaigns import load_campaign_info
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def built() -> Built:
    return build_aws_neuron(INFERENCE)


def test_accelerators_are_chips_of_two_cores(built: Built) -> None:
    counts = built.rows.groupby("accelerator")[["n_accelerator", "tp"]].max().astype(int).to_numpy().tolist()
    assert counts == [[12, 12], [16, 16]]


def test_percentiles_go_to_their_rows(built: Built) -> None:
    rows = built.rows[(built.rows["accelerator"] == "aws-inferentia2") & (built.rows["concurrency"] == 1)]
    assert rows["statistic"].tolist() == ["mean", "p50", "p99"]
    assert rows["ttft_s"].dropna().tolist() == [0.02947, 0.04205]
    assert rows["tpot_s"].dropna().tolist() == [0.00741, 0.00768]
    assert one(rows, statistic="mean")["output_throughput_token_per_s"] == 144.98


def test_an_undefined_latency_is_set_aside(built: Built) -> None:
    assert rules(built) == {"latency_undefined": 8}


def test_the_licence_asks_to_share_alike() -> None:
    info = load_campaign_info("aws_neuron")
    assert info.licence == "CC-BY-SA-4.0"
    assert "shared under the same licence" in info.attribution


@needs_raw
def test_shipped_rows_are_those_of_the_published_files() -> None:
    check_shipped("aws_neuron", build_aws_neuron)
