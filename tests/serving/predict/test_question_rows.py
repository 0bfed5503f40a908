from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.measurements.cells import Table, object_column
from roofcast.data.measurements.column_names import LONG_NAMES
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.features.descriptors.assumptions import ASSUMED_LOAD
from roofcast.serving.predict.question_rows import Problem, parse_rows

ROW = {"model": "m", "accelerator": "a", "n_input_token": 100, "n_output_token": 10}


def read(**cells: Any) -> tuple[Table, list[Problem | None]]:
    """Return a parsed row."""
    return parse_rows({name: object_column(1, [cell]) for name, cell in (ROW | cells).items()})


@pytest.mark.parametrize("cell", [2, 2.0, "2", " 2 ", "2.0", np.float64(2)])
def test_numbers_are_parsed_from_numbers_and_texts(cell: Any) -> None:
    table, problems = read(concurrency=cell)
    assert table["concurrency"].tolist() == [2.0]
    assert problems == [None]


@pytest.mark.parametrize("cell", [None, "", "  ", np.nan, pd.NA])
def test_blank_cells_have_defaults(cell: Any) -> None:
    table, problems = read(n_accelerator=cell, statistic=cell, concurrency=cell, tp=cell, engine=cell)
    assert problems == [None]
    defaults = {name: table[name].tolist()[0] for name in ("n_accelerator", "statistic", "concurrency", "engine")}
    assert defaults == {"n_accelerator": 1.0, "statistic": "mean", "concurrency": 1.0, "engine": ""}
    assert np.isnan(table["tp"]).all()
    assert table[ASSUMED_LOAD].tolist() == [True]


@pytest.mark.parametrize("cell", ["many", "inf", "nan", "-1", "0", True, 10**400, "1e7"])
def test_a_number_out_of_bounds_is_invalid_and_quoted(cell: Any) -> None:
    table, problems = read(concurrency=cell)
    assert problems == [
        Problem("invalid", "concurrency", f"must be a number from 1 to 1,000,000, got {str(cell)[:40]!r}")
    ]
    assert table[ASSUMED_LOAD].tolist() == [True]


@pytest.mark.parametrize("cell", [["vllm"], ["vllm", "sglang"], [], {"name": "vllm"}, np.array(["vllm", "sglang"])])
@pytest.mark.parametrize("field", ["engine", "model", "statistic"])
def test_a_nested_value_in_a_text_cell_is_invalid(field: str, cell: Any) -> None:
    _, problems = read(**{field: cell})
    assert problems == [Problem("invalid", field, "must be one text, not a list or an object")]


def test_columns_of_numbers_and_of_texts_have_the_same_results() -> None:
    cells = [1.0, np.nan, 0.5, 3.0]
    cells_of_row = {name: np.array([cell] * 4, dtype=object) for name, cell in ROW.items()}
    numbers, texts = [
        parse_rows(cells_of_row | {"concurrency": np.array(column)}) for column in (cells, [str(c) for c in cells])
    ]
    for name in ("concurrency", ASSUMED_LOAD):
        assert numbers[0][name].tolist()[0::2] == texts[0][name].tolist()[0::2]
    assert numbers[1][2:] == texts[1][2:] != [None, None]


@pytest.mark.parametrize(
    ("cells", "field"),
    [
        ({"tp": 1.5}, "tp"),
        ({"tp": 3, "n_accelerator": 4}, "tp"),
        ({"pp": 2}, "tp"),
        ({"request_rate": 1, "concurrency": 2}, "concurrency"),
        ({"load": "open_loop"}, "request_rate"),
        ({"load": "open_loop", "concurrency": 4}, "request_rate"),
        ({"load": "open_loop", "concurrency": 4, "request_rate": 1}, "concurrency"),
        ({"load": "closed_loop", "request_rate": 1}, "request_rate"),
        ({"load": "offline", "request_rate": 1}, "request_rate"),
        ({"load": "burst"}, "load"),
    ],
)
def test_inconsistent_splits_and_loads_are_invalid(cells: dict[str, Any], field: str) -> None:
    (problem,) = read(**cells)[1]
    assert problem is not None
    assert (problem.status, problem.field) == ("invalid", field)


@pytest.mark.parametrize(
    ("name", "problem", "near"),
    [
        ("n_input_tokens", "n_input_tokens: is not an input column; did you mean n_input_token", "n_input_token"),
        ("xyz", "xyz: is not an input column; `roofcast reference` lists the names", None),
        ("ttft_s", "ttft_s: is a result, not an input column; leave it out", None),
        ("campaign", "campaign: is a result", None),
    ],
)
def test_an_unknown_column_is_a_schema_error_with_a_cure(name: str, problem: str, near: str | None) -> None:
    with pytest.raises(SchemaError, match=problem) as error:
        read(**{name: 1})
    assert error.value.near[:1] == ([near] if near else [])


@pytest.mark.parametrize(
    ("cell", "value"),
    [(True, 1.0), ("true", 1.0), ("1", 1.0), (1, 1.0), (False, 0.0), ("False", 0.0), ("", None), (None, None)],
)
def test_flags_are_parsed_from_truth_values_and_texts(cell: Any, value: float | None) -> None:
    table, problems = read(flash_attention=cell)
    assert problems == [None]
    assert np.nan_to_num(table["flash_attention"], nan=-1).tolist() == [-1 if value is None else value]
    expected = Problem("invalid", "flash_attention", "must be true or false, got 'maybe'")
    assert read(flash_attention="maybe")[1] == [expected]


