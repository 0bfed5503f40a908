"""The page `docs/SCOREBOARD.md`: the scoreboard in prose, tables and plots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd
from matplotlib.figure import Figure

from roofcast.data.campaigns.silicon_aiconfigurator import load_aiconfigurator_answers, load_aiconfigurator_run
from roofcast.data.campaigns.silicon_index import FAULTS
from roofcast.training.evaluation.markdown import format_number, markdown_table
from roofcast.training.evaluation.plots import plot_errors, plot_predicted
from roofcast.training.evaluation.protocols.p3_silicon import SCORED_METRICS, SPLITS, silicon_figures
from roofcast.training.evaluation.scoreboard import OWN, Scoreboard
from roofcast.training.evaluation.scoreboard_campaigns import (
    campaign_plots,
    campaign_section,
    reference_plots,
    reference_section,
)
from roofcast.training.evaluation.scoreboard_stacks import (
    own_run_plots,
    own_run_section,
    stack_plots,
    stack_section,
)
from roofcast.training.evaluation.scoreboard_training import training_section

PAGE: Final = "SCOREBOARD.md"
FOLDER: Final = "scoreboard"
"""Folder of the plots, beside the page."""

DPI: Final = 80

_FIGURES: Final = {"mape": "mean", "median_ape": "median", "within_25": "within 25 %", "answered": "answered"}
_PART_TITLES: Final = {
    "answered_by": "On the rows that a method answers, where it does not answer all",
    "subset": "Dense models in FP8 on H100 and H200",
    "lineage": "By lineage",
    "accelerator": "By accelerator",
    "engine": "By engine",
    "weight_precision": "By precision of the weights",
}

_INTRO: Final = """\
# Scoreboard

Written by `roofcast scoreboard --docs docs`; `--dump DIR` writes the rows from which each figure can be recomputed.
"""

_LLM_PILOT: Final = """
## {name}: LLM-Pilot's benchmark, {what}

Ten LLMs, each held out in turn. *Success*: the recommended deployment serves all users within the limits;
*overspend*: its relative excess over the cost of the cheapest one that does; *S/O*: harmonic mean of success and one
minus overspend. Scores of roofcast are medians over ten seeds of the trees. It learns from means and medians, three
models averaged ([decision 18](decisions/0018-stacks.md)). Its error distribution is fitted once per fold, and it
chooses by expected utility over draws of that distribution. Peers are published runs; they choose by the point
prediction.
"""

_SILICON: Final = """
## P3: engines on NVIDIA silicon, {n_id:,} rows

TTFT and TPOT of 15 checkpoints on H100 to GB200 under TensorRT-LLM, SGLang and vLLM. All rows of a
lineage or of an accelerator are held out of all campaigns: coefficients, learners and neighbours come from the other
rows. Errors are absolute percentage errors as fractions over the answered rows; *within 25 %* counts an unanswered
row as a miss. Cells of the tables by part are mean / median, with the share of answered rows if it is below 1.

*All rows* are the {n_id:,} published rows. *Clean* are the {n_clean:,} distinct measurements that no rule marks as
faulty; rules use ids, versions and public configurations, never a latency. Faulty rows are not used for training.
{n_fault} of the published rows are faulty ({fault_ratio:.1%}); `rows_index.csv` of the campaign lists each id's rule
and the row that it repeats. The plots show the clean rows.

| method | description |
| --- | --- |
| roofcast | the predictor, trained on all campaigns as for service, asked about the stack that measured the row |
| analytic_calibrated_all | the analytic estimate with that predictor's coefficients |
| analytic_calibrated | the analytic estimate with coefficients fitted to the other folds of these rows |
| analytic_priors | the analytic estimate with its priors, not fitted to these rows |
| aiconfigurator | recorded answers of aiconfigurator |
| nearest_measured | the measurement of the nearest training row |
| xgboost_raw | gradient boosting on raw descriptors, without an estimate |

Limitations. The kernel parameters of the estimate were fitted to measured kernels of the same accelerators, also of
a held-out one: that split shows accelerators without serving measurements, not those without kernel measurements (see
KERNELS.md). Rows, kernel tables and the peer come from one project, aiconfigurator. The structure of the estimate was
chosen with held-out errors of these rows in view ([decision 9](decisions/0009-the-analytic-core.md)), so the
last digits of these errors are optimistic.
"""

_PEER: Final = """
### How aiconfigurator was run

