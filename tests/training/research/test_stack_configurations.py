from functools import partial

import numpy as np
import pandas as pd
import pytest

from judge.protocols.campaign_rows import CampaignRows
from research import stack_configurations
from research.stack_configurations import configuration_halves, predict_other_half, summarise
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.predictor import RoofcastPredictor
from tests.training.builders import QUICK, repeated

SLOW = "slow/b"


def rows_of_stacks(subset: TrainingSet) -> CampaignRows:
    """Return the same rows of three stacks, of which one takes twice as long."""
    data = repeated(subset, "fast/a", SLOW, "fair/c")
    measurements = data.measurements.assign(stack=data.stacks, rule="", run=range(len(data.X)))
    y = data.y[["tpot_s"]].mul(np.where(data.stacks == SLOW, 2.0, 1.0), axis=0)
    return CampaignRows(measurements, data.X, y, data.groups)


def use_predictor(monkeypatch: pytest.MonkeyPatch, kind: type[RoofcastPredictor]) -> None:
    """Fit small predictors of one metric; three stacks support no interval of `LEVEL`."""
    monkeypatch.setattr(stack_configurations, "RoofcastPredictor", partial(kind, QUICK, ("tpot_s",)))
    monkeypatch.setattr(stack_configurations, "LEVEL", 0.5)


def test_naming_a_stack_tells_what_it_measured(subset: TrainingSet, monkeypatch: pytest.MonkeyPatch) -> None:
    use_predictor(monkeypatch, RoofcastPredictor)
    rows = rows_of_stacks(subset)
    rows.measurements.loc[0, "rule"] = "fault"
    half = configuration_halves(rows.measurements)
    lines = pd.concat([predict_other_half(rows, half, test) for test in (0, 1)])
    is_judged = rows.is_sound & (rows.y["tpot_s"] > 0).to_numpy()
    assert sorted(lines.index) == list(np.flatnonzero(is_judged))
    table = summarise(lines).loc["tpot_s"]
    assert table.index.tolist() == ["fair", "fast", "slow"]
    slow = table.loc["slow"].astype(float)
    assert slow["error on stack"] < 0.7 * slow["error"]


def test_runs_that_were_published_again_are_not_learnt(subset: TrainingSet, monkeypatch: pytest.MonkeyPatch) -> None:
    learnt: list[int] = []

    class Recorder(RoofcastPredictor):
        def fit(self, X: pd.DataFrame, *args: object, **kwargs: object) -> RoofcastPredictor:  # type: ignore[override]
            learnt.extend(X.index)
            return super().fit(X, *args, **kwargs)  # type: ignore[arg-type]

    use_predictor(monkeypatch, Recorder)
    rows = rows_of_stacks(subset)
    half = configuration_halves(rows.measurements)
    own, other = np.flatnonzero(half == 0)[0], np.flatnonzero(half == 1)[0]
    rows.measurements.loc[own, "run"] = rows.measurements.loc[other, "run"]
    predict_other_half(rows, half, 1)
    assert set(learnt) == set(np.flatnonzero(half == 0)) - {own}


def test_a_summary_has_the_errors_and_the_coverage_of_both_answers() -> None:
    n = stack_configurations.MIN_ROW
    lines = pd.DataFrame(
        {
            "metric": "tpot_s",
            "owner": ["a"] * n + ["few"],
            "measured": 1.0,
            "low": 0.5,
            "median": 1.5,
            "high": 1.6,
            "low_on_stack": [1.05] * (n // 2) + [0.9] * (n - n // 2) + [1.0],
            "median_on_stack": 1.1,
            "high_on_stack": 1.2,
        }
    )
    table = summarise(lines)
    assert table.index.tolist() == [("tpot_s", "a")]
    expected = [n, 0.5, 1.0, 0.1, 0.5]
    columns = ["rows", "error", "coverage", "error on stack", "coverage on stack"]
    np.testing.assert_allclose(table[columns].iloc[0].to_numpy(dtype=float), expected)
