from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from roofcast.training.learner.trees.boosted_residual import ResidualRegressor

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(size=(200, 3))
Y = X[:, 0] + 0.3 * np.sin(20 * X[:, 1])


def a_regressor(**changes: Any) -> ResidualRegressor:
    return ResidualRegressor(**({"n_estimators": 30, "learning_rate": 0.3} | changes))


WHOLE = {"subsample": 1.0, "colsample_bytree": 1.0, "min_child_weight": 0.0}
"""Every member sees every row and column."""


def expected_failures(estimator: ResidualRegressor) -> dict[str, str]:
    if estimator.subsample == 1.0:
        return {}
    reason = "members see a random share of the rows, and a row repeated is not drawn like a row of double weight"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=".*does not inherit from `sklearn.base.BaseEstimator`")
    each_rule = parametrize_with_checks(
        [a_regressor(min_child_weight=1.0), a_regressor(**WHOLE)], expected_failed_checks=expected_failures
    )


@each_rule  # type: ignore[untyped-decorator]
def test_it_keeps_the_rules_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_settings_survive_a_clone() -> None:
    settings = a_regressor(n_member=4, reg_lambda=3.0)
    assert clone(settings).get_params() == settings.get_params()


def test_it_follows_the_data() -> None:
    swept = np.column_stack([np.full(101, 0.5), np.linspace(0, 1, 101), np.full(101, 0.5)])
    steps = np.diff(a_regressor(colsample_bytree=1.0).fit(X, Y).predict(swept))
    assert (steps > 0).any()
    assert (steps < 0).any()


def test_the_prediction_is_the_mean_of_members_that_differ_by_seed() -> None:
    both = a_regressor(n_member=2, random_state=5).fit(X, Y)
    alone = [a_regressor(random_state=seed).fit(X, Y).predict(X) for seed in (5, 6)]
    assert (alone[0] != alone[1]).any()
    np.testing.assert_allclose(both.predict(X), np.mean(alone, axis=0), atol=1e-6)


def test_a_seed_says_all() -> None:
    np.testing.assert_array_equal(a_regressor().fit(X, Y).predict(X), a_regressor().fit(X, Y).predict(X))


@pytest.mark.parametrize(("weights", "value"), [((1.0, 9.0), 1.0), ((9.0, 1.0), 0.0)])
def test_the_value_of_greater_weight_is_the_median(weights: tuple[float, float], value: float) -> None:
    twice = np.concatenate([X, X]), np.concatenate([np.zeros(200), np.ones(200)])
    fitted = a_regressor(n_estimators=60).fit(*twice, np.repeat(weights, 200))
    assert np.median(fitted.predict(X)) == pytest.approx(value, abs=0.01)


def test_a_few_faults_are_outvoted() -> None:
    faulty = np.where(np.arange(200) % 10 == 0, 100.0, Y)
    sound = np.arange(200) % 10 > 0
    assert np.abs(a_regressor().fit(X, faulty).predict(X) - Y)[sound].mean() < 0.15


def test_a_flat_target_is_its_median_everywhere() -> None:
    fitted = a_regressor().fit(X, np.full(200, 0.7))
    assert fitted.median_ == 0.7
    np.testing.assert_allclose(fitted.predict(X), 0.7, atol=1e-6)
