import numpy as np
import pandas as pd
import pytest

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, PRIORS
from roofcast.training.evaluation.plots import (
    coverage,
    plot_coefficients,
    plot_coverage,
    plot_predicted,
)

NAN = float("nan")
GROUPS = pd.Series(list("aaabbc"))


def test_each_row_is_a_point_in_the_colour_of_its_group() -> None:
    measured = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    axes = plot_predicted(measured, measured * 1.1, GROUPS, "ttft_s").axes[0]
    points = [dots for dots in axes.collections if len(dots.get_offsets()) in {1, 2, 3}]  # type: ignore[arg-type]
    assert [len(dots.get_offsets()) for dots in points[:3]] == [3, 2, 1]  # type: ignore[arg-type]
    assert axes.get_xlabel() == "measured ttft_s"
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_coverage_is_judged_by_the_other_groups() -> None:
    errors = np.array([0.1, 0.1, 0.1, 0.2, 0.2, 9.0])
    np.testing.assert_allclose(coverage(errors, GROUPS, np.array([0.3, 0.65])), [1 / 3, 2 / 3])


def test_a_line_per_metric_and_the_diagonal() -> None:
    errors = {"ttft_s": np.linspace(0.1, 1, 6), "tpot_s": np.array([0.1, 0.2, NAN, 0.3, 0.4, 0.5])}
    axes = plot_coverage(errors, GROUPS).axes[0]
    assert [len(line.get_xdata()) for line in axes.lines] == [15, 15, 2]  # type: ignore[arg-type]


def test_a_metric_of_one_group_has_no_coverage() -> None:
    errors = np.array([0.1, 0.1, 0.1, NAN, NAN, NAN])
    assert np.isnan(coverage(errors, GROUPS, np.array([0.5]))).all()
    assert plot_coverage({"ttft_s": errors, "itl_s": errors * NAN}, GROUPS).axes


@pytest.mark.parametrize("factor", [0.95, 1.25])
def test_a_bar_is_the_move_in_prior_standard_deviations(factor: float) -> None:
    moved = DEFAULT_COEFFICIENTS.with_values(**{name: factor * prior.median for name, prior in PRIORS.items()})
    widths = [bar.get_width() for bar in plot_coefficients(moved).axes[0].patches]  # type: ignore[attr-defined]
    np.testing.assert_allclose(widths, [np.log(factor) / prior.log_sd for prior in PRIORS.values()])
