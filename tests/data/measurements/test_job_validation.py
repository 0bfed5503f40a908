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


def test_an_empty_table_has_the_column_types() -> None:
    checked = validate_training_measurements(pd.DataFrame({"model": []}))
    assert len(checked) == 0
    assert all(checked[name].dtype == float for name in NUMBERS)
    assert training_row_ids(checked) == []


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "value", [-1.0, float("inf"), *(pytest.param(v, marks=pytest.mark.slow) for v in (1e20, float("-inf")))]
)
def test_numbers_out_of_range_are_refused_with_their_field(name: str, value: float) -> None:
    with pytest.raises(SchemaError, match=rf"^runs.csv, line 2: {name}: must be between"):
        validated(**{name: value})


@pytest.mark.parametrize("name", [name for name in NUMBERS if not TRAINING_SCHEMA[name].is_nullable])
def test_a_required_number_may_not_be_blank(name: str) -> None:
    with pytest.raises(SchemaError, match=f"{name}: must be given, got a blank"):
        validated(**{name: float("nan")})


@pytest.mark.parametrize("name", [name for name, column in TRAINING_SCHEMA.items() if column.is_whole])
def test_counts_are_whole_numbers(name: str) -> None:
    with pytest.raises(SchemaError, match=f"{name}: must be a whole number"):
        validated(
            **{name: 8.5, "n_global_batch_sequence": None, **({} if name == "tp" else {"tp": 1})} | _fitting(name)
        )


def _fitting(name: str) -> dict[str, Any]:
    """Return a number of accelerators that half a count divides, so that only the rule of counts applies."""
    return {"n_accelerator": 17} if name in {"tp", "pp", "cp"} else {}


@pytest.mark.parametrize(
    ("field", "value"),
    [("sharding", "zero9"), ("recomputation", "some"), ("offload", "gpu"), ("method", "rlhf"), ("packing", "yes"),
     ("flash_attention", "true"), ("compute_precision", "fp7"), ("status", "fine"), ("date", "yesterday"),
     ("network", "pigeon"), ("pipeline_schedule", "2f2b"), ("loss", "half"), ("memory_kind", "peak")],
)  # fmt: skip
def test_unknown_values_are_refused_with_their_field(field: str, value: str) -> None:
    with pytest.raises(SchemaError, match=f"{field}: must be"):
        validated(**{field: value})


def test_an_unknown_column_is_refused_with_the_similar_one() -> None:
    with pytest.raises(
        SchemaError, match=r"step_time: is not a column of the training table; did you mean step_time_s"
    ):
        validated(step_time=1.0)
    with pytest.raises(SchemaError, match=r"step_time_ms: .*; give step_time_s, in seconds"):
        validated(step_time_ms=1.0)


def test_a_successful_run_needs_an_outcome() -> None:
    with pytest.raises(SchemaError, match="step_time_s: give at least one outcome"):
        validated(step_time_s=None)
    assert validated(step_time_s=None, status="out_of_memory")["status"].tolist() == ["out_of_memory"]


def test_parallel_sizes_divide_the_accelerators() -> None:
    assert len(validated(tp=4, pp=2)) == 1
    with pytest.raises(SchemaError, match="tp: tp x pp x cp must divide n_accelerator"):
        validated(tp=4, pp=4)


def test_adapter_targets_are_projections() -> None:
    assert validated(adapter_targets="q v")["adapter_targets"].tolist() == ["q v"]
    with pytest.raises(SchemaError, match="adapter_targets: must be some of q k v o"):
        validated(adapter_targets="q proj")


def test_inconsistent_throughput_and_step_time_are_refused() -> None:
    assert len(validated(throughput_token_per_s=128 * 4096 / 4.0 * 1.04)) == 1
    with pytest.raises(
        SchemaError, match="throughput_token_per_s: must be global batch x sequence length / step time"
    ):
        validated(throughput_token_per_s=128 * 4096 / 4.0 * 1.06)


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