Version {version} ({licence}), run on {date} for {n_question:,} of {n_asked:,} distinct rows, of which it answered
{n_answered:,}; a call took {call_s:.2f} s (median). A row that was not run counts as unanswered.
"""


def write_page(board: Scoreboard, folder: Path) -> list[Path]:
    """Write the page and its plots into a folder and return their paths."""
    plots = folder / FOLDER
    plots.mkdir(parents=True, exist_ok=True)
    text, paths = [_INTRO], []
    for name, what in (("P1", "one demand"), ("P2", "ninety demands")):
        if name in board.results:
            text += [_LLM_PILOT.format(name=name, what=what), _method_table(board.results[name].figures)]
    plots_by_file: dict[str, Figure] = {}
    if "P3" in board.results:
        tables = board.results["P3"].tables
        text.append(silicon_section(tables["P3"], tables["P3_parts"]))
        plots_by_file |= silicon_plots(tables["P3"], tables["P3_parts"])
    if "P4" in board.results:
        section_plots = campaign_plots(board.results)
        text.append(campaign_section(board.results, [f"{FOLDER}/{file}" for file in section_plots]))
        plots_by_file |= section_plots
    if "P5" in board.results:
        section_plots = reference_plots(board.results["P5"])
        text.append(reference_section(board.results["P5"], [f"{FOLDER}/{file}" for file in section_plots]))
        plots_by_file |= section_plots
    if "P6" in board.results:
        text.append(training_section(board.results))
    if "P7" in board.results:
        section_plots = stack_plots(board.results)
        text.append(stack_section(board.results, [f"{FOLDER}/{file}" for file in section_plots]))
        plots_by_file |= section_plots
    if "P8" in board.results:
        section_plots = own_run_plots(board.results["P8"])
        text.append(own_run_section(board.results["P8"], [f"{FOLDER}/{file}" for file in section_plots]))
        plots_by_file |= section_plots
    for file, figure in plots_by_file.items():
        paths.append(plots / file)
        figure.savefig(paths[-1], dpi=DPI, metadata={"Software": None})
    page = folder / PAGE
    page.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    return [page, *paths]


def silicon_section(dump: pd.DataFrame, parts: pd.DataFrame) -> str:
    """Return the section on P3, from its dump and the scores by part."""
    ids = dump.drop_duplicates("id")
    n_fault = int((ids["fault"] != "").sum())
    counts = {"n_id": len(ids), "n_clean": int(ids["is_clean"].sum()), "n_fault": n_fault}
    text = [_SILICON.format(**counts, fault_ratio=n_fault / len(ids))]
    for title, rows in (("all rows", dump), ("clean", dump[dump["is_clean"]])):
        for split, methods in silicon_figures(rows).items():
            text += [f"\n### {split.replace('_', ' ').capitalize()}, {title}\n", _error_table(methods)]
    text += [f"\n![predicted against measured]({FOLDER}/{_plot_name(metric)})" for metric in SCORED_METRICS]
    for by, title in _PART_TITLES.items():
        of_part = parts[(parts["by"] == by) & (parts["part"] != "other")]
        if len(of_part):
            text += [f"\n### {title}\n", _part_table(of_part)]
    text += [f"\n![median error by accelerator]({FOLDER}/{_ERRORS})", "\n### Rules that mark a row as faulty\n"]
    n_by_fault = ids["fault"].value_counts()
    text.append(
        markdown_table(
            ("rule", "what", "rows"), [(f"`{r}`", w, str(n_by_fault.get(r, 0))) for r, w in FAULTS.items()]
        )
    )
    return "\n".join([*text, _peer_section(int(dump["row"].nunique()))])


def silicon_plots(dump: pd.DataFrame, parts: pd.DataFrame) -> dict[str, Figure]:
    """Return the plots of P3 by file name: roofcast's predictions, and all methods' errors by accelerator."""
    method = OWN if (dump["method"] == OWN).any() else str(dump["method"].iloc[0])
    is_shown = dump["is_clean"] & (dump["method"] == method) & (dump["split"] == next(iter(SPLITS)))
    ours, figures = dump[is_shown], {}
    for metric, column in SCORED_METRICS.items():
        measured, predicted = (ours[name].to_numpy(dtype=float) for name in (column, f"predicted_{column}"))
        figures[_plot_name(metric)] = plot_predicted(measured, predicted, ours["lineage"], f"{metric.upper()}, s")
    is_shown = (parts["protocol"] == "P3_clean") & (parts["by"] == "accelerator")
    is_shown &= (parts["split"] == list(SPLITS)[1]) & (parts["metric"] == "tpot")
    table = parts[is_shown].pivot_table(index="part", columns="method", values="median_ape", sort=False)
    return {**figures, _ERRORS: plot_errors(table, "median error of TPOT, accelerator held out")}


_ERRORS: Final = "P3_by_accelerator.png"


def _plot_name(metric: str) -> str:
    return f"P3_{metric}.png"


def _peer_section(n_asked: int) -> str:
    answers, run = load_aiconfigurator_answers(), load_aiconfigurator_run()
    text = _PEER.format(
        version=run["version"],
        licence=run["licence"],
        date=run["answered_on"],
        n_question=len(answers),
        n_asked=n_asked,
        n_answered=int((answers["status"] == "ok").sum()),
        call_s=answers["call_s"].median(),
    )
    return "\n".join([text, *(f"- {note}" for note in run["notes"])])


def _method_table(figures: Mapping[str, object]) -> str:
    methods = pd.DataFrame(figures).T
    return markdown_table(
        ["method", *methods.columns], [(_bold(str(m)), *map(format_number, v)) for m, v in methods.iterrows()]
    )


def _error_table(methods: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    head = ["method", *(f"{metric.upper()} {title}" for metric in SCORED_METRICS for title in _FIGURES.values())]
    rows = [
        (_bold(name), *(format_number(of[metric][figure]) for metric in SCORED_METRICS for figure in _FIGURES))
        for name, of in methods.items()
    ]
    return markdown_table(head, rows)


def _part_table(parts: pd.DataFrame) -> str:
    """Return mean / median of each method, one row per part, split and metric, of all published rows."""
    shown = parts[parts["protocol"] == "P3"]
    methods = list(shown["method"].unique())
    rows = []
    for (part, split, metric), of_part in shown.groupby(["part", "split", "metric"], sort=False):
        cells = {str(row["method"]): _part_cell(row) for _, row in of_part.iterrows()}
        names = (str(part), str(split).replace("_", " "), str(metric).upper(), str(of_part["n_row"].iloc[0]))
        rows.append((*names, *(cells[method] for method in methods)))
    return markdown_table(["", "held out", "metric", "rows", *map(_bold, methods)], rows)


def _part_cell(row: pd.Series) -> str:
    share = row["answered"]
    errors = f"{format_number(row['mape'])} / {format_number(row['median_ape'])}" if share else "none answered"
    return errors if share in {0.0, 1.0} else f"{errors} ({share:.0%})"


def _bold(method: str) -> str:
    return f"**{method}**" if method == OWN else method
