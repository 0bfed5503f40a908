from __future__ import annotations

from typing import Any

import pytest

from roofcast.data.measurements.cells import Table, object_column
from roofcast.features.descriptors.assumptions import ASSUMED_LOAD
from roofcast.serving.predict.question_rows import parse_rows
from roofcast.serving.row_problems import Problem

PLAIN = {"model": "m", "accelerator": "a", "n_input_token": 100, "n_output_token": 10}


def read(**cells: Any) -> tuple[Table, Problem | None]:
    """Return a parsed row and its problem."""
    table, (problem,) = parse_rows({name: object_column(1, [cell]) for name, cell in (PLAIN | cells).items()})
    return table, problem


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
    table, problem = read(**cells)
    assert problem is None
    assert table[ASSUMED_LOAD].tolist() == [is_assumed]
    assert (table["concurrency"].tolist() == [1.0]) == is_assumed


@pytest.mark.parametrize(
    ("cells", "field"),
    [
        ({"load": "open_loop"}, "request_rate"),
        ({"load": "open_loop", "concurrency": 4}, "request_rate"),
        ({"load": "open_loop", "concurrency": 4, "request_rate": 1}, "concurrency"),
        ({"load": "closed_loop", "request_rate": 1}, "request_rate"),
        ({"load": "offline", "request_rate": 1}, "request_rate"),
        ({"load": "burst"}, "load"),
    ],
)
def test_a_load_and_its_numbers_must_agree(cells: dict[str, Any], field: str) -> None:
    _, problem = read(**cells)
    assert problem is not None
    assert (problem.status, problem.field) == ("invalid", field)


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
    table, problem = read(**cells)
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
        ({"n_speculative_token": 3}, "n_speculative_token: needs speculation; give its kind"),
        ({"speculation": "none", "acceptance_ratio": 0.5}, "acceptance_ratio: needs speculation"),
        ({"prefix_caching": "off", "prefix_cache_ratio": 0.5}, "prefix_cache_ratio: must be 0 or blank"),
    ],
)
def test_settings_that_contradict_each_other_are_invalid(cells: dict[str, Any], problem: str) -> None:
    assert str(read(**cells)[1]).startswith(problem)


@pytest.mark.parametrize(
    "cells",
    [
        {"speculation": "eagle", "n_speculative_token": 3, "acceptance_ratio": 0.7},
        {"speculation": "none", "n_speculative_token": 0},
        {"prefix_caching": "off", "prefix_cache_ratio": 0},
        {"prefix_cache_ratio": 0.4},
        {"n_accelerator": 8, "tp": 4, "cp": 2},
    ],
)
def test_settings_that_agree_are_valid(cells: dict[str, Any]) -> None:
    assert read(**cells)[1] is None
