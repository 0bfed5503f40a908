from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from research.importance import STAGES, Fold, fit_folds, gain_importance, permutation_importance, stage_errors
from roofcast.features.columns import DESCRIPTOR_NAMES, FEATURE_NAMES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.examples import example_descriptors
from roofcast.features.pipeline import METRICS, build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.learner.boosted_residual import ResidualRegressor
from roofcast.training.learner.ratio_model import RatioModel

N_ROW = 240
SIGNAL, NOISE = "config.flash_attention", "workload.is_mean"
"""Columns independent of all others: noise is in no formula, signal multiplies the measurements below by e."""


@dataclass(frozen=True)
class Case:
    """Rows of four LLMs whose measurements are the estimate times exp(signal)."""

    X: pd.DataFrame
    y: pd.DataFrame
    groups: pd.Series
    predictor: RatioModel


@pytest.fixture(scope="module")
def case() -> Case:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(example_descriptors()).loc[[0] * N_ROW].reset_index(drop=True)
    X["workload.n_input_token"] = rng.integers(100, 2000, N_ROW).astype(float)
    X["workload.concurrency"] = rng.integers(1, 32, N_ROW).astype(float)
    X[SIGNAL], X[NOISE] = rng.integers(0, 2, (2, N_ROW)).astype(float)
    estimates = pd.DataFrame(build_features(X, DEFAULT_COEFFICIENTS)[1])
    scatter = np.exp(X[SIGNAL] + rng.normal(0, 0.02, N_ROW))
    y = estimates.mul(scatter, axis=0).assign(**{m: np.nan for m in METRICS if m not in {"ttft_s", "tpot_s"}})
    groups = pd.Series(np.repeat(list("abcd"), N_ROW // 4))
    config = TrainingConfig(n_member=2, n_estimators=40, max_depth=3, learning_rate=0.2, colsample_bytree=1.0)
    return Case(X, y, groups, RatioModel(config, coefficients=DEFAULT_COEFFICIENTS))


@pytest.fixture(scope="module")
def folds(case: Case) -> list[Fold]:
    return fit_folds(case.predictor, case.X, case.y, case.groups)


@pytest.fixture(scope="module")
def increases(case: Case, folds: list[Fold]) -> pd.DataFrame:
    return permutation_importance(folds, case.X, case.y, case.groups)


def figure(table: pd.DataFrame, metric: str, row: str, column: str = "mean") -> float:
    return float(table[column].to_dict()[metric, row])


def test_gain_shares_sum_to_one_and_rank_the_signal_first_and_noise_last(folds: list[Fold]) -> None:
    gain = gain_importance(folds[0].predictor.regressors_["ttft_s"])
    assert tuple(gain.index) == FEATURE_NAMES
    assert gain.sum() == pytest.approx(1)
    assert gain.idxmax() == SIGNAL
    assert gain[SIGNAL] > 0.5
    assert gain[NOISE] < 0.05


def test_trees_without_splits_have_gain_zero() -> None:
    regressor = ResidualRegressor(n_estimators=2).fit(np.zeros((8, 2)), np.ones(8))
    assert gain_importance(regressor, ["model.a", "model.b"]).tolist() == [0, 0]


def test_permuting_the_signal_raises_the_error_most_and_permuting_noise_does_not(increases: pd.DataFrame) -> None:
    for metric in ("ttft_s", "tpot_s"):
        assert increases["mean"].xs(metric).idxmax() == SIGNAL
        assert figure(increases, metric, NOISE) == pytest.approx(0, abs=0.005)


def test_permuting_a_binary_signal_raises_the_error_by_half_its_effect(increases: pd.DataFrame) -> None:
    assert figure(increases, "ttft_s", SIGNAL) == pytest.approx(0.5, abs=0.06)


def test_standard_deviations_over_permutations_and_groups_are_positive(increases: pd.DataFrame) -> None:
    assert 0 < figure(increases, "ttft_s", SIGNAL, "seed_sd") < 0.1
    assert 0 < figure(increases, "ttft_s", SIGNAL, "group_se") < 0.1


def test_permutations_depend_on_the_seed_alone(case: Case, folds: list[Fold]) -> None:
    runs = [
        permutation_importance(folds, case.X, case.y, case.groups, {"signal": [SIGNAL]}, n_repeat=2, seed=seed)
        for seed in (1, 1, 2)
    ]
    pd.testing.assert_frame_equal(runs[0], runs[1])
    assert not runs[0].equals(runs[2])


def test_the_columns_of_a_block_are_permuted_together(case: Case, folds: list[Fold]) -> None:
    blocks = {"both": [SIGNAL, NOISE], "one": [SIGNAL]}
    table = permutation_importance(folds, case.X, case.y, case.groups, blocks, n_repeat=2)
    assert list(table.loc["ttft_s"].index) == ["both", "one"]
    assert figure(table, "ttft_s", "both") == pytest.approx(figure(table, "ttft_s", "one"), abs=0.01)


def test_permuting_descriptors_also_changes_the_estimate(case: Case, folds: list[Fold]) -> None:
    name = "workload.n_input_token"
    learner = permutation_importance(
        folds, case.X, case.y, case.groups, {"input": ["workload.n_input_token_log"]}, n_repeat=2
    )
    descriptors = permutation_importance(
        folds, case.X, case.y, case.groups, {"input": [name]}, table="descriptors", n_repeat=2
    )
    assert figure(learner, "ttft_s", "input") < 0.01
    assert figure(descriptors, "ttft_s", "input") > 0.1


def test_each_column_is_a_block_by_default(case: Case, folds: list[Fold]) -> None:
    table = permutation_importance(folds[:1], case.X, case.y, case.groups, table="descriptors", n_repeat=1)
    assert tuple(table.loc["ttft_s"].index) == DESCRIPTOR_NAMES


def test_each_group_is_evaluated_once_by_a_fit_without_its_measurements(case: Case, folds: list[Fold]) -> None:
    assert sorted(np.concatenate([fold.rows for fold in folds])) == list(range(N_ROW))
    hidden = case.groups == "b"
    scaled = replace(case, y=case.y.mask(hidden, case.y * 1000))
    for before, after in zip(folds, fit_folds(case.predictor, scaled.X, scaled.y, scaled.groups), strict=True):
        assert len(set(case.groups.iloc[before.rows])) == 1
        unchanged = before.predictor.predict(case.X).equals(after.predictor.predict(case.X))
        assert unchanged == hidden.iloc[before.rows].all()


def test_the_error_falls_from_stage_to_stage(case: Case, folds: list[Fold]) -> None:
    errors = stage_errors(folds, case.X, case.y, case.groups)
    assert tuple(errors.columns) == STAGES
    assert len(errors) == 2 * 4
    guess, prior, estimate, prediction = errors.xs("ttft_s").to_numpy().mean(axis=0)
    assert guess > prior == pytest.approx(0.5, abs=0.1)
    assert estimate == prior, "coefficients were given, so nothing was calibrated"
    assert prediction < 0.05


def test_rows_without_a_measurement_are_ignored(case: Case, folds: list[Fold]) -> None:
    only_a = case.y.assign(tpot_s=case.y["tpot_s"].where(case.groups == "a"))
    errors = stage_errors(folds, case.X, only_a, case.groups)
    increases = permutation_importance(folds, case.X, only_a, case.groups, {"signal": [SIGNAL]}, n_repeat=2)
    assert errors.groupby("metric").size().to_dict() == {"ttft_s": 4, "tpot_s": 1}
    assert np.isnan(figure(errors, "tpot_s", "a", "guess")), "no other group has a median"
    assert np.isnan(figure(increases, "tpot_s", "signal", "group_se")), "one group has no standard error"
    assert figure(increases, "tpot_s", "signal") > 0.3
