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
def anchors(predictor: RoofcastPredictor, subset: TrainingSet) -> TrainingPoints:
    return build_training_points(predictor, subset)


def references(subset: TrainingSet, rows: slice = slice(0, 2)) -> CalibrationPoints:
    return CalibrationPoints(subset.X[rows], subset.y[rows] * 1.5)


@pytest.mark.parametrize("quantile", [0.5, 0.95])
@pytest.mark.parametrize("is_told", [False, True])
def test_contributions_sum_to_the_prediction(
    quantile: float, is_told: bool, predictor: RoofcastPredictor, subset: TrainingSet
) -> None:
    X = subset.X.head(40).assign(**{"workload.quantile": quantile, "workload.is_mean": 0.0})
    told = references(subset) if is_told else None
    expected = predictor.predict_distribution(X, told).median
    for metric, table in contributions(predictor, X, told).items():
        assert tuple(table.columns) == PARTS
        np.testing.assert_allclose(table.sum(axis=1), np.log(expected[metric]), atol=1e-12)
        assert (table["references"] != 0).any() == is_told
        assert (table["typical_ratio"] == table["typical_ratio"].iloc[0]).all()


def test_groups_are_the_shapley_values_of_the_trees(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    X = subset.X.assign(**{"workload.quantile": 0.5})
    features, estimates, _ = build_features(X, predictor.coefficients_)
    for metric, table in contributions(predictor, X).items():
        regressor = predictor.regressors_[metric]
        groups = group_importance(shap_values(regressor, features)[0])
        np.testing.assert_allclose(table[groups.columns], groups, atol=1e-5)
        np.testing.assert_allclose(np.exp(table["estimate"]), estimates[metric])


def test_anchors_are_the_rows_that_the_effects_stand_on(
    predictor: RoofcastPredictor, anchors: TrainingPoints, subset: TrainingSet
) -> None:
    for metric, uncertainty in predictor.error_distributions_.items():
        kept = anchors.keys.iloc[anchors.place[metric]]
        assert (kept["engine"].to_numpy() == config_hashes(subset.X)["engine"][0]).all()
        load = np.exp(uncertainty.effects.training_points_.workload[:, 2])
        rows = anchors.rows.iloc[anchors.place[metric]]
        np.testing.assert_allclose(rows["concurrency"].to_numpy(dtype=float), load)
        assert (rows[metric] > 0).all()


def test_a_measured_question_is_nearest_to_itself(
    predictor: RoofcastPredictor, anchors: TrainingPoints, subset: TrainingSet
) -> None:
    row = anchors.rows.iloc[anchors.place["tpot_s"][5]]
    asked = (
        subset.measurements[["model", "accelerator", "concurrency"]] == row[["model", "accelerator", "concurrency"]]
    )
    X = subset.X[(asked.all(axis=1) & (subset.y["tpot_s"] == row["tpot_s"])).to_numpy()].head(1)
    (near,) = nearest_measurements(predictor, anchors, X, "tpot_s", 3)
    assert len(near) == 3
    assert near["measured"].iloc[0] == row["tpot_s"]
    assert near["differs"].iloc[0] == []
    assert near["correlation"].is_monotonic_decreasing
    assert all(near["differs"].iloc[1:])


def test_each_configuration_is_shown_once(
    predictor: RoofcastPredictor, anchors: TrainingPoints, subset: TrainingSet
) -> None:
    (near,) = nearest_measurements(predictor, anchors, subset.X.head(1), "ttft_s", 100)
    assert not near.duplicated(["model", "accelerator", "n_accelerator"]).any()
    assert nearest_measurements(predictor, TrainingPoints(), subset.X.head(2), "ttft_s")[1].empty


def test_what_differs_is_named(predictor: RoofcastPredictor, anchors: TrainingPoints, subset: TrainingSet) -> None:
    X = subset.X.head(1).assign(**{"workload.n_output_token": 5000.0, "model.n_layer": 7.0, "config.engine": 0.0})
    (near,) = nearest_measurements(predictor, anchors, X, "tpot_s", 1)
    assert {"model", "engine", "n_output_token"} <= set(near["differs"].iloc[0])


def test_some_metrics_are_predicted_as_among_all(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    X, told = subset.X.head(5), references(subset)
    some = predictor.predict_distribution(X, told, metrics={"tpot_s", "power_w"})
    pd.testing.assert_frame_equal(some.log_sd, predictor.predict_distribution(X, told).log_sd[["tpot_s"]])
    assert list(contributions(predictor, X, told, {"tpot_s"})) == ["tpot_s"]
    assert predictor.metrics_ == METRICS


def test_a_conditioned_predictor_knows_its_references(predictor: RoofcastPredictor, subset: TrainingSet) -> None:
    X, told = subset.X.head(5), references(subset)
    expected = predictor.predict_distribution(X, told)
    conditioned = predictor.condition_on(told).predict_distribution(X)
    pd.testing.assert_frame_equal(conditioned.log_sd, expected.log_sd)
    assert predictor.condition_on(None) is predictor
    assert not predictor.predict_distribution(X).median.equals(expected.median)
