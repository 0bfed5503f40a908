from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.optimum_habana import build_optimum_habana
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def result() -> BuildResult:
    return build_optimum_habana(INFERENCE)


def test_test_name_holds_batch_and_lengths(result: BuildResult) -> None:
    row = one(result.rows, model="mistralai/Mixtral-8x7B-v0.1")
    assert (row["n_accelerator"], row["concurrency"], row["n_input_token"], row["n_output_token"]) == (
        2,
        768,
        128,
        128,
    )
    assert (row["accelerator"], row["output_throughput_token_per_s"]) == ("intel-gaudi2-96gb", 3428.65)


def test_quantised_copy_is_its_model_in_int4(result: BuildResult) -> None:
    rows = result.rows[result.rows["weight_precision"] == "int4"]
    assert set(rows["model"]) == {"meta-llama/Llama-2-7b-hf"}


def test_rejections_by_rule(result: BuildResult) -> None:
    assert rules(result) == {"no_lengths": 3, "repeats_test": 2, "copied_baseline": 1}


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_optimum_habana(tmp_path)


@needs_raw
def test_shipped_rows_match_published_files() -> None:
    check_shipped("optimum_habana", build_optimum_habana)