@pytest.mark.parametrize("name", INPUT_COLUMNS)
def test_every_column_may_be_blank_and_a_cell_of_another_kind_is_invalid_with_the_field(name: str) -> None:
    if name not in ROW:
        assert read(**{name: ""})[1] == [None]
    _, (problem,) = read(**{name: ["x"]})
    assert problem is not None
    assert (problem.status, problem.field) == ("invalid", name)


@pytest.mark.parametrize("date", ["2025", "2025-03", "2025-03-31"])
def test_dates_may_be_known_in_part(date: str) -> None:
    assert read(date=date)[1] == [None]
    assert read(date=date + "-")[1] == [
        Problem("invalid", "date", f"must be a date such as 2025-03-31, 2025-03 or 2025, got {date + '-'!r}")
    ]


@pytest.mark.parametrize(("long", "short"), LONG_NAMES.items())
def test_a_degree_has_two_spellings(long: str, short: str) -> None:
    table, problems = read(**{long: "2"}, n_accelerator=2 if short != "ep" else 1)
    assert (table[short].tolist(), problems) == ([2.0], [None])
    assert long not in table


def test_rows_of_both_spellings_are_read_together_and_one_row_keeps_one() -> None:
    names = {"tp": [2, None, 4], "tensor_parallel": [None, "8", 4], "n_accelerator": [2, 8, 4]}
    columns = {name: object_column(3, [cell] * 3) for name, cell in ROW.items()}
    columns |= {name: object_column(3, cells) for name, cells in names.items()}
    table, problems = parse_rows(columns)
    assert table["tp"].tolist() == [2.0, 8.0, 4.0]
    assert problems == [None, None, Problem("invalid", "tensor_parallel", "is given as tp too; keep one")]


@pytest.mark.parametrize(
    ("cells", "is_assumed"),
    [
        ({}, True),
        ({"load": "closed_loop"}, True),
        ({"load": "static_batch"}, True),
        ({"load": "static_batch", "concurrency": 8}, False),
        ({"load": "offline"}, False),
        ({"load": "offline", "concurrency": 8}, False),
        ({"load": "open_loop", "request_rate": 2}, False),
        ({"load": "", "request_rate": 2}, False),
    ],
)
def test_each_load_can_be_given(cells: dict[str, Any], is_assumed: bool) -> None:
    table, (problem,) = read(**cells)
    assert problem is None
    assert table[ASSUMED_LOAD].tolist() == [is_assumed]
    assert (table["concurrency"].tolist() == [1.0]) == is_assumed


@pytest.mark.parametrize(
    "cells",
    [
        {"n_accelerator": 12, "n_prefill_accelerator": 4},
        {"n_accelerator": 12, "n_decode_accelerator": 8},
        {"n_prefill_accelerator": 4, "n_decode_accelerator": 8},
        {"n_accelerator": 12, "n_prefill_accelerator": 4, "tp": 2, "dp": 2},
    ],
)
def test_the_counts_of_disaggregated_prefill_complete_each_other(cells: dict[str, Any]) -> None:
    table, (problem,) = read(**cells)
    assert problem is None
    counts = [table[f"n_{part}accelerator"].tolist() for part in ("", "prefill_", "decode_")]
    assert counts == [[12.0], [4.0], [8.0]]


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({"n_accelerator": 4, "n_prefill_accelerator": 4}, "n_prefill_accelerator: must add up to n_accelerator"),
        (
            {"n_accelerator": 4, "n_prefill_accelerator": 2, "n_decode_accelerator": 4},
            "n_prefill_accelerator: must add up to n_accelerator",
        ),
        ({"n_accelerator": 12, "n_prefill_accelerator": 4, "tp": 3}, "tp: tp x pp x dp must divide n_accelerator"),
        ({"n_accelerator": 8, "tp": 4, "cp": 4}, "tp: tp x pp x dp x cp must equal n_accelerator, got 4 x 4 and 8"),
        ({"n_accelerator": 2, "cp": 4}, "tp: pp x dp x cp must not exceed n_accelerator"),
        ({"chunk_size_token": 1.5}, "chunk_size_token: must be a whole number from 1 to 10,000,000, got '1.5'"),
        ({"draft_acceptance_ratio": 0.5}, "draft_acceptance_ratio: needs speculation; give its kind"),
        ({"speculation": "none", "chain_acceptance_ratio": 0.5}, "chain_acceptance_ratio: needs speculation"),
        ({"prefix_caching": "off", "prefix_cache_ratio": 0.5}, "prefix_cache_ratio: must be 0 or blank"),
    ],
)
def test_settings_that_contradict_each_other_are_invalid(cells: dict[str, Any], problem: str) -> None:
    assert str(read(**cells)[1][0]).startswith(problem)


@pytest.mark.parametrize(
    "cells",
    [
        {"speculation": "eagle", "n_speculative_token": 3, "chain_acceptance_ratio": 0.7},
        {"speculation": "none", "n_speculative_token": 0},
        {"prefix_caching": "off", "prefix_cache_ratio": 0},
        {"prefix_cache_ratio": 0.4},
        {"n_accelerator": 8, "tp": 4, "cp": 2},
    ],
)
def test_settings_that_agree_are_valid(cells: dict[str, Any]) -> None:
    assert read(**cells)[1] == [None]
