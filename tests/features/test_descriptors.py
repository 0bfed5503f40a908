from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import InputError
from roofcast.data.specs import BYTE_PER_WEIGHT, PRECISIONS
from roofcast.features.columns import DESCRIPTOR_NAMES
from roofcast.features.descriptors import COMPUTE_PRECISIONS, describe, peak_flop_per_s
from tests.builders import a_model, a_question, an_accelerator, describe_questions


def test_one_row_per_question_in_the_order_of_the_registry() -> None:
    table = describe_questions(a_question(), a_question(concurrency=16))
    assert tuple(table.columns) == DESCRIPTOR_NAMES
    assert table["workload.concurrency"].tolist() == [8.0, 16.0]


def test_the_index_of_the_questions_is_kept() -> None:
    questions = pd.DataFrame([a_question(), a_question()], index=[7, 3])
    spec, part = a_model(), an_accelerator()
    assert describe(questions, {spec.id: spec}, {part.id: part}).index.tolist() == [7, 3]


def test_no_question_gives_an_empty_table() -> None:
    table = describe(pd.DataFrame([a_question()]).head(0), {}, {})
    assert tuple(table.columns) == DESCRIPTOR_NAMES
    assert len(table) == 0


def test_blanks_are_filled() -> None:
    row = describe_questions(a_question(n_accelerator=4), model=a_model(weight_precision="fp8")).iloc[0]
    assert row["config.weight_byte_per_element"] == 1.0
    assert row["config.kv_byte_per_element"] == 2.0
    assert row["config.tp"] == 4.0
    assert row["config.pp"] == row["config.dp"] == 1.0
    assert row["config.flash_attention"] == 1.0
    assert np.isnan(row["workload.request_rate_per_s"])


@pytest.mark.parametrize("blank", ["", None, np.nan])
def test_a_blank_cell_is_as_good_as_no_column(blank: object) -> None:
    blanks = a_question(weight_precision=blank, kv_precision=blank)
    pd.testing.assert_frame_equal(describe_questions(blanks), describe_questions())


def test_what_is_given_wins() -> None:
    given = {"weight_precision": "int4", "kv_precision": "fp8", "tp": 2, "pp": 2, "dp": 2, "n_accelerator": 8}
    row = describe_questions(a_question(**given, flash_attention=False)).iloc[0]
    assert row["config.weight_byte_per_element"] == 0.5
    assert row["config.kv_byte_per_element"] == 1.0
    assert (row["config.tp"], row["config.pp"], row["config.dp"]) == (2.0, 2.0, 2.0)
    assert row["config.flash_attention"] == 0.0


def test_tp_is_what_pp_and_dp_leave() -> None:
    assert describe_questions(a_question(n_accelerator=8, pp=2))["config.tp"].tolist() == [4.0]
    assert describe_questions(a_question(n_accelerator=8, dp=4))["config.tp"].tolist() == [2.0]


@pytest.mark.parametrize(
    "split",
    [
        {"n_accelerator": 4, "tp": 2},
        {"n_accelerator": 4, "tp": 4, "dp": 2},
        {"n_accelerator": 1, "pp": 2, "tp": 1},
        {"n_accelerator": 4, "pp": 3},
        {"n_accelerator": 2, "dp": 4},
    ],
)
def test_a_split_that_does_not_multiply_up_is_refused(split: dict[str, int]) -> None:
    with pytest.raises(InputError, match="tp: tp x pp x dp must equal n_accelerator in whole numbers") as caught:
        describe_questions(a_question(), a_question(**split))
    assert caught.value.field == "tp"


@pytest.mark.parametrize(
    ("statistic", "is_mean", "quantile"),
    [
        ("mean", 1.0, 0.5),
        ("p50", 0.0, 0.5),
        ("p90", 0.0, 0.9),
        ("p95", 0.0, 0.95),
        ("p99", 0.0, 0.99),
        ("", 1.0, 0.5),
    ],
)
def test_statistics_become_quantiles(statistic: str, is_mean: float, quantile: float) -> None:
    row = describe_questions(a_question(statistic=statistic)).iloc[0]
    assert (row["workload.is_mean"], row["workload.quantile"]) == (is_mean, quantile)


@pytest.mark.parametrize(
    ("peaks", "precision", "peak"),
    [
        ({"fp16": 1.0}, "bf16", 1.0),
        ({"fp16": 1.0}, "fp8", 1.0),
        ({"fp16": 1.0, "fp8": 2.0}, "fp8", 2.0),
        ({"fp16": 1.0, "fp8": 2.0}, "fp4", 2.0),
        ({"fp16": 1.0, "fp8": 2.0, "fp4": 4.0}, "fp4", 4.0),
        ({"bf16": 1.0, "fp8": 2.0, "int4": 8.0}, "int4", 1.0),
        ({"bf16": 1.0, "int8": 2.0}, "int8", 2.0),
        ({"bf16": 4.0, "fp32": 1.0, "tf32": 2.0}, "fp32", 2.0),
    ],
)
def test_a_precision_without_its_own_units_runs_on_the_next(
    peaks: dict[str, float], precision: str, peak: float
) -> None:
    assert peak_flop_per_s(an_accelerator(peak_flop_per_s=peaks), precision) == peak


def test_every_precision_can_be_computed_on_every_accelerator() -> None:
    assert set(COMPUTE_PRECISIONS) == set(PRECISIONS) == set(BYTE_PER_WEIGHT)
    for peaks in ({"fp16": 1.0}, {"bf16": 1.0}):
        for precision in PRECISIONS:
            assert peak_flop_per_s(an_accelerator(peak_flop_per_s=peaks), precision) == 1.0


def test_a_mixed_table_takes_each_rows_own_specs() -> None:
    models = {spec.id: spec for spec in (a_model(), a_model(id="b", n_layer=7))}
    parts = {part.id: part for part in (an_accelerator(), an_accelerator(id="p", memory_byte=24e9))}
    questions = pd.DataFrame([a_question(model="b"), a_question(accelerator="p"), a_question()])
    table = describe(questions, models, parts)
    assert table["model.n_layer"].tolist() == [7.0, 32.0, 32.0]
    assert table["hardware.memory_byte"].tolist() == [80e9, 24e9, 80e9]
