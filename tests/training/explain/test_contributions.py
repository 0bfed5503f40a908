from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from roofcast.features.descriptors.config_hash import config_hashes
from roofcast.features.pipeline import build_features
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.explain.contributions import (
    PARTS,
    build_measured_points,
    contributions,
    nearest_measurements,
)
from roofcast.training.explain.importance import group_importance, shap_values
from roofcast.training.explain.measured_points import MeasuredPoints
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from tests.training.builders import QUICK

METRICS = ("ttft_s", "tpot_s")


@dataclass(frozen=True)
class Learnt:
    """What was learnt from three lineages, and the points that it rests on."""

    data: TrainingSet
    predictor: RoofcastPredictor
    points: MeasuredPoints

    def nearest(self, X: pd.DataFrame, metric: str, n: int) -> pd.DataFrame:
        (near,) = nearest_measurements(self.predictor, self.points, X, metric, n)
        return near


@pytest.fixture(scope="module")
def learnt(subset: TrainingSet) -> Learnt:
    predictor = RoofcastPredictor(QUICK, METRICS).fit(subset.X, subset.y, subset.groups)
    return Learnt(subset, predictor, build_measured_points(predictor, subset))


def references(subset: TrainingSet, rows: slice = slice(0, 2)) -> CalibrationPoints:
    return CalibrationPoints(subset.X[rows], subset.y[rows] * 1.5)


@pytest.mark.parametrize("quantile", [0.5, 0.95])
@pytest.mark.parametrize("with_references", [False, True])
def test_contributions_sum_to_the_prediction(quantile: float, with_references: bool, learnt: Learnt) -> None:
    X = learnt.data.X.head(40).assign(**{"workload.quantile": quantile, "workload.is_mean": 0.0})
    calibration = references(learnt.data) if with_references else None
    expected = learnt.predictor.predict_distribution(X, calibration).median
    for metric, table in contributions(learnt.predictor, X, calibration).items():
        assert tuple(table.columns) == PARTS
        np.testing.assert_allclose(table.sum(axis=1), np.log(expected[metric]), atol=1e-12)
        assert (table["references"] != 0).any() == with_references
        assert (table["typical_ratio"] == table["typical_ratio"].iloc[0]).all()


def test_contributions_of_groups_are_shap_values(learnt: Learnt) -> None:
    predictor, X = learnt.predictor, learnt.data.X.assign(**{"workload.quantile": 0.5})
    features, estimates, _ = build_features(X, predictor.coefficients_)
    for metric, table in contributions(predictor, X).items():
        groups = group_importance(shap_values(predictor.regressors_[metric], features)[0])
        np.testing.assert_allclose(table[groups.columns], groups, atol=1e-5)
        np.testing.assert_allclose(np.exp(table["estimate"]), estimates[metric])


def test_training_points_are_those_of_the_random_effects(learnt: Learnt) -> None:
    points = learnt.points
    for metric, uncertainty in learnt.predictor.error_distributions_.items():
        keys = points.keys.iloc[points.place[metric]]
        assert (keys["engine"].to_numpy() == config_hashes(learnt.data.X)["engine"][0]).all()
        load = np.exp(uncertainty.effects.training_points_.workload[:, 2])
        rows = points.rows.iloc[points.place[metric]]
        np.testing.assert_allclose(rows["concurrency"].to_numpy(dtype=float), load)
        assert (rows[metric] > 0).all()


def test_the_nearest_measurement_of_a_training_point_is_itself(learnt: Learnt) -> None:
    row, data = learnt.points.rows.iloc[learnt.points.place["tpot_s"][5]], learnt.data
    names = ["model", "accelerator", "concurrency"]
    is_same = (data.measurements[names] == row[names]).all(axis=1) & (data.y["tpot_s"] == row["tpot_s"])
    near = learnt.nearest(data.X[is_same.to_numpy()].head(1), "tpot_s", 3)
    assert len(near) > 1
    assert near["measured"].iloc[0] == row["tpot_s"]
    assert near["differs"].iloc[0] == []
    assert near["correlation"].is_monotonic_decreasing
    assert all(near["differs"].iloc[1:])


def test_nearest_measurements_have_each_configuration_once(learnt: Learnt) -> None:
    X = learnt.data.X
    near = learnt.nearest(X.head(1), "ttft_s", 100)
    assert not near.duplicated(["model", "accelerator", "n_accelerator"]).any()
    assert nearest_measurements(learnt.predictor, MeasuredPoints(), X.head(2), "ttft_s")[1].empty


def test_nearest_measurements_name_the_columns_that_differ(learnt: Learnt) -> None:
    other = {"workload.n_output_token": 5000.0, "model.n_layer": 7.0, "config.engine": 0.0}
    near = learnt.nearest(learnt.data.X.head(1).assign(**other), "tpot_s", 1)
    assert {"model", "engine", "n_output_token"} <= set(near["differs"].iloc[0])


def test_a_subset_of_the_metrics_is_predicted_as_among_all(learnt: Learnt) -> None:
    X, calibration, predictor = learnt.data.X.head(5), references(learnt.data), learnt.predictor
    some = predictor.predict_distribution(X, calibration, metrics={"tpot_s", "power_w"})
    pd.testing.assert_frame_equal(some.log_sd, predictor.predict_distribution(X, calibration).log_sd[["tpot_s"]])
    assert list(contributions(predictor, X, calibration, {"tpot_s"})) == ["tpot_s"]
    assert predictor.metrics_ == METRICS
