from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.built import Built
from builders.campaigns.optimum_habana import build_optimum_habana
from roofcast.data.errors import SchemaError
from tests.data.builders.campaigns.samples import INFERENCE, check_shipped, needs_raw, one, rules


@pytest.fixture(scope="module")
def built() -> Built:
    return build_optimum_habana(INFERENCE)


def test_a_test_name_gives_batch_and_lengths(built: Built) -> None:
    row = one(built.rows, model="mistralai/Mixtral-8x7B-v0.1")
    assert (row["n_accelerator"], row["concurrency"], row["n_input_token"], row["n_output_token"]) == (
        2,
        768,
        128,
        128,
    )
    assert (row["accelerator"], row["output_throughput_token_per_s"]) == ("intel-gaudi2-96gb", 3428.65)


def test_a_quantised_copy_is_its_model_in_four_bits(built: Built) -> None:
    rows = built.rows[built.rows["weight_precision"] == "int4"]
    assert set(rows["model"]) == {"meta-llama/Llama-2-7b-hf"}


def test_each_rule_sets_aside_what_it_names(built: Built) -> None:
    assert rules(built) == {"no_lengths": 3, "repeats_test": 2, "copied_baseline": 1}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        build_optimum_habana(tmp_path)


@needs_raw
def test_shipped_rows_are_those_of_the_published_files() -> None:
    check_shipped("optimum_habana", build_optimum_habana)
