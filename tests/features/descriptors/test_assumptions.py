from __future__ import annotations

from typing import Any

import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.features.descriptors.assumptions import USUAL, assumed_columns
from roofcast.serving.predict.question_rows import columns_from_rows, parse_rows

PLAIN = {"model": "m", "accelerator": "a", "n_input_token": 100, "n_output_token": 10}


def assumed(*rows: dict[str, Any]) -> list[list[str]]:
    """Return the assumed columns of each row."""
    return [names.split() for names in assumed_columns(parse_rows(columns_from_rows([PLAIN | r for r in rows]))[0])]


def test_assumed_columns_are_input_columns() -> None:
    assert USUAL.keys() <= INPUT_COLUMNS.keys()


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({}, "engine"),
        ({}, "concurrency"),
        ({"n_accelerator": 2}, "tp"),
        ({"n_accelerator": 2}, "peer_to_peer"),
        ({}, "speculation"),
        ({"speculation": "mtp"}, "n_speculative_token"),
        ({"speculation": "mtp"}, "acceptance_ratio"),
        ({"prefix_caching": "on"}, "prefix_cache_ratio"),
        ({}, "prefix_cache_ratio"),
        ({"concurrency": 4}, "n_request"),
        ({}, "length_variation"),
    ],
)
def test_a_blank_with_an_effect_is_assumed(row: dict[str, Any], column: str) -> None:
    assert column in assumed(row)[0]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"engine": "vllm"}, "engine"),
        ({"request_rate": 1}, "concurrency"),
        ({"load": "offline"}, "concurrency"),
        ({"n_accelerator": 2, "tp": 2}, "tp"),
        ({}, "tp"),
        ({}, "peer_to_peer"),
        ({"speculation": "none"}, "speculation"),
        ({"speculation": "none"}, "n_speculative_token"),
        ({}, "acceptance_ratio"),
        ({"prefix_caching": "off"}, "prefix_cache_ratio"),
        ({"prefix_cache_ratio": 0.2}, "prefix_cache_ratio"),
        ({"request_rate": 1}, "n_request"),
        ({"load": "static_batch", "concurrency": 4}, "n_request"),
    ],
)
def test_what_is_given_or_has_no_effect_is_not_assumed(row: dict[str, Any], column: str) -> None:
    assert column not in assumed(row)[0]


def test_each_row_has_assumptions_of_its_own() -> None:
    first, second, third = assumed({"engine": "vllm"}, {"concurrency": 2}, {"engine": "vllm"})
    assert first == third
    assert set(second) ^ set(first) == {"engine", "concurrency"}


def test_a_complete_question_assumes_nothing() -> None:
    row = {
        "engine": "vllm", "weight_precision": "bf16", "kv_precision": "bf16", "concurrency": 4, "speculation": "none",
        "prefix_caching": "off", "chunk_size_token": 8192, "max_num_seqs": 256, "graphs": "on",
        "length_variation": 0, "n_request": 100,
    }  # fmt: skip
    assert assumed(row) == [[]]


def test_the_usual_cached_share_is_the_median_of_measured_runs() -> None:
    rows = load_campaigns(["dgx_spark_jvr0x", "llmperf_homelab"])
    assert rows.loc[rows["prefix_caching"] == "on", "prefix_cache_ratio"].median() == 0.0
