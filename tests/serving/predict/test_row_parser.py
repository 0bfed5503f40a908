from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.serving.predict.row_parser import ASSUMED_LOAD, Table, parse_rows
from roofcast.serving.problem import Problem

PLAIN = {"model": "m", "accelerator": "a", "n_input_token": 100, "n_output_token": 10}


def read(**cells: Any) -> tuple[Table, list[Problem | None]]:
    """Return one row as it is read."""
    return parse_rows({name: np.array([cell], dtype=object) for name, cell in (PLAIN | cells).items()})


@pytest.mark.parametrize("cell", [2, 2.0, "2", " 2 ", "2.0", np.float64(2)])
def test_numbers_are_read_however_they_are_written(cell: Any) -> None:
    table, problems = read(concurrency=cell)
    assert table["concurrency"].tolist() == [2.0]
    assert problems == [None]


@pytest.mark.parametrize("cell", [None, "", "  ", np.nan, pd.NA])
def test_blanks_take_what_is_usual(cell: Any) -> None:
    table, problems = read(n_accelerator=cell, statistic=cell, concurrency=cell, tp=cell, engine=cell)
    assert problems == [None]
    found = {name: table[name].tolist()[0] for name in ("n_accelerator", "statistic", "concurrency", "engine")}
    assert found == {"n_accelerator": 1.0, "statistic": "mean", "concurrency": 1.0, "engine": ""}
    assert np.isnan(table["tp"]).all()
    assert table[ASSUMED_LOAD].tolist() == [True]


@pytest.mark.parametrize("cell", ["many", "inf", "nan", "-1", "0", True, 10**400, "1e7"])
def test_what_is_no_number_within_bounds_is_told_as_it_was_written(cell: Any) -> None:
    table, problems = read(concurrency=cell)
    assert problems == [
        Problem("invalid", "concurrency", f"must be a number from 1 to 1e+06, got {str(cell)[:40]!r}")
    ]
    assert table[ASSUMED_LOAD].tolist() == [True]


def test_columns_of_numbers_are_read_like_texts() -> None:
    cells = [1.0, np.nan, 0.5, 3.0]
    plain = {name: np.array([cell] * 4, dtype=object) for name, cell in PLAIN.items()}
    found = [parse_rows(plain | {"concurrency": np.array(column)}) for column in (cells, [str(c) for c in cells])]
    for name in ("concurrency", ASSUMED_LOAD):
        assert found[0][0][name].tolist()[0::2] == found[1][0][name].tolist()[0::2]
    assert found[0][1][2:] == found[1][1][2:] != [None, None]


def test_the_first_problem_of_a_row_is_told() -> None:
    assert read(n_input_token=None, statistic="p42")[1] == [Problem("invalid", "n_input_token", "must be given")]


@pytest.mark.parametrize(
    ("cells", "field"),
    [
        ({"tp": 1.5}, "tp"),
        ({"tp": 3, "n_accelerator": 4}, "tp"),
        ({"pp": 2}, "tp"),
        ({"request_rate": 1, "concurrency": 2}, "concurrency"),
    ],
)
def test_splits_and_loads_must_make_sense(cells: dict[str, Any], field: str) -> None:
    (problem,) = read(**cells)[1]
    assert problem is not None
    assert (problem.status, problem.field) == ("invalid", field)


def test_columns_that_questions_do_not_have_are_refused() -> None:
    with pytest.raises(SchemaError, match="colour"):
        read(colour="red")
