from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from research.shipped_rows import ShippedRows
from research.worst_errors import ALONE, SERIES_OFF, UNKNOWN, worst_errors
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.examples import example_descriptors
from roofcast.features.pipeline import build_features

N_ROW = 6


def rows_of(campaigns: str, models: str) -> ShippedRows:
    X = (
        pd.DataFrame(example_descriptors())
        .loc[[0] * N_ROW]
        .reset_index(drop=True)
        .assign(**{"workload.quantile": 0.5})
    )
    features, estimates, _ = build_features(X, DEFAULT_COEFFICIENTS)
    measurements = pd.DataFrame({"campaign": list(campaigns), "model": list(models)}).assign(
        accelerator="a", n_accelerator=1, engine="e", load="closed_loop"
    )
    bundle: Any = SimpleNamespace(predictor=SimpleNamespace(coefficients_=DEFAULT_COEFFICIENTS))
    y = pd.DataFrame(estimates) * 2
    groups, stacks = measurements["model"], measurements["campaign"]
    return ShippedRows(bundle, measurements, X, y, groups, stacks, features, pd.DataFrame(estimates))


def test_a_row_whose_neighbours_agree_stands_alone() -> None:
    errors = pd.DataFrame({"tpot_s": np.log([8, 1.1, 0.9, 1, 1.2, 1])})
    worst = worst_errors(rows_of("aaaaaa", "xxxxyy"), errors, {"tpot_s": 1})
    assert worst.index.tolist() == [0]
    assert worst["reading"].tolist() == [ALONE]
    assert worst["factor"].tolist() == pytest.approx([8])
    assert worst["n_neighbour"].tolist() == [3]
    assert worst["measured"].tolist() == pytest.approx((8 * worst["predicted"]).tolist())
    assert "%" in worst["largest_part"].iloc[0]


def test_a_series_that_is_off_alike_is_named_and_one_row_of_each_stack_is_listed() -> None:
    errors = pd.DataFrame({"tpot_s": np.log([8, 7, 9, 6, 0.2, 1])})
    worst = worst_errors(rows_of("aaaabb", "xxxxyz"), errors, {"tpot_s": 3})
    assert worst.index.tolist() == [2, 4]
    assert worst["reading"].tolist() == [SERIES_OFF, UNKNOWN]
