"""The plot of the page: errors of stacks left out, by who measured them."""

from typing import Final

import pandas as pd
from matplotlib.figure import Figure

MIN_ROW: Final = 100
"""Rows of a metric from which an owner is shown."""

TITLES: Final = {"ttft": "TTFT", "tpot": "TPOT", "output_throughput": "Throughput"}

METHODS: Final = {
    "by_nearest_measured": ("nearest measurement", "#c9a227", "x"),
    "by_xgboost_raw": ("trees without physics", "#8c8c8c", "+"),
    "by_analytic_calibrated": ("calibrated estimate", "#1f77b4", "o"),
    "median_ape": ("roofcast", "#b2182b", "D"),
}
"""Label, colour and marker by column of P7's table by part."""


def plot_stacks(parts: pd.DataFrame) -> Figure:
    """Return the median error of each method by owner and metric, of P7's table by part."""
    shown = parts[parts["n_row"] >= MIN_ROW]
    owners = shown.groupby("owner")["median_ape"].mean().sort_values(ascending=False).index
    figure = Figure(figsize=(11, 1.5 + 0.26 * len(owners)), layout="constrained")
    axes = figure.subplots(1, len(TITLES), sharey=True)
    for axis, (metric, title) in zip(axes, TITLES.items(), strict=True):
        table = shown[shown["metric"] == metric].set_index("owner")
        for column, (label, colour, marker) in METHODS.items():
            places = [owners.get_loc(owner) for owner in table.index]
            axis.scatter(table[column], places, label=label, color=colour, marker=marker, s=34)
        axis.set(title=title, xlabel="median absolute percentage error", xscale="log", yticks=range(len(owners)))
        axis.set_yticklabels(owners)
        axis.set_xticks([0.1, 0.3, 1, 3], ["10 %", "30 %", "100 %", "300 %"])
        axis.minorticks_off()
        axis.grid(visible=True, color="#e5e5e5")
        axis.set_axisbelow(True)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS), frameon=False)
    return figure
