from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.features.descriptors.assumptions import ASSUMED_LOAD, USUAL, assumed_values
from roofcast.features.descriptors.descriptor_table import describe_service
from roofcast.serving.predict.question_rows import columns_from_rows, parse_rows

PLAIN = {
    "model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_input_token": 100,
    "n_output_token": 10,
}  # fmt: skip


def values(*rows: dict[str, Any]) -> list[dict[str, str]]:
    """Return the assumed values of each row by column."""
    catalog = load_catalog()
    table, _ = parse_rows(columns_from_rows([PLAIN | r for r in rows]))
    queries = describe_service(table, catalog.models, catalog.accelerators)
    texts = assumed_values(table, queries, catalog.models, table[ASSUMED_LOAD])
    return [dict(part.split("=") for part in text.split()) for text in texts]


def assumed(*rows: dict[str, Any]) -> list[list[str]]:
    """Return the assumed columns of each row."""
    return [[*row] for row in values(*rows)]


@pytest.mark.parametrize("load", [{"concurrency": 3.5}, {"request_rate": 0.5}, {}])
def test_a_blank_split_is_the_same_for_every_load_and_is_named(load: dict[str, Any]) -> None:
    (row,) = values({"n_accelerator": 4, "engine": "vllm", **load})
    assert row.items() >= {"tp": "4", "engine_version": "newest", "kv_precision": "fp16", "graphs": "on"}.items()
    assert row["weight_precision"] == "bf16"


def test_copies_of_a_benchmark_for_throughput_are_named() -> None:
    (row,) = values({"n_accelerator": 4, "load": "offline"})
    assert (row["tp"], row["dp"]) == ("1", "4")


def test_assumed_columns_are_input_columns() -> None:
    assert USUAL.keys() <= INPUT_COLUMNS.keys()


@pytest.mark.parametrize(
    ("row", "columns", "others"),
    [
        ({}, "engine concurrency speculation prefix_cache_ratio length_variation", ""),
        ({}, "", "tp peer_to_peer chain_acceptance_ratio"),
        ({"engine": "vllm"}, "", "engine"),
        ({"n_accelerator": 2}, "tp peer_to_peer", ""),
        ({"n_accelerator": 2, "tp": 2}, "", "tp"),
        ({"speculation": "mtp"}, "n_speculative_token chain_acceptance_ratio", ""),
        ({"speculation": "none"}, "", "speculation n_speculative_token"),
        ({"prefix_caching": "on"}, "prefix_cache_ratio", ""),
        ({"prefix_caching": "off"}, "", "prefix_cache_ratio"),
        ({"prefix_cache_ratio": 0.2}, "", "prefix_cache_ratio"),
        ({"concurrency": 4}, "n_request", ""),
        ({"request_rate": 1}, "", "concurrency n_request"),
        ({"load": "offline"}, "", "concurrency"),
        ({"load": "static_batch", "concurrency": 4}, "", "n_request"),
    ],
)
def test_a_blank_is_assumed_where_it_has_an_effect(row: dict[str, Any], columns: str, others: str) -> None:
    found = set(assumed(row)[0])
    assert set(columns.split()) <= found
    assert not set(others.split()) & found


def test_each_row_has_assumptions_of_its_own() -> None:
    first, second, third = assumed({"engine": "vllm"}, {"concurrency": 2}, {"engine": "vllm"})
    assert first == third
    assert set(second) ^ set(first) == {"engine", "engine_version", "concurrency"}


def test_a_complete_question_assumes_nothing() -> None:
    row = {
        "engine": "vllm", "engine_version": "0.30.0", "weight_precision": "bf16", "kv_precision": "bf16",
        "concurrency": 4, "speculation": "none",
        "prefix_caching": "off", "chunk_size_token": 8192, "max_num_seqs": 256, "graphs": "on",
        "gpu_memory_utilization": 0.9,
        "length_variation": 0, "n_request": 100,
    }  # fmt: skip
    assert assumed(row) == [[]]
