from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from roofcast.features.columns import DESCRIPTOR_NAMES, FEATURE_NAMES
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.examples import example_descriptors
from roofcast.features.pipeline import METRICS, build_features
from roofcast.training.config import TrainingConfig
from roofcast.training.explain.importance import (
    STAGES,
    Fold,
    fit_folds,
    gain_importance,
    group_blocks,
    group_importance,
    permutation_importance,
    shap_values,
    stage_errors,
)
from roofcast.training.learner.boosted_residual import ResidualRegressor
from roofcast.training.learner.ratio_model import RatioModel

N_ROW = 240
SIGNAL, NOISE = "config.flash_attention", "workload.is_mean"
"""Columns that are free of all others; noise is in no formula, signal moves the measurements below by a factor e."""


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
def rises(case: Case, folds: list[Fold]) -> pd.DataFrame:
    return permutation_importance(folds, case.X, case.y, case.groups)


def figure(table: pd.DataFrame, metric: str, row: str, column: str = "mean") -> float:
    return float(table[column].to_dict()[metric, row])


def features_of(case: Case) -> pd.DataFrame:
    return build_features(case.X, DEFAULT_COEFFICIENTS)[0]


def test_gain_shares_sum_to_one_with_the_cause_first_and_noise_last(folds: list[Fold]) -> None:
    gain = gain_importance(folds[0].predictor.regressors_["ttft_s"])
    assert tuple(gain.index) == FEATURE_NAMES
    assert gain.sum() == pytest.approx(1)
    assert gain.idxmax() == SIGNAL
    assert gain[SIGNAL] > 0.5
    assert gain[NOISE] < 0.05


def test_a_forest_that_never_splits_has_no_gain_to_share() -> None:
    regressor = ResidualRegressor(n_estimators=2).fit(np.zeros((8, 2)), np.ones(8))
    assert gain_importance(regressor, ["model.a", "model.b"]).tolist() == [0, 0]


def test_shap_values_of_every_row_sum_to_its_prediction(case: Case, folds: list[Fold]) -> None:
    regressor, features = folds[0].predictor.regressors_["tpot_s"], features_of(case)
    values, base = shap_values(regressor, features)
    np.testing.assert_allclose(values.sum(axis=1) + base, regressor.predict(features.to_numpy()), atol=1e-5)


def test_shap_values_give_the_cause_its_effect_and_noise_nothing(case: Case, folds: list[Fold]) -> None:
    values, _ = shap_values(folds[0].predictor.regressors_["ttft_s"], features_of(case))
    effect = values[SIGNAL].groupby(case.X[SIGNAL]).mean().diff().iloc[-1]
    assert effect == pytest.approx(1, abs=0.1)
    assert values.abs().mean().idxmax() == SIGNAL
    assert values[NOISE].abs().mean() < 0.01


def test_columns_that_nothing_splits_on_have_a_shap_value_of_exactly_zero(case: Case, folds: list[Fold]) -> None:
    constant = features_of(case).std() == 0
    values, _ = shap_values(folds[0].predictor.regressors_["ttft_s"], features_of(case))
    assert constant.sum() > 5
    assert (values.loc[:, constant] == 0).all(axis=None)


def test_group_shap_values_stay_additive(case: Case, folds: list[Fold]) -> None:
    values, _ = shap_values(folds[0].predictor.regressors_["ttft_s"], features_of(case))
    grouped = group_importance(values)
    assert list(grouped) == ["model", "hardware", "config", "workload", "memory", "roofline"]
    np.testing.assert_allclose(grouped.sum(axis=1), values.sum(axis=1))


def test_permuting_the_cause_hurts_most_and_permuting_noise_not_at_all(rises: pd.DataFrame) -> None:
    for metric in ("ttft_s", "tpot_s"):
        assert rises["mean"].xs(metric).idxmax() == SIGNAL
        assert figure(rises, metric, NOISE) == pytest.approx(0, abs=0.005)


def test_half_the_rows_draw_the_other_value_of_a_coin_and_err_by_its_effect(rises: pd.DataFrame) -> None:
    assert figure(rises, "ttft_s", SIGNAL) == pytest.approx(0.5, abs=0.06)


