"""P4 and P5: measurements of all campaigns, each predicted without training rows of its lineage.

P5 adds reference measurements of the held-out LLM for each engine and accelerator and scores the other runs. Lineages
are assigned to folds, so that each is held out exactly once.

Baselines are fitted on the same folds.
"""

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.fold_lines import (
    COLUMNS,
    LEVELS,
    SCORED_METRICS,
    Fit,
    FittedFold,
    Progress,
    by_stack,
    fit_predictor,
    interval_scores,
    is_unanswered,
    map_folds,
    predict_fold,
    scored_lines,
)
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.learner.predictor import CalibrationPoints

N_REFERENCE: Final = (1, 3, 5)
N_DRAW: Final = 3
"""Random draws of the reference points."""

N_FOLD: Final = 12
FAULTY: Final = "published_fault"
"""Review rule of faulty published rows, which P5 scores among P3's rows and P4 does not."""

PARTS: Final = ("campaign", "accelerator", "lineage", "engine", "load", "statistic")


def predict_campaigns(
    rows: CampaignRows,
    fit: Fit = fit_predictor,
    progress: Progress | None = None,
    n_fold: int = N_FOLD,
) -> pd.DataFrame:
    """Return the dump of P4 and P5.

    Returns
    -------
    One line per row and metric that was measured or derived: `fold`, `row`, the query and its source, `question`
    (equal for equal descriptors), `metric`, `measured`, `predicted`, ``low_50`` to ``high_90``, ``by_NAME`` for each
    of `BASELINES`, and with k reference points in draw i ``predicted_k_draw_i``, ``low_90_k_draw_i`` and
    ``high_90_k_draw_i``, NaN for rows of the reference runs
    """
    folds = list(leave_one_group_out(rows.groups, n_fold))
    return map_folds(
        partial(predict_fold, _reference_predictions, rows, fit),
        folds,
        progress,
        "campaigns, leave one lineage out",
    )


def _reference_predictions(fold: FittedFold) -> dict[str, pd.DataFrame]:
    """Return predictions with reference points; NaN for rows of the reference runs."""
    predictor, rows, test = fold.predictor, fold.rows, fold.test
    run = rows.measurements["run"].iloc[test]
    answers: dict[str, pd.DataFrame] = {}
    for k in N_REFERENCE:
        for draw in range(N_DRAW):
            points = _draw_reference_rows(rows, test, k, draw)
            reference_rows = test[points.to_numpy()]
            references = CalibrationPoints(rows.X.iloc[reference_rows], rows.y.iloc[reference_rows])
            names = [f"{name}_{k}_draw_{draw}" for name in ("predicted", "low_90", "high_90")]
            answers |= {name: pd.DataFrame(np.nan, rows.X.index[test], list(COLUMNS)) for name in names}
            for about, rows_of in by_stack(predictor, rows.stacks.iloc[test]):
                part = test[rows_of]
                own = (
                    references if about is predictor else replace(references, stacks=rows.stacks.iloc[reference_rows])
                )
                prediction = about.predict_distribution(rows.X.iloc[part], own)
                is_used = run.loc[rows.X.index[part]].isin(run[points])
                is_blank = is_used | is_unanswered(rows, part) | prediction.estimate.is_saturated
                for name, table in zip(names, (prediction.median, *prediction.interval(LEVELS[-1])), strict=True):
                    answers[name].loc[table.index, table.columns] = table.mask(is_blank, axis=0)
    return answers


def _draw_reference_rows(rows: CampaignRows, test: npt.NDArray[np.intp], k: int, draw: int) -> pd.Series:
    """Return a mask of reference rows: means or medians of k runs per LLM, engine and accelerator."""
    test_rows = rows.measurements.iloc[test]
    order = pd.Series(np.random.default_rng([draw, 7]).permutation(len(test)), index=test_rows.index)
    is_central = test_rows["statistic"].isin(["mean", "p50"]) & (test_rows["rule"] == "")
    order = order[is_central].sort_values()
    order = order[~test_rows["run"].loc[order.index].duplicated()]
    rank = order.groupby([test_rows["model"], test_rows["engine"], test_rows["accelerator"]]).rank()
    return (rank <= k).reindex(test_rows.index, fill_value=False)


def campaign_figures(dump: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return P4's scores of a dump, or a subset of it, by metric.

    Examples
    --------
    >>> line = {"metric": "tpot", "rule": "", "measured": 1.0, "predicted": 1.5}
    >>> bounds = {f"{side}_{level}": value for level in (50, 80, 90) for side, value in (("low", 1.2), ("high", 2.4))}
    >>> figures = campaign_figures(pd.DataFrame([line | bounds]))["tpot"]
    >>> figures["mape"], figures["coverage_90"], figures["width_90"]
    (0.5, 0.0, 2.0)
    """
    figures = {}
    for metric, rows in scored_lines(dump).groupby("metric", sort=False):
        answered = rows[rows["predicted"].notna()]
        values = error_summary(rows["measured"], rows["predicted"])
        for level in ("50", "80"):
            is_inside = answered["measured"].between(answered[f"low_{level}"], answered[f"high_{level}"])
            values[f"coverage_{level}"] = float(is_inside.mean())
        figures[str(metric)] = {**values, **interval_scores(answered, "90")}
    return figures


def reference_figures(dump: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Return P5's scores by number of reference points: P3's rows at the top level, P4's under ``P4``.

    Each score is the mean over the draws; rows of a reference run are excluded in that draw. A row counts once for
    each of P3's published rows that it represents, as in P3.
    """
    published = dump.loc[dump.index.repeat(dump["n_published"])]
    lines = scored_lines(dump)
    return {
        str(k): {**_draw_means(published, k, ("tpot", "ttft")), "P4": _draw_means(lines, k, tuple(SCORED_METRICS))}
        for k in N_REFERENCE
    }


def _draw_means(rows: pd.DataFrame, k: int, metrics: tuple[str, ...]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for metric in metrics:
        metric_lines = rows[rows["metric"] == metric]
        draws = []
        for draw_name in (f"{k}_draw_{i}" for i in range(N_DRAW)):
            column = f"predicted_{draw_name}"
            answerable = metric_lines[metric_lines[column].notna() | metric_lines["predicted"].isna()]
            inside = interval_scores(answerable[answerable[column].notna()], f"90_{draw_name}")
            draws.append({**error_summary(answerable["measured"], answerable[column]), **inside})
        if len(metric_lines):
            figures[metric] = {name: float(np.mean([draw[name] for draw in draws])) for name in draws[0]}
    return figures


def campaign_parts(dump: pd.DataFrame) -> pd.DataFrame:
    """Return P4's scores by campaign, accelerator, lineage, engine, load and statistic.

    Returns
    -------
    Columns `by`, `part`, `metric`, `n_row` and the scores
    """
    lines = [
        {"by": by, "part": str(name), "metric": metric, "n_row": int((part["metric"] == metric).sum()), **values}
        for by in PARTS
        for name, part in scored_lines(dump).groupby(by)
        for metric, values in campaign_figures(part).items()
    ]
    return pd.DataFrame(lines)


def with_sources(dump: pd.DataFrame, rows: CampaignRows) -> pd.DataFrame:
    """Return the dump with `source` and `n_published` of `CampaignRows`, which identify P3's rows in P5."""
    return dump.join(rows.measurements[["source", "n_published"]].reset_index(drop=True), on="row")
