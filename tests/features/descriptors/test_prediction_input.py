import numpy as np
import pandas as pd
import pytest

from roofcast.features.descriptors.prediction_input import column_arrays, number_column, text_column

TABLE = column_arrays(pd.DataFrame({"name": ["a", "", None, np.nan], "count": [1.0, np.nan, 0.0, 3.0]}))


def test_blank_names_take_the_default() -> None:
    assert text_column(TABLE, "name", "b").tolist() == ["a", "b", "b", "b"]
    assert text_column(TABLE, "missing", "b").tolist() == ["b"] * 4
    assert text_column(TABLE, "name", np.array(list("wxyz"), dtype=object)).tolist() == ["a", "x", "y", "z"]


@pytest.mark.parametrize("default", [2.0, np.full(4, 2.0)])
def test_blank_numbers_take_the_default_and_zero_is_none(default: float) -> None:
    assert number_column(TABLE, "count", default).tolist() == [1.0, 2.0, 0.0, 3.0]
    assert number_column(TABLE, "missing", default).tolist() == [2.0] * 4
