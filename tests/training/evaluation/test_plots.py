from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, PRIORS
from roofcast.training.evaluation.plots import (
    coverage,
    plot_coefficients,
    plot_coverage,
    plot_errors,
    plot_groups,
    plot_nominal_coverage,
    plot_predicted,
    plot_references,
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


def test_rows_without_a_prediction_do_not_upset_the_plot() -> None:
    measured = np.array([1.0, NAN, 0.0, 4.0, 5.0, 6.0])
    predicted = np.array([NAN, 1.0, 2.0, 3.0, 4.0, 5.0])
    figure = plot_predicted(measured, predicted, GROUPS, "itl_s")
    assert np.isfinite(figure.axes[0].get_xlim()).all()


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


def test_a_bar_per_coefficient_none_of_which_has_moved() -> None:
    bars = plot_coefficients(DEFAULT_COEFFICIENTS).axes[0].patches
    assert len(bars) == len(PRIORS)
    assert {round(bar.get_width(), 9) for bar in bars} == {0.0}  # type: ignore[attr-defined]


@pytest.mark.parametrize("factor", [0.95, 1.25])
def test_a_bar_is_the_move_in_prior_standard_deviations(factor: float) -> None:
    moved = DEFAULT_COEFFICIENTS.with_values(**{name: factor * prior.median for name, prior in PRIORS.items()})
    widths = [bar.get_width() for bar in plot_coefficients(moved).axes[0].patches]  # type: ignore[attr-defined]
    np.testing.assert_allclose(widths, [np.log(factor) / prior.log_sd for prior in PRIORS.values()])


def test_a_bar_for_each_line_and_column_and_none_where_nothing_is_known() -> None:
    errors = pd.DataFrame({"ours": [0.1, 0.2], "theirs": [0.3, NAN]}, index=["a", "b"])
    axes = plot_errors(errors, "median error").axes[0]
    heights = [bar.get_height() for bars in axes.containers for bar in bars]
    np.testing.assert_allclose(heights, [0.1, 0.2, 0.3, NAN])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b"]


def test_parts_stand_with_the_least_mean_at_the_top_and_none_is_cut_off() -> None:
    errors = pd.DataFrame({"TTFT": [0.4, 2.0, NAN], "TPOT": [0.2, 0.3, 0.1]}, index=["a", "b", "c"])
    axes = plot_groups(errors, "median error", target=0.5).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["b", "a", "c"]
    assert axes.get_xlim()[1] > 2.0
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [2.0, 0.4, NAN])


def test_a_line_per_metric_over_the_levels_promised() -> None:
    shares = pd.DataFrame({0.5: [0.4, 0.6], 0.9: [0.8, 1.0]}, index=["TTFT", "TPOT"])
    axes = plot_nominal_coverage(shares).axes[0]
    assert [np.asarray(line.get_ydata()).tolist() for line in axes.lines] == [[0.4, 0.8], [0.6, 1.0], [0, 1]]


def test_a_line_per_column_over_the_number_of_references() -> None:
    errors = pd.DataFrame({"P3 TPOT": [0.2, 0.1], "P4 TPOT": [0.3, 0.2]}, index=[0, 3])
    axes = plot_references(errors).axes[0]
    assert [line.get_linestyle() for line in axes.lines] == ["--", "-"]
    assert axes.get_xticks().tolist() == [0, 3]
