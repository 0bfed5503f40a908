"""Plots of the scoreboard; each function returns figures and writes nothing."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from judge.protocols.fold_lines import SCORED_METRICS, scored_lines
from judge.protocols.p3_silicon import SCORED_METRICS as SILICON_METRICS
from judge.protocols.p3_silicon import SPLITS
from judge.protocols.p4_p5_campaigns import N_REFERENCE
from judge.scoreboard import OWN, ProtocolResult, figure_rows
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.evaluation.plots import plot_predicted

LEAST_ROWS: Final = 30
"""Least rows of a metric for a part to be plotted; the tables have all parts."""

PLOTTED: Final = ("campaign", "accelerator", "lineage", "engine")
TITLES: Final = {"ttft": "TTFT, s", "tpot": "TPOT, s", "output_throughput": "output throughput, token/s"}
LEVELS: Final = {0.5: "coverage_50", 0.8: "coverage_80", 0.9: "coverage_90"}


def board_plots(results: Mapping[str, ProtocolResult]) -> dict[str, Figure]:
    """Return the plots of all results by file name."""
    figures: dict[str, Figure] = {}
    if "P3" in results:
        figures |= silicon_plots(results["P3"].tables["P3"], results["P3"].tables["P3_parts"])
    if "P4" in results:
        figures |= campaign_plots(results)
    if "P5" in results:
        figures |= reference_plots(results["P5"])
    if "P7" in results:
        figures |= stack_plots(results)
    if "P8" in results:
        figures |= own_run_plots(results["P8"])
    return figures


def silicon_plots(dump: pd.DataFrame, parts: pd.DataFrame) -> dict[str, Figure]:
    """Return the plots of P3 by file name: roofcast's predictions, and all methods' errors by accelerator."""
    method = OWN if (dump["method"] == OWN).any() else str(dump["method"].iloc[0])
    is_shown = dump["is_clean"] & (dump["method"] == method) & (dump["split"] == next(iter(SPLITS)))
    ours, figures = dump[is_shown], {}
    for metric, column in SILICON_METRICS.items():
        measured, predicted = (ours[name].to_numpy(dtype=float) for name in (column, f"predicted_{column}"))
        figures[f"P3_{metric}.png"] = plot_predicted(measured, predicted, ours["lineage"], f"{metric.upper()}, s")
    is_shown = (parts["protocol"] == "P3_clean") & (parts["by"] == "accelerator")
    is_shown &= (parts["split"] == list(SPLITS)[1]) & (parts["metric"] == "tpot")
    table = parts[is_shown].pivot_table(index="part", columns="method", values="median_ape", sort=False)
    return {**figures, "P3_by_accelerator.png": plot_errors(table, "median error of TPOT, accelerator held out")}


def campaign_plots(results: Mapping[str, ProtocolResult]) -> dict[str, Figure]:
    """Return the plots of P4 by file name."""
    lines, parts = scored_lines(results["P4"].tables["P4"]), results["P4"].tables["P4_parts"]
    figures: dict[str, Figure] = {}
    for metric in lines["metric"].unique():
        metric_lines = lines[lines["metric"] == metric].dropna(subset="predicted")
        measured, predicted = (metric_lines[name].to_numpy(dtype=float) for name in ("measured", "predicted"))
        figures[f"P4_{metric}.png"] = plot_predicted(measured, predicted, metric_lines["campaign"], TITLES[metric])
    shown = parts[parts["n_row"] >= LEAST_ROWS].assign(metric=parts["metric"].map(metric_title))
    for by in PLOTTED:
        table = shown[shown["by"] == by].pivot_table(index="part", columns="metric", values="median_ape")
        if len(table):
            figures[f"P4_by_{by}.png"] = plot_groups(table, "median error, lineage held out")
    coverages = pd.DataFrame(figure_rows("P4", results["P4"].figures)).set_index("metric")[list(LEVELS.values())]
    figures["P4_coverage.png"] = plot_nominal_coverage(coverages.set_axis(list(LEVELS), axis=1).rename(metric_title))
    table = shown[shown["by"] == "campaign"].pivot_table(index="part", columns="metric", values="coverage_90")
    if len(table):
        label = "coverage of the 90 % interval"
        figures["P4_coverage_by_campaign.png"] = plot_groups(table, label, target=0.9)
    methods = pd.DataFrame(figure_rows("P4_methods", results["P4_methods"].figures))
    errors = methods.pivot_table(index="metric", columns="method", values="median_ape", sort=False).rename(
        metric_title
    )
    return {**figures, "P4_methods.png": plot_errors(errors, "median error, lineage held out")}


def reference_plots(result: ProtocolResult) -> dict[str, Figure]:
    """Return the plot of P5 by file name; zero reference points are the errors of P4 on the same rows."""
    lines = result.tables["P5"]
    rows = [{"n": int(str(row["n_reference"])), **row} for row in figure_rows("P5", result.figures)]
    sets = {"P3": lines.loc[lines.index.repeat(lines["n_published"])], "P4": scored_lines(lines)}
    for questions, lines_of_set in sets.items():
        for metric, metric_lines in lines_of_set[lines_of_set["metric"].isin(list(SCORED_METRICS))].groupby("metric"):
            figures = error_summary(metric_lines["measured"], metric_lines["predicted"])
            rows.append({"n": 0, "questions": questions, "metric": metric, **figures})
    table = pd.DataFrame(rows)
    table["line"] = table["questions"] + " " + table["metric"].map(metric_title)
    table = table[table["line"].isin(table.loc[table["n"] == max(N_REFERENCE), "line"])]
    return {"P5.png": plot_references(table.pivot_table(index="n", columns="line", values="median_ape"))}


def stack_plots(results: Mapping[str, ProtocolResult]) -> dict[str, Figure]:
    """Return the plots of P7 by file name."""
    parts = results["P7"].tables["P7_parts"]
    shown = parts[parts["n_row"] >= LEAST_ROWS].assign(metric=parts["metric"].map(metric_title))
    figures = {}
    for column, name, label, target in (
        ("median_ape", "P7_by_owner.png", "median error, stack held out", None),
        ("coverage_90", "P7_coverage_by_owner.png", "coverage of the 90 % interval", 0.9),
    ):
        table = shown.pivot_table(index="owner", columns="metric", values=column)
        if len(table):
            figures[name] = plot_groups(table, label, target=target) if target else plot_groups(table, label)
    return figures


def own_run_plots(result: ProtocolResult) -> dict[str, Figure]:
    """Return the plot of P8 by file name."""
    table = pd.DataFrame(figure_rows("P8", result.figures))
    table["n"] = table["n_own_run"].astype(int)
    table["line"] = table["own_runs_of"].str.replace("_", " ") + ", " + table["metric"].map(metric_title)
    return {"P8.png": plot_references(table.pivot_table(index="n", columns="line", values="median_ape"))}


def metric_title(metric: str) -> str:
    """Return the title of a metric without its unit."""
    return TITLES[metric].partition(",")[0]


def plot_errors(errors: pd.DataFrame, label: str) -> Figure:
    """Return grouped bars of each column's error, one group per row of the table."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(errors.columns)
    position = np.arange(len(errors))
    for i, name in enumerate(errors.columns):
        axes.bar(position + (i + 0.5) * width - 0.4, errors[name], width, label=str(name))
    axes.set_xticks(position, [str(name) for name in errors.index], fontsize=7)
    axes.set(ylabel=label, ylim=(0, min(1.0, 1.1 * float(np.nanmax(errors.to_numpy())))))
    axes.legend(fontsize=7, loc="upper left")
    return figure


