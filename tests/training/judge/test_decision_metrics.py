import math

import pytest

from judge import decision_metrics as metrics


def test_overspend_is_averaged_over_successes_alone() -> None:
    overspend = metrics.overspends([15.0, 5.0, 10.0], [10.0, 10.0, 10.0])
    assert metrics.mean_overspend(overspend, [True, False, True]) == pytest.approx(0.25)
    assert math.isnan(metrics.mean_overspend(overspend, [False] * 3))


@pytest.mark.parametrize(
    ("success", "overspend", "so"),
    [(1.0, 0.0, 1.0), (0.5, 0.5, 0.5), (1.0, 1.0, 0.0), (1.0, 7.0, 0.0), (0.0, math.nan, 0.0), (0.8, 0.2, 0.8)],
)
def test_so_score_is_a_harmonic_mean_floored_at_zero(success: float, overspend: float, so: float) -> None:
    assert metrics.so_score(success, overspend) == pytest.approx(so)
