import numpy as np
import pandas as pd

from judge.plots import METHODS, MIN_ROW, plot_stacks


def test_owners_of_many_rows_are_shown_the_most_accurate_at_the_top() -> None:
    rows = [("worse", "ttft", MIN_ROW, 0.4), ("better", "ttft", MIN_ROW, 0.2), ("small", "tpot", MIN_ROW - 1, 0.1)]
    parts = pd.DataFrame(rows, columns=["owner", "metric", "n_row", "median_ape"])
    axis = plot_stacks(parts.assign(**dict.fromkeys(METHODS, parts["median_ape"]))).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["worse", "better"]
    assert [np.asarray(points.get_offsets()).tolist() for points in axis.collections] == [[[0.4, 0], [0.2, 1]]] * len(
        METHODS
    )
