"""`docs/SCOREBOARD.md`: the scoreboard as a page for people, with its plots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd
from matplotlib.figure import Figure

from roofcast.data.campaigns.silicon_aiconfigurator import load_aiconfigurator_answers, load_aiconfigurator_run
from roofcast.data.campaigns.silicon_index import FAULTS
from roofcast.training.evaluation.markdown import markdown_table, number
from roofcast.training.evaluation.plots import plot_errors, plot_predicted
from roofcast.training.evaluation.protocols.silicon import JUDGED, SPLITS, silicon_figures
from roofcast.training.evaluation.scoreboard import OWN, Scoreboard
from roofcast.training.evaluation.scoreboard_campaigns import (
    campaign_plots,
    campaign_section,
    reference_plots,
    reference_section,
)

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

Ten LLMs, each held out in turn. *Success*: the recommended deployment serves the users within the limits;
*overspend*: its cost over that of the cheapest which does; S/O: harmonic mean of success and one minus overspend.
Figures of roofcast are medians over ten seeds of the trees; its distribution of errors is fitted once a fold, and it
chooses by expected utility over draws of it. The peers' are published runs, and choose by the prediction itself.
"""

_SILICON: Final = """
## P3: engines on NVIDIA silicon, {n_id:,} rows

TTFT and TPOT of 15 checkpoints on H100 to GB200 under TensorRT-LLM, SGLang and vLLM. A lineage or an accelerator is
held out whole, of every campaign: coefficients are fitted, learners trained and neighbours looked for among the
others alone. Errors are absolute percentage errors as fractions, over the rows answered; *within 25 %* counts a row
without an answer as a miss. Cells of the tables by part are mean / median, with the share answered where it is not
all.

*All rows* are the published ones, {n_id:,}. *Clean* are the {n_clean:,} that are distinct measurements and that no
rule marks as faulty: a rule reads ids, versions and public configurations, never a latency. No faulty row is trained
on. {n_fault} of the published rows are faulty ({fault_ratio:.1%}); `rows_index.csv` beside the campaign names each id
with its rule, and with the row that it repeats. The plots show the clean rows.

| method | what it is |
| --- | --- |
| roofcast | the predictor as trained for service, on all campaigns |
| analytic_calibrated_all | the analytic estimate alone, with that predictor's coefficients |
| analytic_calibrated | the analytic estimate alone, its coefficients fitted to the other folds of these rows |
| analytic_priors | the analytic estimate alone, nothing fitted to these rows |
| aiconfigurator | that tool, really run |
| nearest_measured | the nearest training row's own measurement |
| xgboost_raw | boosted trees on raw descriptors, without an estimate |

Read with care. The estimate's kernel parameters
were fitted to measured kernels of these very accelerators, which a held-out accelerator keeps: that split tells of an
accelerator whose serving was never measured, not of one whose kernels never were (KERNELS.md has those). Rows, kernel
tables and the peer come from one project, aiconfigurator. The structure of the estimate was chosen while looking at
held-out errors of these rows ([which](decisions/0009-the-analytic-core.md)), so its last hundredths are optimistic.
"""

_PEER: Final = """
### How aiconfigurator was run

Version {version} ({licence}), {n_question:,} of {n_asked:,} distinct questions put on {date}, {n_answered:,} of them
answered; a call took {call_s:.2f} s at the median. A question that was not put counts as unanswered.
"""


def write_page(board: Scoreboard, folder: Path) -> list[Path]:
    """Write the page and its plots into a folder and return their paths."""
    plots = folder / FOLDER
    plots.mkdir(parents=True, exist_ok=True)
    text, paths = [_INTRO], []
    for name, what in (("P1", "the paper's one question"), ("P2", "ninety questions")):
        if name in board.results:
            text += [_LLM_PILOT.format(name=name, what=what), _method_table(board.results[name].figures)]
    drawn: dict[str, Figure] = {}
    if "P3" in board.results:
        tables = board.results["P3"].tables
        text.append(silicon_section(tables["P3"], tables["P3_parts"]))
        drawn |= silicon_plots(tables["P3"], tables["P3_parts"])
    if "P4" in board.results:
        drawn_here = campaign_plots(board.results)
        text.append(campaign_section(board.results, [f"{FOLDER}/{file}" for file in drawn_here]))
        drawn |= drawn_here
    if "P5" in board.results:
        drawn_here = reference_plots(board.results["P5"])
        text.append(reference_section(board.results["P5"], [f"{FOLDER}/{file}" for file in drawn_here]))
        drawn |= drawn_here
    for file, figure in drawn.items():
        paths.append(plots / file)
        figure.savefig(paths[-1], dpi=DPI, metadata={"Software": None})
    page = folder / PAGE
    page.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    return [page, *paths]


def silicon_section(dump: pd.DataFrame, parts: pd.DataFrame) -> str:
    """Return the page's part on P3, from its dump and the figures by part."""
    ids = dump.drop_duplicates("id")
    n_fault = int((ids["fault"] != "").sum())
    counts = {"n_id": len(ids), "n_clean": int(ids["is_clean"].sum()), "n_fault": n_fault}
    text = [_SILICON.format(**counts, fault_ratio=n_fault / len(ids))]
    for title, rows in (("all rows", dump), ("clean", dump[dump["is_clean"]])):
        for split, methods in silicon_figures(rows).items():
            text += [f"\n### {split.replace('_', ' ').capitalize()}, {title}\n", _error_table(methods)]
    text += [f"\n![predicted against measured]({FOLDER}/{_plot_name(metric)})" for metric in JUDGED]
    for by, title in _PART_TITLES.items():
        of_part = parts[(parts["by"] == by) & (parts["part"] != "other")]
        if len(of_part):
            text += [f"\n### {title}\n", _part_table(of_part)]
    text += [f"\n![median error by accelerator]({FOLDER}/{_ERRORS})", "\n### Rules that mark a row as faulty\n"]
    found = ids["fault"].value_counts()
    text.append(
        markdown_table(("rule", "what", "rows"), [(f"`{r}`", w, str(found.get(r, 0))) for r, w in FAULTS.items()])
    )
    return "\n".join([*text, _peer_section(int(dump["row"].nunique()))])


def silicon_plots(dump: pd.DataFrame, parts: pd.DataFrame) -> dict[str, Figure]:
    """Return the plots of P3 by file name: ours against measured, and every method's error by accelerator."""
    method = OWN if (dump["method"] == OWN).any() else str(dump["method"].iloc[0])
    is_shown = dump["is_clean"] & (dump["method"] == method) & (dump["split"] == next(iter(SPLITS)))
    ours, figures = dump[is_shown], {}
    for metric, column in JUDGED.items():
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
        ["method", *methods.columns], [(_bold(str(m)), *map(number, v)) for m, v in methods.iterrows()]
    )


def _error_table(methods: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    head = ["method", *(f"{metric.upper()} {title}" for metric in JUDGED for title in _FIGURES.values())]
    rows = [
        (_bold(name), *(number(of[metric][figure]) for metric in JUDGED for figure in _FIGURES))
        for name, of in methods.items()
    ]
    return markdown_table(head, rows)


def _part_table(parts: pd.DataFrame) -> str:
    """Return mean / median of each method, one line a part, split and metric, all rows."""
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
    errors = f"{number(row['mape'])} / {number(row['median_ape'])}" if share else "none answered"
    return errors if share in {0.0, 1.0} else f"{errors} ({share:.0%})"


def _bold(method: str) -> str:
    return f"**{method}**" if method == OWN else method
