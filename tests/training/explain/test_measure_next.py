from __future__ import annotations

import numpy as np
import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.learner.group_keys import build_group_keys
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from tests.training.builders import QUICK


@pytest.fixture(scope="module")
def predictor(subset: TrainingSet) -> RoofcastPredictor:
    return RoofcastPredictor(QUICK, ("ttft_s", "tpot_s")).fit(subset.X, subset.y, subset.groups)


def settings(subset: TrainingSet, n: int = 12) -> TrainingSet:
    """Return one row of each of some accelerators, of a model that nobody measured."""
    X = subset.X.assign(**{"model.n_layer": 77.0, "workload.concurrency": 8.0})
    first = ~X.duplicated(["hardware.bandwidth_byte_per_s", "config.tp"]).to_numpy()
    data = TrainingSet(subset.measurements, X, subset.y, subset.groups, subset.stacks, subset.ids).take(first)
    return data.take(np.arange(len(data.X)) < n)


def variance(
    predictor: RoofcastPredictor, data: TrainingSet, told: CalibrationPoints | None, metric: str
) -> np.ndarray:
    known = predictor.condition_on(told).error_distributions_[metric]
    return np.asarray(known.effects.predict(build_group_keys(data.X))[1] ** 2)


@pytest.mark.parametrize("metric", ["ttft_s", "tpot_s"])
def test_the_pick_is_the_one_that_conditioning_finds_best(
    metric: str, predictor: RoofcastPredictor, subset: TrainingSet
) -> None:
    data = settings(subset)
    (pick,) = rank_measurements(predictor, data.X, [metric], 1)
    features = predictor.predict_ratio(data.X).features.to_numpy()
    size = predictor.error_distributions_[metric].scale.predict(features)
    before, expected = variance(predictor, data, None, metric), predictor.predict(data.X)
    left, narrower = [], []
    for i in range(len(data.X)):
        row = slice(i, i + 1)
        after = variance(predictor, data, CalibrationPoints(data.X[row], expected[row]), metric)
        left.append(float(size**2 @ after))
        narrower.append(float(np.mean(1 - np.sqrt(after / before))))
    assert left[pick.row] == pytest.approx(min(left))
    assert pick.narrower[metric] == pytest.approx(narrower[pick.row])


def test_each_setting_is_picked_once_and_helps(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    data = settings(subset, 4)
    picks = rank_measurements(predictor, data.X, ["ttft_s", "tpot_s"], 9)
    assert sorted(pick.row for pick in picks) == [0, 1, 2, 3]
    assert all(0 < share < 1 for pick in picks for share in pick.narrower.values())
