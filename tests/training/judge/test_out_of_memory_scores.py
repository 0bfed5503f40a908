import numpy as np
import pytest

from judge.out_of_memory_scores import (
    out_of_memory_figures,
    predict_held_out_attempts,
    probability_scores,
)
from roofcast.training.learner.out_of_memory import Attempts


def test_held_out_lineages_are_told_better_than_by_the_rule(attempts: Attempts) -> None:
    figures, calibration = out_of_memory_figures(attempts)
    error = figures[figures["attempts"] == "all"].set_index("method")
    assert error["log_loss"].idxmin() == "classifier"
    assert set(calibration.groupby("method")["n"].sum()) == {len(attempts.ran)}
    p_runs = predict_held_out_attempts(attempts)
    expected = probability_scores(attempts.ran, p_runs)
    assert error.loc["classifier", ["brier", "log_loss"]].to_dict() == expected


def test_the_held_out_probability_knows_nothing_of_its_lineage(attempts: Attempts) -> None:
    group = (attempts.groups == "flan-ul2").to_numpy()
    other = Attempts(attempts.rows, attempts.X, np.where(group, ~attempts.ran, attempts.ran), attempts.groups)
    assert predict_held_out_attempts(other)[group] == pytest.approx(predict_held_out_attempts(attempts)[group])
