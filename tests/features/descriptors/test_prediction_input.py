from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.features.descriptors.prediction_input import distinct, n_question, number, text

TABLE = pd.DataFrame({"name": ["a", "", None, np.nan], "count": [1.0, np.nan, 0.0, 3.0]})


def test_blank_names_take_the_default() -> None:
    assert text(TABLE, "name", "b").tolist() == ["a", "b", "b", "b"]
    assert text(TABLE, "missing", "b").tolist() == ["b"] * 4
    assert text(TABLE, "name", np.array(list("wxyz"), dtype=object)).tolist() == ["a", "x", "y", "z"]


@pytest.mark.parametrize("default", [2.0, np.full(4, 2.0)])
def test_blank_numbers_take_the_default_and_zero_is_none(default: float) -> None:
    assert number(TABLE, "count", default).tolist() == [1.0, 2.0, 0.0, 3.0]
    assert number(TABLE, "missing", default).tolist() == [2.0] * 4


def test_no_question_has_no_cells() -> None:
    assert len(text(TABLE.head(0), "name", "b")) == len(number(TABLE.head(0), "count", 1.0)) == 0


def test_columns_are_as_good_as_a_table() -> None:
    columns = {str(name): TABLE[name].to_numpy() for name in TABLE}
    assert n_question(columns) == n_question(TABLE) == 4
    for name in ("name", "missing"):
        assert text(columns, name, "b").tolist() == text(TABLE, name, "b").tolist()
    for name in ("count", "missing"):
        np.testing.assert_array_equal(number(columns, name, 2.0), number(TABLE, name, 2.0))
    assert n_question({}) == 0


def test_distinct_values_come_in_their_order() -> None:
    codes, values = distinct(TABLE["count"].fillna(9.0))
    assert values == [1.0, 9.0, 0.0, 3.0]
    assert codes.tolist() == [0, 1, 2, 3]
