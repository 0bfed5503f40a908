from __future__ import annotations

import pickle

import numpy as np
import pytest

from roofcast.training.learner.trees.boosted_residual import MAX_NUMPY_DEPTH, MAX_NUMPY_ROW, ResidualRegressor
from roofcast.training.learner.trees.numpy_booster import NumpyBooster

PICK = np.random.default_rng(0)
X = PICK.normal(size=(200, 5))
Y = X[:, 0] + np.where(X[:, 1] > 0.3, 1.0, -1.0) * X[:, 2] + 0.1 * PICK.normal(size=200)


@pytest.mark.parametrize("max_depth", [1, 3, MAX_NUMPY_DEPTH])
def test_it_predicts_as_the_library_does(max_depth: int) -> None:
    regressor = ResidualRegressor(n_member=2, n_estimators=40, max_depth=max_depth).fit(X, Y)
    boosters = regressor.boosters_
    asked = np.concatenate([X, 10 * X])
    expected = [booster.predict(asked) for booster in boosters]
    np.testing.assert_array_equal(NumpyBooster.from_boosters(boosters).predict(asked), expected)


def test_a_single_leaf_is_predicted() -> None:
    regressor = ResidualRegressor(n_estimators=3).fit(X, np.full(len(X), 2.0))
    boosters = regressor.boosters_
    np.testing.assert_array_equal(NumpyBooster.from_boosters(boosters).predict(X[:4]), [boosters[0].predict(X[:4])])


@pytest.mark.parametrize("n_row", [1, MAX_NUMPY_ROW, MAX_NUMPY_ROW + 1])
def test_a_cached_regressor_predicts_as_an_uncached_one(n_row: int) -> None:
    regressor = ResidualRegressor(n_estimators=30).fit(X, Y)
    uncached = regressor.predict(X[:n_row])
    np.testing.assert_array_equal(regressor.build_cache().predict(X[:n_row]), uncached)


def test_the_cache_is_of_the_last_fit_and_not_pickled() -> None:
    regressor = ResidualRegressor(n_estimators=10).fit(X, Y).build_cache()
    kept = pickle.loads(pickle.dumps(regressor))  # noqa: S301
    assert vars(kept).keys() == vars(ResidualRegressor(n_estimators=10).fit(X, Y)).keys() - {"boosters_"}
    np.testing.assert_array_equal(kept.predict(X[:3]), regressor.predict(X[:3]))
    other = ResidualRegressor(n_estimators=10).fit(X, -Y).predict(X[:3])
    np.testing.assert_array_equal(regressor.fit(X, -Y).predict(X[:3]), other)


def test_deep_trees_have_no_cache() -> None:
    regressor = ResidualRegressor(n_estimators=3, max_depth=MAX_NUMPY_DEPTH + 1).fit(X, Y)
    before = [*vars(regressor)]
    assert [*vars(regressor.build_cache())] == before