def test_the_spread_is_over_permutations_and_over_groups(rises: pd.DataFrame) -> None:
    assert 0 < figure(rises, "ttft_s", SIGNAL, "seed_sd") < 0.1
    assert 0 < figure(rises, "ttft_s", SIGNAL, "group_se") < 0.1


def test_the_same_seed_gives_the_same_figures_and_another_seed_others(case: Case, folds: list[Fold]) -> None:
    runs = [
        permutation_importance(folds, case.X, case.y, case.groups, {"cause": [SIGNAL]}, n_repeat=2, seed=seed)
        for seed in (1, 1, 2)
    ]
    pd.testing.assert_frame_equal(runs[0], runs[1])
    assert not runs[0].equals(runs[2])


def test_the_columns_of_a_block_move_together(case: Case, folds: list[Fold]) -> None:
    blocks = {"both": [SIGNAL, NOISE], "one": [SIGNAL]}
    table = permutation_importance(folds, case.X, case.y, case.groups, blocks, n_repeat=2)
    assert list(table.loc["ttft_s"].index) == ["both", "one"]
    assert figure(table, "ttft_s", "both") == pytest.approx(figure(table, "ttft_s", "one"), abs=0.01)


def test_permuting_descriptors_disturbs_the_estimate_as_well(case: Case, folds: list[Fold]) -> None:
    name = "workload.n_input_token"
    learner = permutation_importance(
        folds, case.X, case.y, case.groups, {"input": ["workload.n_input_token_log"]}, n_repeat=2
    )
    whole = permutation_importance(
        folds, case.X, case.y, case.groups, {"input": [name]}, table="descriptors", n_repeat=2
    )
    assert figure(learner, "ttft_s", "input") < 0.01
    assert figure(whole, "ttft_s", "input") > 0.1


def test_blocks_are_single_columns_unless_told(case: Case, folds: list[Fold]) -> None:
    table = permutation_importance(folds[:1], case.X, case.y, case.groups, table="descriptors", n_repeat=1)
    assert tuple(table.loc["ttft_s"].index) == DESCRIPTOR_NAMES


def test_every_group_is_judged_once_by_a_fit_that_never_saw_its_measurements(case: Case, folds: list[Fold]) -> None:
    assert sorted(np.concatenate([fold.rows for fold in folds])) == list(range(N_ROW))
    hidden = case.groups == "b"
    absurd = replace(case, y=case.y.mask(hidden, case.y * 1000))
    for before, after in zip(folds, fit_folds(case.predictor, absurd.X, absurd.y, absurd.groups), strict=True):
        assert len(set(case.groups.iloc[before.rows])) == 1
        unchanged = before.predictor.predict(case.X).equals(after.predictor.predict(case.X))
        assert unchanged == hidden.iloc[before.rows].all()


def test_each_stage_knows_more_and_errs_less(case: Case, folds: list[Fold]) -> None:
    errors = stage_errors(folds, case.X, case.y, case.groups)
    assert tuple(errors.columns) == STAGES
    assert len(errors) == 2 * 4
    guess, prior, estimate, prediction = errors.xs("ttft_s").to_numpy().mean(axis=0)
    assert guess > prior == pytest.approx(0.5, abs=0.1)
    assert estimate == prior, "coefficients were given, so nothing was calibrated"
    assert prediction < 0.05


def test_rows_without_a_measurement_take_no_part(case: Case, folds: list[Fold]) -> None:
    only_a = case.y.assign(tpot_s=case.y["tpot_s"].where(case.groups == "a"))
    errors = stage_errors(folds, case.X, only_a, case.groups)
    rises = permutation_importance(folds, case.X, only_a, case.groups, {"cause": [SIGNAL]}, n_repeat=2)
    assert errors.groupby("metric").size().to_dict() == {"ttft_s": 4, "tpot_s": 1}
    assert np.isnan(figure(errors, "tpot_s", "a", "guess")), "no other group tells what is typical"
    assert np.isnan(figure(rises, "tpot_s", "cause", "group_se")), "one group has no spread"
    assert figure(rises, "tpot_s", "cause") > 0.3


def test_groups_keep_their_order() -> None:
    assert list(group_blocks(FEATURE_NAMES)) == ["model", "hardware", "config", "workload", "memory", "roofline"]
    assert sum(map(len, group_blocks(FEATURE_NAMES).values())) == len(FEATURE_NAMES)
