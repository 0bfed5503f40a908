import numpy as np
import pandas as pd

from judge.plots import plot_errors, plot_groups, plot_nominal_coverage

NAN = float("nan")


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
