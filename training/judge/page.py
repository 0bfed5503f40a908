"""The page `docs/SCOREBOARD.md`, a function of the figures alone, with tables in CSV and a plot beside it.

``python -m judge.page docs`` writes those of the shipped figures again, without computing them.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judge.markdown import format_number, markdown_table
from judge.peers.silicon_peers import FAULTS
from judge.plots import plot_stacks
from judge.protocols.regret import regrets, regrets_by_campaign
from judge.scoreboard import OWN, Scoreboard, figure_rows

PAGE: Final = "SCOREBOARD.md"
FOLDER: Final = "scoreboard"
"""Folder of tables and the plot, beside the page."""

PLOT: Final = "P7_by_stack.png"
PLOTTED: Final = "P7_parts.csv"

N_DIGIT: Final = 6
"""Significant digits of the tables."""

_TITLES: Final = {
    "mape": "mean error", "median_ape": "median error", "so": "S/O", "coverage_90": "coverage",
    "width_90": "width", "n_own_run": "own runs", "own_runs_of": "runs of", "n_reference": "runs",
    "median_ln": "median", "q90_ln": "90 % quantile",
}  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A protocol on the page: what it asks, and the rows and columns of its figures that the page shows.

    - `results`: Results of the scoreboard, each with its title; each has a table of its own.
    - `rows`: Allowed values by column of `figure_rows`; a column with one value is not shown.
    - `columns`: Figures that are shown.
    - `plot`: File of the plot, and what it shows.
    """

    title: str
    text: str
    results: Mapping[str, str]
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plot: tuple[str, str] | None = None


_ERRORS: Final = ("mape", "median_ape")
_INTERVALS: Final = (*_ERRORS, "coverage_90", "width_90", "interval_score")

