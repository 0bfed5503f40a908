"""P7 and P8: measurements of stacks that nobody measured before.

P7 predicts each row without training rows of its stack's owner, and some with a column left blank as well. P8 adds
some runs of that stack, on the same engine and accelerator: of one other LLM, of three other LLMs, or of the LLM in
question. Owners are assigned to folds, largest first, so that small ones share a fold; the owners of a fold are held
out together.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.fold_lines import (
    BASELINES,
    LEVELS,
    SCORED_METRICS,
    Fit,
    FittedFold,
    Progress,
    compared_summary,
    fit_predictor,
    interval_scores,
    is_unanswered,
    map_folds,
    predict_fold,
    scored_lines,
)
from roofcast.data.campaigns import FIRST_CAMPAIGNS
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.stacks import competent_rows, stack_owners
from roofcast.training.evaluation.metrics import error_summary, median_ape
from roofcast.training.learner.predictor import CalibrationPoints

IndexArray = npt.NDArray[np.intp]

N_FOLD: Final = 14
N_OWN_RUN: Final = (1, 3, 10)
"""Numbers of own runs of P8; none is P7's prediction of the same rows."""

OWN_RUNS: Final = {"one_other_llm": 1, "three_other_llms": 3, "asked_llm": 0}
"""Kinds of own runs, and of how many other LLMs they are; 0 for the LLM in question."""

OWN_RUN_COUNTS: Final = {kind: tuple(k for k in N_OWN_RUN if k >= n_other) for kind, n_other in OWN_RUNS.items()}
"""Numbers of own runs of each kind, at least one of each LLM."""

LEAST_ROW: Final = 100
"""Rows from which a stack counts among the worst."""

_SETTING: Final = ("stack", "engine", "accelerator")


def predict_stacks(
    rows: CampaignRows,
    fit: Fit = fit_predictor,
    progress: Progress | None = None,
    n_fold: int = N_FOLD,
) -> pd.DataFrame:
    """Return the dump of P7 and P8.

    Returns
    -------
    As of `p4_p5_campaigns.predict_campaigns`, and for each kind of `OWN_RUNS` and each of its `OWN_RUN_COUNTS`
    ``predicted_KIND_k``, ``low_90_KIND_k`` and ``high_90_KIND_k``, NaN for the own runs themselves and where the
    stack measured too few LLMs.
    """
    folds = list(leave_one_group_out(rows.owners, n_fold))
    dump = map_folds(
        partial(predict_fold, _own_run_predictions, rows, fit), folds, progress, "campaigns, leave one stack out"
    )
    return dump.assign(is_competent=competent_rows(rows.X, rows.stacks).to_numpy()[dump["row"]])


def _own_run_predictions(fold: FittedFold) -> dict[str, pd.DataFrame]:
    predictor, rows, test = fold.predictor, fold.rows, fold.test
    test_rows = rows.measurements.iloc[test]
    blank = pd.DataFrame(np.nan, index=test_rows.index, columns=list(SCORED_METRICS.values()))
    answers: dict[str, pd.DataFrame] = {}
    for kind, n_other in OWN_RUNS.items():
        for k in OWN_RUN_COUNTS[kind]:
            tables = {name: blank.copy() for name in ("predicted", "low_90", "high_90")}
            for queries, references in _settings(rows, test, n_other, k):
                points = CalibrationPoints(rows.X.iloc[references], rows.y.iloc[references])
                prediction = predictor.predict_distribution(rows.X.iloc[queries], points)
                low, high = prediction.interval(LEVELS[-1])
                is_blank = is_unanswered(rows, queries) | prediction.estimate.is_saturated
                for name, table in (("predicted", prediction.median), ("low_90", low), ("high_90", high)):
                    tables[name].loc[table.index, table.columns] = table.mask(is_blank, axis=0)
            answers |= {f"{name}_{kind}_{k}": table for name, table in tables.items()}
    return answers


