import numpy as np
import pytest

from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from tests.training.builders import QUICK


@pytest.fixture(scope="module")
def predictor(subset: TrainingSet) -> RoofcastPredictor:
    return RoofcastPredictor(QUICK, ("ttft_s", "tpot_s")).fit(subset.X, subset.y, subset.groups)


def candidates(subset: TrainingSet, n: int = 12) -> TrainingSet:
    """Return one query for each of a few accelerators, of a model without measurements."""
    X = subset.X.assign(**{"model.n_layer": 77.0, "workload.concurrency": 8.0})
    first = ~X.duplicated(["hardware.bandwidth_byte_per_s", "config.tp"]).to_numpy()
    data = TrainingSet(subset.measurements, X, subset.y, subset.groups, subset.stacks, subset.ids).take(first)
    return data.take(np.arange(len(data.X)) < n)


def variance(
    predictor: RoofcastPredictor, data: TrainingSet, metric: str, references: CalibrationPoints | None = None
) -> np.ndarray:
    distribution = predictor.condition_on(references).error_distributions_[metric]
    return np.asarray(distribution.effects.predict(build_group_keys(data.X))[1] ** 2)


@pytest.mark.parametrize("metric", ["ttft_s", "tpot_s"])
def test_the_first_pick_reduces_variance_most(metric: str, predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    data = candidates(subset)
    (pick,) = rank_measurements(predictor, data.X, [metric], 1)
    features = predictor.predict_ratio(data.X).features
    size = predictor.error_distributions_[metric].scale.predict(features)
    before, expected = variance(predictor, data, metric), predictor.predict(data.X)
    variances, narrower = [], []
    for i in range(len(data.X)):
        row = slice(i, i + 1)
        after = variance(predictor, data, metric, CalibrationPoints(data.X[row], expected[row]))
        variances.append(float(size**2 @ after))
        narrower.append(float(np.mean(1 - np.sqrt(after / before))))
    assert variances[pick.row] == pytest.approx(min(variances))
    assert pick.narrower[metric] == pytest.approx(narrower[pick.row])


def test_each_candidate_is_picked_once_and_narrows(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    data = candidates(subset, 4)
    picks = rank_measurements(predictor, data.X, ["ttft_s", "tpot_s"], 9)
    assert sorted(pick.row for pick in picks) == [0, 1, 2, 3]
    measured = np.array([True, False, True, False])
    left = rank_measurements(predictor, data.X, ["ttft_s"], 9, is_measured=measured)
    assert sorted(pick.row for pick in left) == [1, 3]
    assert all(0 < share < 1 for pick in picks for share in pick.narrower.values())
