from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judge.protocols.p7_blanks import COLUMN_MARK, blank_figures
from judge.scoreboard import Scoreboard


def test_doubt_widens_intervals_and_moves_no_prediction(board: Scoreboard) -> None:
    lines = board.results["P7_blanks"].tables["P7_blanks"]
    columns = [name.split(COLUMN_MARK)[1] for name in map(str, lines) if name.startswith(f"predicted{COLUMN_MARK}")]
    assert {"engine", "n_request"} <= set(columns)
    is_wider = []
    for column in columns:
        part = lines[lines[f"predicted_blank_{column}"].notna()]
        width, narrow = (
            part[f"high_90{name}"] / part[f"low_90{name}"]
            for name in (f"_blank_{column}", f"_no_doubt_blank_{column}")
        )
        assert (width >= narrow * (1 - 1e-12)).all(), column
        is_wider.append((width > narrow * 1.001).any())
        middle = np.sqrt(part[f"high_90_blank_{column}"] * part[f"low_90_blank_{column}"])
        assert np.allclose(middle, part[f"predicted_blank_{column}"])
    assert any(is_wider)


def test_other_tables_of_p7_and_p8_have_no_blanks(board: Scoreboard) -> None:
    for name in ("P7", "P8"):
        assert not [column for column in map(str, board.results[name].tables[name]) if COLUMN_MARK in column]


def test_owners_weigh_alike_whatever_their_rows() -> None:
    bounds = {"low_90": 0.5, "high_90": 2.0, "low_90_blank_tp": 0.1, "high_90_blank_tp": 9.0}
    bounds |= {"low_90_no_doubt_blank_tp": 0.9, "high_90_no_doubt_blank_tp": 1.1}
    line = {"metric": "tpot", "measured": 1.0, "predicted": 1.5, "predicted_blank_tp": 2.0} | bounds
    lines = pd.DataFrame([line | {"stack": "a"}] * 3 + [line | {"stack": "b/x", "measured": 4.0}])
    figures = blank_figures(lines)["tp"]["tpot"]
    assert (figures["n_row"], figures["n_owner"]) == (4.0, 2.0)
    assert (figures["coverage_90_stated"], figures["coverage_90_no_doubt"], figures["coverage_90"]) == (0.5, 0.5, 1.0)
    assert figures["median_ape"] == pytest.approx((1.0 + 0.5) / 2)


def test_a_column_that_no_row_states_has_no_scores() -> None:
    line = {"metric": "tpot", "measured": 1.0, "predicted": 1.5, "predicted_blank_tp": np.nan, "stack": "a"}
    assert blank_figures(pd.DataFrame([line])) == {}
