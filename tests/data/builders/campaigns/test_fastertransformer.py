from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.fastertransformer import build_fastertransformer
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_fastertransformer(INFERENCE)


def test_each_latency_column_is_a_measurement(result: BuildResult) -> None:
    rows = result.rows[result.rows["model"] == "NeMo/gpt3_20b"]
    assert rows["n_accelerator"].tolist() == rows["tp"].tolist() == [1, 2, 4, 8]
    assert rows["e2e_s"].dropna().tolist() == [4.414, 2.639, 1.943]


def test_out_of_memory_has_status(result: BuildResult) -> None:
    row = one(result.rows, status="out_of_memory")
    assert (row["n_accelerator"], row["concurrency"]) == (1, 256)


def test_single_column_is_tensor_parallel_over_the_node(result: BuildResult) -> None:
    row = one(result.rows, model="openai/gpt3-175b")
    assert (row["tp"], row["pp"], row["e2e_s"], row["date"]) == (8, 1, 0.48886, "2021-04-04")


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"repeats_revision": 1, "unknown_model": 1, "no_generation": 1}


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"tables\.jsonl: cannot be read"):
        build_fastertransformer(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("fastertransformer", build_fastertransformer)
