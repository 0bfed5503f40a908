import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.errors import SchemaError
from roofcast.data.measurements.job_schema import (
    TRAINING_COLUMNS,
    TRAINING_SCHEMA,
)
from roofcast.data.measurements.job_validation import (
    token_per_step,
    training_row_ids,
    validate_training_measurements,
)
from tests.effort import n_example

NUMBERS = [name for name, column in TRAINING_SCHEMA.items() if column.kind == "float"]


def a_run(**changes: Any) -> dict[str, Any]:
    return {
        "model": "meta-llama/Llama-2-7b-hf", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 8,
        "n_global_batch_sequence": 128, "n_token_per_sequence": 4096, "step_time_s": 4.0, "campaign": "ours",
    } | changes  # fmt: skip


def validated(**changes: Any) -> pd.DataFrame:
    return validate_training_measurements(pd.DataFrame([a_run(**changes)]), "runs.csv", lines=2)


def test_blanks_are_filled_in_the_order_of_the_schema() -> None:
    checked = validated()
    assert tuple(checked.columns) == TRAINING_COLUMNS
    row = checked.iloc[0]
    assert (row["method"], row["status"], row["sharding"]) == ("pretrain", "ok", "")
    assert math.isnan(row["tp"])


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", [-1.0, float("inf"), *(pytest.param(v, marks=pytest.mark.slow) for v in (1e20, float("-inf")))]
)
def test_numbers_out_of_range_are_refused_with_their_field(name: str, value: float) -> None:
    with pytest.raises(SchemaError, match=rf"^runs.csv, line 2: {name}: must be between"):
        validated(**{name: value})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        *(({field: value}, f"{field}: must be") for field, value in (
            ("sharding", "zero9"), ("recomputation", "some"), ("offload", "gpu"), ("method", "rlhf"),
            ("packing", "yes"), ("flash_attention", "true"), ("compute_precision", "fp7"), ("status", "fine"),
            ("date", "yesterday"), ("network", "pigeon"), ("pipeline_schedule", "2f2b"), ("loss", "half"),
            ("memory_kind", "peak"),
        )),
        ({"n_accelerator": None}, "n_accelerator: must be given, got a blank"),
        ({"tp": 8.5}, "tp: must be a whole number"),
        ({"step_time": 1.0}, "step_time: is not a column of the training table; did you mean step_time_s"),
        ({"step_time_ms": 1.0}, "step_time_ms: .*; give step_time_s, in seconds"),
        ({"step_time_s": None}, "step_time_s: give at least one outcome"),
        ({"tp": 4, "pp": 4}, "tp: tp x pp x cp must divide n_accelerator"),
        ({"adapter_targets": "q proj"}, "adapter_targets: must be some of q k v o"),
        (
            {"throughput_token_per_s": 128 * 4096 / 4.0 * 1.06},
            "throughput_token_per_s: must be global batch x sequence length / step time",
        ),
    ],
)  # fmt: skip
def test_an_invalid_run_is_refused_with_its_field(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        validated(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"step_time_s": None, "status": "out_of_memory"},
        {"tp": 4, "pp": 2},
        {"adapter_targets": "q v"},
        {"throughput_token_per_s": 128 * 4096 / 4.0 * 1.04},
    ],
)
def test_a_valid_run_is_kept_as_it_is(changes: dict[str, Any]) -> None:
    row = validated(**changes).iloc[0]
    assert {name: row[name] for name, value in changes.items() if value} == {n: v for n, v in changes.items() if v}


def test_tokens_of_a_step_equal_those_of_its_batch() -> None:
    run = validated(throughput_token_per_s=131072.0)
    assert token_per_step(run).tolist() == [524288.0]


@given(
    batch=st.integers(1, 4096), length=st.integers(1, 131072), step=st.floats(1e-3, 1e4), digits=st.integers(2, 6)
)  # fmt: skip
@settings(max_examples=n_example(20), deadline=None)
def test_rounded_figures_of_a_run_are_consistent(batch: int, length: int, step: float, digits: int) -> None:
    rate = float(f"{batch * length / step:.{digits}g}")
    run = validated(
        n_global_batch_sequence=batch, n_token_per_sequence=length, step_time_s=step, throughput_token_per_s=rate
    )
    assert token_per_step(run).iloc[0] == batch * length


def test_ids_differ_between_rows_and_ignore_blanks() -> None:
    same, other = validated(), validated(note="another")
    assert training_row_ids(same) == training_row_ids(validated(sharding="", tp=None))
    assert training_row_ids(same) != training_row_ids(other)


def test_the_id_of_a_row_is_pinned() -> None:
    assert training_row_ids(validated()) == ["f2d8721e09a446e0c6927b786fb5f864"]
