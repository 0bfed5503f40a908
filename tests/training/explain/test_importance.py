from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.features.columns import FEATURE_NAMES
from roofcast.training.explain.importance import group_blocks, group_importance, shap_values
from roofcast.training.learner.boosted_trees import ResidualRegressor

GROUPS = ["model", "hardware", "config", "workload", "memory", "roofline"]
SIGNAL, NOISE, *CONSTANT = FEATURE_NAMES[10:20]


@pytest.fixture(scope="module")
def features() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(240, len(FEATURE_NAMES))), columns=list(FEATURE_NAMES))
    return table.assign(**{SIGNAL: rng.integers(0, 2, 240).astype(float)}, **dict.fromkeys(CONSTANT, 1.0))


@pytest.fixture(scope="module")
def regressor(features: pd.DataFrame) -> ResidualRegressor:
    """Return a regressor of logarithms to which the signal adds one."""
    model = ResidualRegressor(n_member=2, n_estimators=40, learning_rate=0.2, colsample_bytree=1.0)
    return model.fit(features.to_numpy(), features[SIGNAL].to_numpy())


def test_shap_values_of_each_row_sum_to_its_prediction(regressor: ResidualRegressor, features: pd.DataFrame) -> None:
    values, base = shap_values(regressor, features)
    np.testing.assert_allclose(values.sum(axis=1) + base, regressor.predict(features.to_numpy()), atol=1e-5)


def test_the_shap_value_of_the_signal_is_its_effect(regressor: ResidualRegressor, features: pd.DataFrame) -> None:
    values, _ = shap_values(regressor, features)
    effect = values[SIGNAL].groupby(features[SIGNAL]).mean().diff().iloc[-1]
    assert effect == pytest.approx(1, abs=0.1)
    assert values.abs().mean().idxmax() == SIGNAL
    assert values[NOISE].abs().mean() < 0.01


def test_the_shap_value_of_a_column_without_splits_is_zero(
    regressor: ResidualRegressor, features: pd.DataFrame
) -> None:
    values, _ = shap_values(regressor, features)
    assert (values[CONSTANT] == 0).all(axis=None)


def test_shap_values_of_groups_are_additive(regressor: ResidualRegressor, features: pd.DataFrame) -> None:
    values, _ = shap_values(regressor, features)
    by_group = group_importance(values)
    assert list(by_group) == GROUPS
    np.testing.assert_allclose(by_group.sum(axis=1), values.sum(axis=1))


def test_groups_are_in_order_of_appearance() -> None:
    blocks = group_blocks(FEATURE_NAMES)
    assert list(blocks) == GROUPS
    assert sum(map(len, blocks.values())) == len(FEATURE_NAMES)
