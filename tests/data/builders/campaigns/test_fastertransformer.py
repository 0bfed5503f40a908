from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.built import Built
from builders.campaigns.fastertransformer import build_fastertransformer
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def built() -> Built:
    return build_fastertransformer(INFERENCE)


def test_each_column_of_latencies_is_a_measurement(built: Built) -> None:
    rows = built.rows[built.rows["model"] == "NeMo/gpt3_20b"]
    assert rows["n_accelerator"].tolist() == rows["tp"].tolist() == [1, 2, 4, 8]
    assert rows["e2e_s"].dropna().tolist() == [4.414, 2.639, 1.943]


def test_what_did_not_fit_says_so(built: Built) -> None:
    row = one(built.rows, status="out_of_memory")
    assert (row["n_accelerator"], row["concurrency"]) == (1, 256)


def test_a_single_column_is_tensor_parallel_over_the_node(built: Built) -> None:
    row = one(built.rows, model="openai/gpt3-175b")
    assert (row["tp"], row["pp"], row["e2e_s"], row["date"]) == (8, 1, 0.48886, "2021-04-04")


def test_each_rule_sets_aside_what_it_names(built: Built) -> None:
    assert rules(built) == {"repeats_revision": 1, "unknown_model": 1, "no_generation": 1}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"tables\.jsonl: cannot be read"):
        build_fastertransformer(tmp_path)


@needs_raw
def test_shipped_rows_are_those_of_the_published_files() -> None:
    check_shipped("fastertransformer", build_fastertransformer)