SECTIONS: Final = (
    Section(
        "P1, P2: recommendations, LLM-Pilot's benchmark",
        "Ten LLMs, each held out in turn; one demand (P1) and ninety (P2). *Success*: the recommended deployment "
        "serves all users within the limits. *Overspend*: its cost over that of the cheapest that does. *S/O*: "
        "harmonic mean of success and one minus overspend. Scores of roofcast are medians over ten seeds; peers "
        "are published runs.",
        {"P1": "One demand", "P2": "Ninety demands"},
        ("success", "overspend", "so"),
    ),
    Section(
        "P3: engines on NVIDIA silicon",
        "15 checkpoints on H100 to GB200 under TensorRT-LLM, SGLang and vLLM. All rows of a lineage (or part number) "
        "are held out of all campaigns, in the folds of P4 (and P11). *Clean* rows are distinct measurements that no "
        "rule marks as faulty ([rules](scoreboard/P3_faults.csv)); P3.csv has all published rows. "
        "*analytic_calibrated_all* is the estimate with the predictor's coefficients, *analytic_calibrated* with "
        "coefficients of the other folds of these rows, *analytic_priors* with priors; aiconfigurator's are recorded "
        "answers. The estimate's structure and kernels saw these accelerators: its errors are optimistic.",
        {"P3_clean": "Clean rows, lineage held out"},
        _ERRORS,
        {"split": ("leave_one_lineage_out",)},
    ),
    Section(
        "P4: all campaigns, lineage held out",
        "Each row is predicted without rows of its lineage, for the stack that measured it: the harness is known, "
        "the LLM is not. *Coverage*: share of measurements inside the 90 % interval; *width*: median ratio of its "
        "limits; *interval score*: Winkler's, of logarithms. Rows near "
        "saturation by the estimate are not scored. The decisions choose, for one LLM and workload measured on "
        "several accelerators, the least predicted cost of a token; the regret is the measured cost over the least.",
        {"P4": "roofcast", "P4_methods": "Baselines on the same folds", "decisions": "Decisions"},
        (*_INTERVALS, "median_regret", "p90_regret", "within_5", "n_decision"),
        {"method": ("analytic_calibrated", "analytic_priors", "nearest_measured", "xgboost_raw")},
    ),
    Section(
        "P5: some runs of the new LLM",
        "As P4, with one, three or five runs of the held-out LLM on each engine and accelerator, not scored; the "
        "predictor is conditioned on them without a fit. Means of three draws.",
        {"P5": "All rows of P4"},
        _INTERVALS,
        {"questions": ("P4",)},
    ),
    Section(
        "P6: training and fine-tuning jobs",
        "Tokens per second and accelerator, and peak memory; a run is predicted without rows of its lineage, its "
        "accelerator, or its stack's owner. P6 has the first 21 campaigns, to compare versions, P6_all all, "
        "P6_ordinary ordinary trainers, P6_judges published times that nothing learns from. *conventional_mfu* is an "
        "MFU of 40 %. Some priors "
        "were set with these runs in view: errors of the core and of roofcast are optimistic.",
        {"P6_all": "All campaigns, owner held out", "P6_ordinary": "Ordinary trainers, owner held out"},
        (*_ERRORS, "median_of_stacks", "median_by_owner", "coverage_by_owner", "coverage_90", "width_90"),
        {"split": ("leave_one_stack_out",), "quantity": ("throughput",)},
    ),
    Section(
        "P7: stacks that nobody measured",
        "A *stack* is who built, configured and measured an engine. Each row is predicted without rows of its "
        "stack's owner. P7 has the stacks of the first fourteen campaigns, to compare versions, P7_all all. "
        "Methods are compared on the rows that roofcast answers. [Decision 18](decisions/0018-stacks.md) lists what "
        "was chosen with P7 in view: both are optimistic.",
        {"P7_all": "All stacks, pooled"},
        _ERRORS,
        {"over": ("pooled",)},
        plot=(PLOT, "Median error on each stack left out, by who measured it, 100 rows or more"),
    ),
    Section(
        "P8: some runs of one's own stack",
        "As P7, with runs of the left-out stack on the same engine and accelerator, of one other LLM, of three "
        "others, or of the LLM in question; 0 is P7 on the same rows.",
        {"P8": "TPOT"},
        (*_ERRORS, "coverage_90"),
        {"metric": ("tpot",)},
    ),
    Section(
        "P9: memory of servers that start",
        "What vLLM, SGLang, TensorRT-LLM and llama.cpp reported while they started: weights and cache of one "
        "accelerator, and requests of the longest context that the cache holds, as median and 90 % quantile of the "
        "absolute logarithm of predicted over reported. *Recall*: servers that ran out of memory, at the margin that "
        "3 % of those that started do not reach. What vLLM and SGLang keep for themselves leaves the judged lineage "
        "out; that of other engines, and all constants of graphs, ranks and unified memory, were set with these "
        "starts in view: the errors of roofcast are optimistic. "
        "*rule_of_thumb*: parameters times bytes, and keys and values in nine tenths of the memory that they leave; "
        "`accelerate estimate-memory` answers only with the hub at hand, so no peer stands beside. "
        "[P9.csv](scoreboard/P9.csv) has the figures.",
        {"P9": "Starts"},
        ("median_ln", "q90_ln", "n", "recall", "false_alarm", "n_failed"),
    ),
    Section(
        "P10: stated probabilities",
        "On P7's predictions of competent operators: the stated probability that TTFT or TPOT is below a limit of .5 "
        "to 3 times the predicted value, against how often it is. *Largest gap*: of the deciles of the stated "
        "probability "
        "([P10_parts.csv](scoreboard/P10_parts.csv)); *Brier*: mean squared error. A decision rents the cheapest "
        "configuration that meets limits on both at a probability of .8, among those with which one owner measured "
        "an LLM at a workload and load: *success* is the share that meets them, *overspend* the mean excess of those "
        "over the cheapest that does, *answered* the share of decisions with such a configuration.",
        {"P10": "roofcast"},
        ("largest_gap", "brier", "overspend_80", "success_80", "answered_80"),
    ),
    Section(
        "P11: accelerators that nobody measured",
        "All rows of a part number are left out of every fit: all its boards and memory sizes, and variants of its "
        "silicon that are not judged themselves (GH200, H800 and H20 with H100 and H200, MI350X with MI355X). Parts "
        "with a die in common and numbers of their own stay, such as GB200 beside B200. Parts of two makers, or two "
        "generations apart, are left out together. The stack is known; means and medians are judged, throughputs "
        "that a source derived from other outcomes too. *capability_forest* is a forest on capabilities, model size "
        "and workload; P11.csv has the nearest measurement of another part too.",
        {"P11": "Part left out"},
        _ERRORS,
        {"method": ("analytic_calibrated", "capability_forest")},
    ),
    Section(
        "P12: a stack that is named",
        "What is known of a stack predicts the rest of it. *later_dates*: stacks of a hundred rows or more, split "
        "after the month that leaves nearest to three tenths of them for later; *later_dates_copied*: those with a "
        "row to copy. *configurations*: one in ten of each stack's configurations, the load included, is left out "
        "with its runs on all dates. *nearest_of_stack* copies the nearest load of the same LLM, accelerator, "
        "engine, precision and statistic of the stack. Means and medians are judged. The ranges "
        "of the learner's kernel were set with configurations of InferenceX and rocm_vllm in view: the errors of "
        "roofcast are optimistic.",
        {"P12": "Stack named"},
        _ERRORS,
    ),
)

_INTRO: Final = """\
# Scoreboard

Written by `roofcast scoreboard --docs docs`; `--dump DIR` writes the rows from which each figure can be recomputed.
Errors are absolute percentage errors as fractions; *a / b* is mean / median. The heading of a table names the file
with all of its figures in [scoreboard/](scoreboard/); tables by part (`*_parts.csv`) are there too.
A date is that of the computation; *earlier predictor*: rows or code of the shipped predictors changed since.
"""


