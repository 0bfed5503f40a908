"""The regressor of boosted trees, its inference in NumPy, and the gate of its support."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from roofcast.features.columns import ENGINES
from roofcast.features.examples import example_descriptors
from roofcast.training.learner.boosted_trees import (
    HALF_LINEAGE,
    MAX_NUMPY_DEPTH,
    MAX_NUMPY_ROW,
    NumpyBooster,
    ResidualRegressor,
    SupportGate,
)
from roofcast.training.learner.errors.group_keys import build_group_keys

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


@pytest.mark.parametrize(("weights", "value"), [((1.0, 9.0), 1.0), ((9.0, 1.0), 0.0)])
def test_the_value_of_greater_weight_is_the_median(weights: tuple[float, float], value: float) -> None:
    twice = np.concatenate([X, X]), np.concatenate([np.zeros(200), np.ones(200)])
    fitted = a_regressor(n_estimators=60).fit(*twice, np.repeat(weights, 200))
    assert np.median(fitted.predict(X)) == pytest.approx(value, abs=0.01)


def test_a_flat_target_is_its_median_everywhere() -> None:
    fitted = a_regressor().fit(X, np.full(200, 0.7))
    assert fitted.median_ == 0.7
    np.testing.assert_allclose(fitted.predict(X), 0.7, atol=1e-6)


TREE_X = RANDOM.normal(size=(200, 5))
TREE_Y = TREE_X[:, 0] + np.where(TREE_X[:, 1] > 0.3, 1.0, -1.0) * TREE_X[:, 2] + 0.1 * RANDOM.normal(size=200)


@pytest.mark.parametrize("max_depth", [1, 3, MAX_NUMPY_DEPTH])
def test_it_predicts_as_the_library_does(max_depth: int) -> None:
    regressor = ResidualRegressor(n_member=2, n_estimators=40, max_depth=max_depth).fit(TREE_X, TREE_Y)
    boosters = regressor.boosters_
    asked = np.concatenate([TREE_X, 10 * TREE_X])
    expected = [booster.predict(asked) for booster in boosters]
    np.testing.assert_array_equal(NumpyBooster.from_boosters(boosters).predict(asked), expected)


def test_a_single_leaf_is_predicted() -> None:
    regressor = ResidualRegressor(n_estimators=3).fit(TREE_X, np.full(len(TREE_X), 2.0))
    boosters = regressor.boosters_
    np.testing.assert_array_equal(
        NumpyBooster.from_boosters(boosters).predict(TREE_X[:4]), [boosters[0].predict(TREE_X[:4])]
    )


@pytest.mark.parametrize("n_row", [1, MAX_NUMPY_ROW, MAX_NUMPY_ROW + 1])
def test_a_cached_regressor_predicts_as_an_uncached_one(n_row: int) -> None:
    regressor = ResidualRegressor(n_estimators=30).fit(TREE_X, TREE_Y)
    uncached = regressor.predict(TREE_X[:n_row])
    np.testing.assert_array_equal(regressor.build_cache().predict(TREE_X[:n_row]), uncached)


def test_the_cache_is_of_the_last_fit_and_not_pickled() -> None:
    regressor = ResidualRegressor(n_estimators=10).fit(TREE_X, TREE_Y).build_cache()
    kept = pickle.loads(pickle.dumps(regressor))  # noqa: S301
    assert vars(kept).keys() == vars(ResidualRegressor(n_estimators=10).fit(TREE_X, TREE_Y)).keys() - {"boosters_"}
    np.testing.assert_array_equal(kept.predict(TREE_X[:3]), regressor.predict(TREE_X[:3]))
    other = ResidualRegressor(n_estimators=10).fit(TREE_X, -TREE_Y).predict(TREE_X[:3])
    np.testing.assert_array_equal(regressor.fit(TREE_X, -TREE_Y).predict(TREE_X[:3]), other)


def test_deep_trees_have_no_cache() -> None:
    regressor = ResidualRegressor(n_estimators=3, max_depth=MAX_NUMPY_DEPTH + 1).fit(TREE_X, TREE_Y)
    before = [*vars(regressor)]
    assert [*vars(regressor.build_cache())] == before


def describe(engine: str = "vllm", **changes: float) -> pd.DataFrame:
    columns = {name.replace("__", "."): value for name, value in changes.items()}
    row = {name: values[0] for name, values in example_descriptors().items()}
    return pd.DataFrame([{**row, "config.engine": float(ENGINES.index(engine)), **columns}])


def fit_gate(rows: pd.DataFrame, *lineages: str) -> SupportGate:
    return SupportGate.fit(build_group_keys(rows), pd.Series(lineages))


def gate_weight(gate: SupportGate, query: pd.DataFrame) -> list[float]:
    return list(gate.weight(build_group_keys(query), query["config.engine"].to_numpy()))


def test_trees_weigh_more_the_more_lineages_are_measured_nearby() -> None:
    known = pd.concat([describe()] * 4, ignore_index=True)
    for n in (1, 3):
        gate = fit_gate(known.iloc[:n], *(f"lineage {i}" for i in range(n)))
        assert gate_weight(gate, describe()) == [pytest.approx(n / (n + HALF_LINEAGE))]


def test_rows_of_one_lineage_count_once() -> None:
    gate = fit_gate(pd.concat([describe()] * 3), *"aaa")
    assert gate_weight(gate, describe()) == [pytest.approx(1 / (1 + HALF_LINEAGE))]


def test_an_engine_on_an_unmeasured_accelerator_is_left_to_its_estimate() -> None:
    gate = fit_gate(describe(), "a")
    assert gate_weight(gate, describe(hardware__bandwidth_byte_per_s=1e12)) == [0.0]
    assert gate_weight(gate, describe("sglang")) == [0.0]


def test_trees_alone_correct_engines_without_kernel_tables() -> None:
    assert gate_weight(fit_gate(describe(), "a"), describe("tgi")) == [1.0]
