import numpy as np
import pandas as pd
import pytest

from roofcast.features.columns import FEATURE_NAMES
from roofcast.training.explain.importance import group_importance, shap_values
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


@pytest.fixture(scope="module")
def values(regressor: ResidualRegressor, features: pd.DataFrame) -> pd.DataFrame:
    return shap_values(regressor, features)[0]


def test_shap_values_of_each_row_sum_to_its_prediction(
    regressor: ResidualRegressor, features: pd.DataFrame, values: pd.DataFrame
) -> None:
    base = shap_values(regressor, features)[1]
    np.testing.assert_allclose(values.sum(axis=1) + base, regressor.predict(features.to_numpy()), atol=1e-5)


def test_shap_values_are_the_effect_of_the_signal_alone(features: pd.DataFrame, values: pd.DataFrame) -> None:
    effect = values[SIGNAL].groupby(features[SIGNAL]).mean().diff().iloc[-1]
    assert effect == pytest.approx(1, abs=0.1)
    assert values.abs().mean().idxmax() == SIGNAL
    assert values[NOISE].abs().mean() < 0.01
    assert (values[CONSTANT] == 0).all(axis=None)


def test_shap_values_of_groups_are_additive(values: pd.DataFrame) -> None:
    by_group = group_importance(values)
    assert list(by_group) == GROUPS
    np.testing.assert_allclose(by_group.sum(axis=1), values.sum(axis=1))