def render_page(figures: Mapping[str, Mapping[str, Any]], computed: Mapping[str, str]) -> str:
    """Return the page of these results; `computed` says when each was."""
    text = [_INTRO]
    for section in SECTIONS:
        shown = [name for name in section.results if name in figures]
        if shown:
            text.append(f"\n## {section.title}\n\n{section.text}\n")
            text += [f"![{section.plot[1]}]({FOLDER}/{section.plot[0]})\n"] if section.plot else []
        for name in shown:
            title = f"**{section.results[name]}** ([{name}.csv]({FOLDER}/{name}.csv); {computed[name]})"
            text.append(f"{title}\n\n{_headline(section, figures_table(name, figures[name]))}\n")
    return "\n".join(text)


def figures_table(name: str, figures: Mapping[str, Any]) -> pd.DataFrame:
    """Return all figures of a result as one table."""
    return pd.DataFrame(figure_rows(name, figures))


def _headline(section: Section, table: pd.DataFrame) -> str:
    for column, values in section.rows.items():
        if column in table:
            table = table[table[column].isin(values) | (table[column] == OWN)]
    keys = [str(c) for c in table if table[c].dtype.kind not in "fiu" and (c == "method" or len(set(table[c])) > 1)]
    figures = [column for column in section.columns if column in table and table[column].notna().any()]
    shown = table.loc[table[figures].notna().any(axis=1), [*keys, *figures]]
    if tuple(figures) == _ERRORS and len(keys) > 1:
        shown = _by_metric(shown, keys)
    titles = [_TITLES.get(str(column), str(column).replace("_", " ")) for column in shown]
    return markdown_table(titles, [[_cell(value) for value in row] for row in shown.itertuples(index=False)])


def _by_metric(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return a column for each metric, with mean and median error in a cell."""
    cells = table["mape"].map(format_number) + " / " + table["median_ape"].map(format_number)
    others = [key for key in keys if key != "metric"]
    wide = table.assign(cell=cells).set_index([*others, "metric"])["cell"].unstack(sort=False)  # noqa: PD010
    return wide.reset_index()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return format_number(value)
    return f"**{value}**" if value == OWN else str(value)


def write_tables(figures: Mapping[str, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write one CSV of each result into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(figures_table(name, of), folder / f"{name}.csv") for name, of in figures.items()]


def write_page(board: Scoreboard, folder: Path, day: str) -> list[Path]:
    """Write the page, its tables and its plot into a folder; return their paths."""
    figures = {name: result.figures for name, result in board.results.items()}
    paths = write_tables(figures, folder / FOLDER)
    for result in board.results.values():
        parts = {name: table for name, table in result.tables.items() if name.endswith(("_parts", "_memory"))}
        paths += [_write(table, folder / FOLDER / f"{name}.csv") for name, table in parts.items()]
    if "decisions" in board.results:
        decisions = regrets(board.results["decisions"].tables["decisions"])
        paths.append(_write(regrets_by_campaign(decisions), folder / FOLDER / "decisions_parts.csv"))
    if "P3" in board.results:
        paths.append(_write(_fault_table(board.results["P3"].tables["P3"]), folder / FOLDER / "P3_faults.csv"))
    page = folder / PAGE
    page.write_text(render_page(figures, dict.fromkeys(figures, day)), encoding="utf-8")
    return [page, *paths, *_draw(folder / FOLDER)]


def _draw(folder: Path) -> list[Path]:
    if not (folder / PLOTTED).exists():
        return []
    plot_stacks(pd.read_csv(folder / PLOTTED)).savefig(folder / PLOT, dpi=80, metadata={"Software": None})
    return [folder / PLOT]


def _fault_table(dump: pd.DataFrame) -> pd.DataFrame:
    n_by_fault = dump.drop_duplicates("id")["fault"].value_counts()
    rows = [(rule, what, int(n_by_fault.get(rule, 0))) for rule, what in FAULTS.items()]
    return pd.DataFrame(rows, columns=["rule", "what", "n_row"])


def _write(table: pd.DataFrame, path: Path) -> Path:
    table.to_csv(path, index=False, float_format=f"%.{N_DIGIT}g")
    return path


def main() -> None:
    """Write the page, the tables and the plot of the shipped figures into a folder."""
    from roofcast.serving.app_state.published_figures import shipped_figures  # noqa: PLC0415  (serving is optional)

    folder, shipped = Path(sys.argv[1]), shipped_figures()
    figures = {name: protocol.figures for name, protocol in shipped.items()}
    write_tables(figures, folder / FOLDER)
    _draw(folder / FOLDER)
    computed = {name: protocol.computed for name, protocol in shipped.items()}
    (folder / PAGE).write_text(render_page(figures, computed), encoding="utf-8")


if __name__ == "__main__":
    main()
