import json

import numpy as np
import pytest
from xgboost import Booster, DMatrix

from roofcast.training.learner.boosted_trees import ResidualRegressor
from roofcast.training.learner.library_booster import LibraryBooster

X = np.random.default_rng(0).normal(size=(200, 5))


@pytest.fixture(scope="module")
def model() -> bytes:
    """Return a booster as UBJSON."""
    return ResidualRegressor(n_estimators=30).fit(X, X[:, 0]).members_[0]


@pytest.mark.parametrize("rows", [X[:0], X[:1], X, X[::2], np.asfortranarray(X)], ids=["0", "1", "200", "::2", "F"])
def test_it_predicts_and_explains_as_the_package_does(model: bytes, rows: np.ndarray) -> None:
    booster, package = LibraryBooster(model, 1), Booster({"nthread": 1}, model_file=bytearray(model))
    np.testing.assert_array_equal(booster.predict(rows), package.inplace_predict(rows))
    if len(rows):
        expected = package.predict(DMatrix(rows), pred_contribs=True)
        np.testing.assert_array_equal(booster.shap_values(rows), expected)


def test_its_json_is_that_of_the_package(model: bytes) -> None:
    trees, expected = (
        one["learner"]["gradient_booster"]
        for one in (
            LibraryBooster(model, 1).to_json(),
            json.loads(Booster(model_file=bytearray(model)).save_raw("json")),
        )
    )
    assert trees == expected


def test_predictions_are_not_overwritten_by_the_next(model: bytes) -> None:
    booster = LibraryBooster(model, 1)
    first = booster.predict(X)
    before = first.copy()
    booster.predict(-X)
    np.testing.assert_array_equal(first, before)


def test_a_damaged_model_is_refused_with_the_message_of_the_library(model: bytes) -> None:
    with pytest.raises(ValueError, match="XGBoost: "):
        LibraryBooster(model[:100], 1)
