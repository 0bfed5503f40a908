import numpy as np
import pytest

from roofcast.training.learner.errors.error_distribution import SCALE_LIMITS, ErrorScaleModel

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(size=(2000, 4))
SIZE = np.where(X[:, 1] > 0.5, 0.4, 0.1)
ERROR = SIZE * RANDOM.standard_normal(2000)


def test_the_scale_is_large_where_errors_are() -> None:
    asked = RANDOM.uniform(size=(500, 4))
    scale = ErrorScaleModel.fit(X, ERROR).predict(asked)
    is_large = asked[:, 1] > 0.5
    ratio = np.exp(np.log(scale[is_large]).mean() - np.log(scale[~is_large]).mean())
    assert 2 < ratio < 4, "four, less what a spread of repeats and few trees take off"
    assert np.quantile(scale[is_large], 0.02) > np.quantile(scale[~is_large], 0.98)


@pytest.mark.parametrize("size", [0.1, 0.3])
def test_about_half_of_the_errors_stay_below(size: float) -> None:
    error = size * RANDOM.standard_normal(2000)
    share = (np.abs(error) < ErrorScaleModel.fit(X, error).predict(X)).mean()
    assert share == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("size", "limit"), [(0.0, SCALE_LIMITS[0]), (50.0, SCALE_LIMITS[1])])
def test_the_scale_has_limits(size: float, limit: float) -> None:
    np.testing.assert_allclose(ErrorScaleModel.fit(X, np.full(2000, size)).predict(X), limit)


def test_weights_count() -> None:
    twice = np.concatenate([X, X]), np.repeat([0.1, 0.8], 2000)
    small, large = (
        ErrorScaleModel.fit(*twice, np.repeat(weights, 2000)).predict(X).mean()
        for weights in ((9.0, 1.0), (1.0, 9.0))
    )
    assert small < 0.2
    assert large > 0.5
