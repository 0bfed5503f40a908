from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.mlc import build_mlc
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_mlc(INFERENCE)


def test_each_engine_column_is_a_measurement(result: BuildResult) -> None:
    rows = result.rows[(result.rows["model"] == "meta-llama/Llama-2-7b-hf")]
    assert rows["engine"].tolist() == ["mlc-llm", "exllama", "llama.cpp"]
    assert rows["tpot_s"].iloc[0] == pytest.approx(1 / 204.8, rel=1e-5)
    assert set(rows["derived"]) == {"tpot_s"}
    assert set(rows["weight_precision"]) == {"int4"}


def test_blank_model_repeats_the_line_above(result: BuildResult) -> None:
    row = one(result.rows, n_accelerator=4, engine="vllm")
    assert (row["model"], row["weight_precision"]) == ("meta-llama/Llama-2-70b-hf", "fp16")


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"no_lengths": 1, "unknown_accelerator": 1, "unknown_model": 1, "repeats_revision": 1}


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"tables\.jsonl: cannot be read"):
        build_mlc(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("mlc", build_mlc)
