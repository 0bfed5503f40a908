import json

import numpy as np
import pandas as pd
import pytest

from judge.protocols.p9_memory import METHODS, QUANTITIES, log_errors, start_figures
from judge.scoreboard import Scoreboard, figure_rows, run_scoreboard


@pytest.fixture(scope="module")
def board() -> Scoreboard:
    return run_scoreboard(["P9"])


def test_every_method_is_scored_on_every_quantity(board: Scoreboard) -> None:
    figures = json.loads(board.to_json())["P9"]
    assert set(figures) == set(METHODS)
    for by_quantity in figures.values():
        assert list(by_quantity) == [*QUANTITIES, "starts"]
    assert {row["quantity"] for row in figure_rows("P9", figures)} == {*QUANTITIES, "starts"}


def test_figures_follow_from_the_dump(board: Scoreboard) -> None:
    result = board.results["P9"]
    lines = result.tables["P9"]
    errors = log_errors(lines[lines["method"] == "roofcast"], "weights").abs()
    scores = json.loads(board.to_json())["P9"]["roofcast"]["weights"]
    assert scores == {"median_ln": errors.median(), "q90_ln": errors.quantile(0.9), "n": len(errors)}


def test_starts_are_told_at_the_margin_that_few_of_those_that_start_miss() -> None:
    margin = [*np.linspace(0.1, 1.0, 100), 0.05, 0.5]
    lines = pd.DataFrame({"status": ["ok"] * 100 + ["out_of_memory"] * 2, "predicted_margin": margin})
    found = start_figures(lines.assign(judged="starts"))
    assert (found["recall"], found["false_alarm"]) == (0.5, 0.03)
