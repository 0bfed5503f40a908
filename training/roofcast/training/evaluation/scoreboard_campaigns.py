"""Sections of the scoreboard page on P4, P5 and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from roofcast.training.evaluation.markdown import format_number, markdown_table
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.evaluation.plots import (
    plot_errors,
    plot_groups,
    plot_nominal_coverage,
    plot_predicted,
    plot_references,
)
from roofcast.training.evaluation.protocols.fold_lines import SCORED_METRICS, scored_lines
from roofcast.training.evaluation.protocols.p4_p5_campaigns import N_REFERENCE
from roofcast.training.evaluation.protocols.regret import least_prices, regret_figures, regrets, without_price
from roofcast.training.evaluation.scoreboard import ProtocolResult, figure_rows

LEAST_ROWS: Final = 30
"""Least rows of a metric for a part to be plotted; the dump has all parts."""

PLOTTED: Final = ("campaign", "accelerator", "lineage", "engine")
TITLES: Final = {"ttft": "TTFT, s", "tpot": "TPOT, s", "output_throughput": "output throughput, token/s"}
LEVELS: Final = {0.5: "coverage_50", 0.8: "coverage_80", 0.9: "coverage_90"}

_CAMPAIGNS: Final = """
## P4: all campaigns, {n_row:,} measurements

{n_lineage} lineages in {n_campaign} campaigns; each row is predicted without training rows of its lineage. The query
names the row's stack where the predictor was trained on rows of it: the harness is known, the LLM is not (P7 holds
the stack out). Errors are absolute percentage errors as fractions. *Coverage* is the share of measurements inside the
prediction interval of nominal level 50, 80 or 90 %; *width* is the median ratio of upper to lower bound at 90 %. Rows
whose request rate exceeds the estimated saturation rate count as unanswered. The throughput of an open loop is its
request rate, and a throughput that the source computed from latencies is no measurement: neither is scored.
"""

_DECISIONS: Final = """
### Decisions: cost of the recommended accelerator

Each decision is one LLM and workload that was measured on several accelerators or numbers of them. The configuration
with the least predicted cost per output token is chosen; its regret is its measured cost relative to the least, minus
one. Prices are the lowest on-demand prices of the newest day in the price book. {n_left_out:,} measurements are
excluded because their accelerator has no such price: {left_out}.
"""

_REFERENCES: Final = """
## P5: some measurements of the new LLM

As P4, with 1, 3 or 5 randomly drawn reference runs of the held-out LLM on each engine and accelerator; the predictor
is conditioned on them without retraining. Scores are means of three draws; reference runs are not scored. *P3* are
the {n_published:,} published rows of P3, including faulty ones.
"""


def campaign_section(results: Mapping[str, ProtocolResult], plots: Sequence[str]) -> str:
    """Return the section on P4 and decisions, from the scoreboard's results and the paths of the plots."""
    dump, parts = results["P4"].tables["P4"], results["P4"].tables["P4_parts"]
    lines = scored_lines(dump)
    counts = {"n_lineage": lines["lineage"].nunique(), "n_campaign": lines["campaign"].nunique()}
    text = [_CAMPAIGNS.format(n_row=lines["row"].nunique(), **counts), figure_table("P4", results["P4"])]
    text += ["\n### Baselines on the same folds\n", figure_table("P4_methods", results["P4_methods"])]
    text += ["\n### By campaign\n", _part_table(parts[parts["by"] == "campaign"])]
    candidates = results["decisions"].tables["decisions"]
    left_out = without_price(dump, least_prices())
    excluded = ", ".join(f"{name} ({n})" for name, n in left_out.items()) or "none"
    text += [_DECISIONS.format(n_left_out=sum(left_out.values()), left_out=excluded), _regret_table(candidates)]
    return "\n".join([*text, *pictures(plots)])


def reference_section(result: ProtocolResult, plots: Sequence[str]) -> str:
    """Return the section on P5."""
    lines = result.tables["P5"]
    n_published = int(lines.drop_duplicates("row")["n_published"].sum())
    return "\n".join([_REFERENCES.format(n_published=n_published), figure_table("P5", result), *pictures(plots)])


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


def metric_title(metric: str) -> str:
    """Return the title of a metric without its unit."""
    return TITLES[metric].partition(",")[0]


def figure_table(name: str, result: ProtocolResult) -> str:
    """Return the scores of a protocol as a table; scores that a row lacks are blank."""
    rows = figure_rows(name, result.figures)
    head = list(dict.fromkeys(title for row in rows for title in row))
    cells = [[_cell(row.get(title, "")) for title in head] for row in rows]
    return markdown_table([title.replace("_", " ") for title in head], cells)


def _cell(value: object) -> str:
    return format_number(value) if isinstance(value, float) else f"**{value}**" if value == "roofcast" else str(value)


def _part_table(parts: pd.DataFrame) -> str:
    columns = ["mape", "median_ape", "within_25", "answered", "coverage_90", "width_90"]
    rows = [
        (str(row["part"]), str(row["metric"]), f"{row['n_row']:,}", *(format_number(row[name]) for name in columns))
        for _, row in parts.iterrows()
    ]
    return markdown_table(["campaign", "metric", "rows", *(name.replace("_", " ") for name in columns)], rows)


def _regret_table(candidates: pd.DataFrame) -> str:
    decisions = regrets(candidates)
    groups = [("all", decisions), *((str(name), part) for name, part in decisions.groupby("campaign"))]
    rows = []
    for name, part in groups:
        figures = regret_figures(part)
        n_decision = f"{int(figures.pop('n_decision')):,}"
        n_candidate = part["n_candidate"].mean() if len(part) else np.nan
        rows.append((name, n_decision, f"{n_candidate:.1f}", *map(format_number, figures.values())))
    head = ["campaign", "decisions", "candidates", "median regret", "p90 regret", "mean regret", "within 5 %"]
    return markdown_table(head, rows)


def pictures(plots: Sequence[str]) -> list[str]:
    """Return the plots as Markdown images, titled by their file names."""
    return [f"\n![{path.rpartition('/')[2].removesuffix('.png').replace('_', ' ')}]({path})" for path in plots]