def _settings(rows: CampaignRows, test: IndexArray, n_other: int, k: int) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield the rows of each LLM on a stack, engine and accelerator, and the rows of k own runs for them.

    Runs are drawn at random, by means or medians; those of other LLMs in turn from each. Settings with fewer runs, or
    of fewer LLMs, are left out. Rows of own runs are left out of the rows to predict.
    """
    columns = ["engine", "accelerator", "statistic", "rule", "run"]
    table = rows.measurements[columns].assign(stack=rows.stacks, group=rows.groups).iloc[test].assign(place=test)
    for number, (_, setting) in enumerate(table.groupby(list(_SETTING), sort=True)):
        rng = np.random.default_rng([number, 8])
        is_central = setting["statistic"].isin(["mean", "p50"]) & (setting["rule"] == "")
        runs = setting[is_central].drop_duplicates("run").sample(frac=1.0, random_state=rng)
        runs = runs.assign(turn=runs.groupby("group").cumcount()).sort_values("turn", kind="stable")
        groups = np.array(setting["group"].unique(), dtype=object)
        order = rng.permutation(len(groups))
        for i, group in enumerate(groups[order]):
            others = np.roll(groups[order], -i)[1 : n_other + 1]
            wanted = others if n_other else [group]
            if len(wanted) < max(n_other, 1):
                continue
            drawn = runs[runs["group"].isin(wanted)].head(k)
            queries = setting[(setting["group"] == group) & ~setting["run"].isin(drawn["run"])]
            is_complete = len(drawn) == k and drawn["group"].nunique() == max(n_other, 1)
            if is_complete and len(queries):
                references = setting[setting["run"].isin(drawn["run"]) & is_central]
                yield queries["place"].to_numpy(), references["place"].to_numpy()


def stack_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, object]]]:
    """Return P7's scores of a dump by method and metric.

    Errors are pooled over rows (``pooled``), averaged over stacks (``mean_of_stacks``), and of the worst stack of
    `LEAST_ROW` rows (``worst_stack``), a stack being all of one owner; ``bias`` is the median of
    log(measured / predicted). All methods are compared on the rows that roofcast answers. Intervals, which are of
    competent operators, are judged by the rows of these (``competent``), those of any operator by all (``any``):
    coverage means over stacks, that of the worst, and `interval_scores` over rows. Those of ``competent`` are at the
    top too, where ``coverage_90`` is the mean over stacks.
    """
    lines = scored_lines(dump)
    columns = {"roofcast": "predicted", **{name: f"by_{name}" for name in BASELINES}}
    return {
        method: {
            str(metric): _method_scores(part, column, has_interval=method == "roofcast")
            for metric, part in lines.groupby("metric", sort=False)
        }
        for method, column in columns.items()
    }


def _method_scores(lines: pd.DataFrame, column: str, *, has_interval: bool) -> dict[str, object]:
    owner, predicted = stack_owners(lines["stack"]), lines[column]
    by_stack = pd.DataFrame({name: compared_summary(part, column) for name, part in lines.groupby(owner)}).T
    is_large = lines.groupby(owner).size() >= LEAST_ROW
    pooled = compared_summary(lines, column)
    pooled["bias"] = _bias(lines["measured"], predicted.where(lines["predicted"].notna()))
    scores: dict[str, object] = {"pooled": pooled, "mean_of_stacks": _floats(by_stack.mean())}
    if is_large.any():
        scores["worst_stack"] = _floats(by_stack[is_large].max()[["mape", "median_ape"]])
    if has_interval:
        answered = lines[predicted.notna()]
        own = _coverage(answered[answered["is_competent"]], "90")
        scores |= own | {"coverage_90": own["coverage_90_of_stacks"], "competent": own}
        scores["any"] = _coverage(answered, "90_any")
    return scores


def _coverage(answered: pd.DataFrame, bounds: str) -> dict[str, float]:
    owner = stack_owners(answered["stack"])
    is_inside = answered["measured"].between(answered[f"low_{bounds}"], answered[f"high_{bounds}"])
    by_stack, is_large = is_inside.groupby(owner).mean(), answered.groupby(owner).size() >= LEAST_ROW
    coverage = {"coverage_90_of_stacks": float(by_stack.mean()), "coverage_90_worst": float(by_stack[is_large].min())}
    return interval_scores(answered, bounds) | coverage


def own_run_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Return P8's scores by kind of own runs, their number (0 for none) and metric.

    All numbers of one kind are scored on the same rows: those that are no own run and that a prediction with every
    number of runs answers.
    """
    lines = scored_lines(dump)
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for kind in OWN_RUNS:
        names = {
            "0": ("predicted", "90"),
            **{str(k): (f"predicted_{kind}_{k}", f"90_{kind}_{k}") for k in OWN_RUN_COUNTS[kind]},
        }
        scored = lines[lines[[column for column, _ in names.values()]].notna().all(axis=1)]
        figures[kind] = {
            k: {
                str(metric): {
                    **error_summary(part["measured"], part[column]),
                    "coverage_90": interval_scores(part, bounds)["coverage_90"],
                }
                for metric, part in scored.groupby("metric", sort=False)
            }
            for k, (column, bounds) in names.items()
        }
    return figures


def of_first_campaigns(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the campaigns whose stacks the headline figures of P7 judge."""
    return dump[dump["campaign"].isin(FIRST_CAMPAIGNS)]


def stack_parts(dump: pd.DataFrame) -> pd.DataFrame:
    """Return P7's scores by owner of the stack.

    Returns
    -------
    Columns `owner`, `metric`, `n_row`, the scores of roofcast, `bias`, and `median_ape` of each baseline as
    ``by_NAME``
    """
    lines = scored_lines(dump)
    table: list[dict[str, object]] = []
    for (owner, metric), part in lines.groupby([stack_owners(lines["stack"]), "metric"]):
        answered = part[part["predicted"].notna()]
        scores = error_summary(part["measured"], part["predicted"]) | interval_scores(answered, "90")
        bias = _bias(answered["measured"], answered["predicted"])
        of_baselines = {
            name: median_ape(answered["measured"], answered[name]) for name in map("by_{}".format, BASELINES)
        }
        table.append({"owner": owner, "metric": metric, "n_row": len(part), **scores, "bias": bias, **of_baselines})
    return pd.DataFrame(table)


def _bias(measured: pd.Series, predicted: pd.Series) -> float:
    """Return the median of log(measured / predicted)."""
    return float(np.nanmedian(np.log((measured / predicted).to_numpy(dtype=float))))


def _floats(values: pd.Series) -> dict[str, float]:
    return {str(name): float(value) for name, value in values.items()}
