from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.features.descriptors.config_hash import config_hashes
from roofcast.features.pipeline import build_features
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.explain.contributions import (
    PARTS,
    TrainingPoints,
    build_training_points,
    contributions,
    nearest_measurements,
)
from roofcast.training.explain.importance import group_importance, shap_values
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from tests.training.builders import QUICK

METRICS = ("ttft_s", "tpot_s")


@pytest.fixture(scope="module")
def predictor(subset: TrainingSet) -> RoofcastPredictor:
    return RoofcastPredictor(QUICK, METRICS).fit(subset.X, subset.y, subset.groups)


@pytest.fixture(scope="module")
def training_points(predictor: RoofcastPredictor, subset: TrainingSet) -> TrainingPoints:
    return build_training_points(predictor, subset)


def references(subset: TrainingSet, rows: slice = slice(0, 2)) -> CalibrationPoints:
    return CalibrationPoints(subset.X[rows], subset.y[rows] * 1.5)


@pytest.mark.parametrize("quantile", [0.5, 0.95])
@pytest.mark.parametrize("with_references", [False, True])
def test_contributions_sum_to_the_prediction(
    quantile: float, with_references: bool, predictor: RoofcastPredictor, subset: TrainingSet
) -> None:
    X = subset.X.head(40).assign(**{"workload.quantile": quantile, "workload.is_mean": 0.0})
    calibration = references(subset) if with_references else None
    expected = predictor.predict_distribution(X, calibration).median
    for metric, table in contributions(predictor, X, calibration).items():
        assert tuple(table.columns) == PARTS
        np.testing.assert_allclose(table.sum(axis=1), np.log(expected[metric]), atol=1e-12)
        assert (table["references"] != 0).any() == with_references
        assert (table["typical_ratio"] == table["typical_ratio"].iloc[0]).all()


def test_contributions_of_groups_are_shap_values(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    X = subset.X.assign(**{"workload.quantile": 0.5})
    features, estimates, _ = build_features(X, predictor.coefficients_)
    for metric, table in contributions(predictor, X).items():
        regressor = predictor.regressors_[metric]
        groups = group_importance(shap_values(regressor, features)[0])
        np.testing.assert_allclose(table[groups.columns], groups, atol=1e-5)
        np.testing.assert_allclose(np.exp(table["estimate"]), estimates[metric])


def test_training_points_are_those_of_the_random_effects(
    predictor: RoofcastPredictor, training_points: TrainingPoints, subset: TrainingSet
) -> None:
    for metric, uncertainty in predictor.error_distributions_.items():
        keys = training_points.keys.iloc[training_points.place[metric]]
        assert (keys["engine"].to_numpy() == config_hashes(subset.X)["engine"][0]).all()
        load = np.exp(uncertainty.effects.training_points_.workload[:, 2])
        rows = training_points.rows.iloc[training_points.place[metric]]
        np.testing.assert_allclose(rows["concurrency"].to_numpy(dtype=float), load)
        assert (rows[metric] > 0).all()


def test_the_nearest_measurement_of_a_training_point_is_itself(
    predictor: RoofcastPredictor, training_points: TrainingPoints, subset: TrainingSet
) -> None:
    row = training_points.rows.iloc[training_points.place["tpot_s"][5]]
    is_same = (
        subset.measurements[["model", "accelerator", "concurrency"]] == row[["model", "accelerator", "concurrency"]]
    )
    X = subset.X[(is_same.all(axis=1) & (subset.y["tpot_s"] == row["tpot_s"])).to_numpy()].head(1)
    (near,) = nearest_measurements(predictor, training_points, X, "tpot_s", 3)
    assert len(near) == 3
    assert near["measured"].iloc[0] == row["tpot_s"]
    assert near["differs"].iloc[0] == []
    assert near["correlation"].is_monotonic_decreasing
    assert all(near["differs"].iloc[1:])


def test_nearest_measurements_have_each_configuration_once(
    predictor: RoofcastPredictor, training_points: TrainingPoints, subset: TrainingSet
) -> None:
    (near,) = nearest_measurements(predictor, training_points, subset.X.head(1), "ttft_s", 100)
    assert not near.duplicated(["model", "accelerator", "n_accelerator"]).any()
    assert nearest_measurements(predictor, TrainingPoints(), subset.X.head(2), "ttft_s")[1].empty


def test_nearest_measurements_name_the_columns_that_differ(
    predictor: RoofcastPredictor, training_points: TrainingPoints, subset: TrainingSet
) -> None:
    X = subset.X.head(1).assign(**{"workload.n_output_token": 5000.0, "model.n_layer": 7.0, "config.engine": 0.0})
    (near,) = nearest_measurements(predictor, training_points, X, "tpot_s", 1)
    assert {"model", "engine", "n_output_token"} <= set(near["differs"].iloc[0])


def test_a_subset_of_the_metrics_is_predicted_as_among_all(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    X, calibration = subset.X.head(5), references(subset)
    subset_of_metrics = predictor.predict_distribution(X, calibration, metrics={"tpot_s", "power_w"})
    pd.testing.assert_frame_equal(
        subset_of_metrics.log_sd, predictor.predict_distribution(X, calibration).log_sd[["tpot_s"]]
    )
    assert list(contributions(predictor, X, calibration, {"tpot_s"})) == ["tpot_s"]
    assert predictor.metrics_ == METRICS


def test_a_conditioned_predictor_knows_the_references(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    X, calibration = subset.X.head(5), references(subset)
    expected = predictor.predict_distribution(X, calibration)
    conditioned = predictor.condition_on(calibration).predict_distribution(X)
    pd.testing.assert_frame_equal(conditioned.log_sd, expected.log_sd)
    assert predictor.condition_on(None) is predictor
    assert not predictor.predict_distribution(X).median.equals(expected.median)
