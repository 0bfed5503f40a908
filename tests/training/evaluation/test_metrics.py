import math
from collections.abc import Callable

import numpy as np
import pytest

from roofcast.training.evaluation import metrics

NAN = float("nan")


def test_percentage_errors_are_relative_to_what_was_measured() -> None:
    np.testing.assert_allclose(metrics.absolute_percentage_errors([2.0, 4.0], [1.0, 8.0]), [0.5, 1.0])


def test_an_unanswered_row_is_a_miss_but_no_error() -> None:
    summary = metrics.error_summary([1.0, 1.0, 1.0, 1.0], [1.0, 1.2, 2.0, NAN])
    assert summary == {
        "mape": pytest.approx(0.4),
        "median_ape": pytest.approx(0.2),
        "within_25": 0.5,
        "answered": 0.75,
    }


@pytest.mark.parametrize("figure", [metrics.mean_ape, metrics.median_ape])
def test_errors_of_nothing_do_not_exist(figure: Callable[[list[float], list[float]], float]) -> None:
    assert math.isnan(figure([], []))
    assert math.isnan(figure([1.0], [NAN]))


def test_an_error_of_exactly_the_tolerance_is_within_it() -> None:
    assert metrics.share_within([4.0, 4.0], [5.0, 5.01]) == 0.5