def plot_groups(table: pd.DataFrame, label: str, target: float | None = None) -> Figure:
    """Return a dot plot of the table, rows sorted by their mean, least at the top.

    `table`: shape (n_part, n_metric). `target`: position of a reference line.
    """
    ordered = table.loc[table.mean(axis=1).sort_values(ascending=False).index]
    figure = Figure(figsize=(7, 1.2 + 0.22 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    positions = np.arange(len(ordered))
    for name, marker in zip(ordered.columns, "os^Dv", strict=False):
        axes.plot(ordered[name], positions, marker, markersize=5, alpha=0.8, label=str(name))
    if target is not None:
        axes.axvline(target, color="black", linewidth=1)
    axes.set_yticks(positions, [str(name) for name in ordered.index], fontsize=7)
    axes.set(xlabel=label, xlim=(0, 1.05 * float(np.nanmax(ordered.to_numpy()))))
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=7)
    return figure


def plot_nominal_coverage(shares: pd.DataFrame) -> Figure:
    """Return the empirical coverage of intervals against their nominal level.

    `shares`: shape (n_metric, n_level): columns are the levels.
    """
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    for metric, share in shares.iterrows():
        axes.plot(shares.columns.to_numpy(dtype=float), share, marker="o", label=str(metric))
    axes.plot([0, 1], [0, 1], color="black", linewidth=1)
    axes.set(xlabel="nominal level", ylabel="share of measurements inside", xlim=(0, 1), ylim=(0, 1))
    axes.legend(fontsize=8, loc="upper left")
    return figure


def plot_references(errors: pd.DataFrame) -> Figure:
    """Return median error against the number of reference points (the index), one line per column."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name in errors:
        style = "--" if str(name).startswith("P3") else "-"
        axes.plot(errors.index.to_numpy(), errors[name], style, marker="o", label=str(name))
    axes.set(xlabel="reference runs of each engine and accelerator", ylabel="median error of the other runs")
    axes.set_xticks(errors.index.to_numpy())
    axes.set_ylim(bottom=0)
    figure.legend(loc="outside right upper", fontsize=7)
    return figure
