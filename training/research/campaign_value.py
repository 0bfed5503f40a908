"""Value of a campaign: errors on stacks that nobody measured, of models fitted with it and without it.

``python -m research.campaign_value FILE`` writes the table; some ten minutes.
"""

import sys
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.progress import track

from judge.markdown import markdown_table
from judge.protocols.campaign_rows import CampaignRows, load_campaign_rows
from roofcast.data.campaigns import CAMPAIGNS, FIRST_CAMPAIGNS
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.learner.ratio_model import RatioModel

N_FOLD: Final = 4
"""Folds of owners of stacks: fewer than P7's, because each is fitted once a campaign."""

METRICS: Final = {"tpot_s": "TPOT", "ttft_s": "TTFT", "output_throughput_token_per_s": "throughput"}

N_DRAW: Final = 400
"""Draws of owners for the intervals of the changes."""

_TITLE: Final = """# Value of each campaign

This page shows whether each added campaign improves predictions about the stacks of the other campaigns. Ratio models
are fitted in {n_fold} folds of owners, once with all campaigns and once without the campaign in question. They have
neither random effects nor the factor by which the correction carries over to unmeasured stacks. Both are evaluated on
the rows of all other campaigns.

A cell has the change of the median absolute percentage error, pooled over rows: the error with the campaign less the
error without it, so **less than zero is a gain**. In brackets is the 90 % interval of the change over draws of
owners. An interval that includes zero shows no effect; of {n_test} intervals, {n_chance} would exclude zero by
chance. `python -m research.campaign_value` writes this page.
"""


def campaign_values(rows: CampaignRows, campaigns: tuple[str, ...]) -> pd.DataFrame:
    """Return, for each campaign and metric, the change of the median error on the rows of the others."""
    folds = list(leave_one_group_out(rows.owners, N_FOLD))
    errors = {}
    for case in track([None, *campaigns], "campaigns", disable=not sys.stderr.isatty()):
        errors[case] = pd.concat([_held_out_errors(rows, train, test, case) for train, test in folds])
    lines = []
    for case in campaigns:
        judged = (rows.measurements["campaign"] != case).reindex(errors[None].index)
        for metric in METRICS:
            pair = pd.DataFrame({"with": errors[None][metric], "without": errors[case][metric]})[judged].dropna()
            lines.append({"campaign": case, "metric": metric, "n_row": len(pair), **_compare(pair, rows.owners)})
    return pd.DataFrame(lines)


def _compare(pair: pd.DataFrame, owners: pd.Series) -> dict[str, float]:
    codes, names = pd.factorize(owners.reindex(pair.index))
    values = pair.to_numpy()
    order = [np.argsort(column) for column in values.T]
    rng, changes = np.random.default_rng(0), []
    for _ in range(N_DRAW):
        weight = rng.multinomial(len(names), np.full(len(names), 1 / len(names)))[codes]
        medians = [_median(column[by], weight[by]) for column, by in zip(values.T, order, strict=True)]
        changes.append(medians[0] - medians[1])
    low, high = np.quantile(changes, [0.05, 0.95])
    return {"change": float(pair["with"].median() - pair["without"].median()), "low": float(low), "high": float(high)}


def _median(rising: npt.NDArray[np.float64], weight: npt.NDArray[np.int64]) -> float:
    cumulative = np.cumsum(weight)
    return float(rising[np.searchsorted(cumulative, cumulative[-1] / 2)])


def _held_out_errors(
    rows: CampaignRows, train: npt.NDArray[np.intp], test: npt.NDArray[np.intp], case: str | None
) -> pd.DataFrame:
    measurements = rows.measurements
    is_used = rows.is_sound[train] & (measurements["campaign"].iloc[train] != case).to_numpy()
    is_used &= ~measurements["run"].iloc[train].isin(measurements["run"].iloc[test]).to_numpy()
    fit, judged = rows.take(train[is_used]), rows.take(test[rows.is_sound[test]])
    model = RatioModel(TrainingConfig(), tuple(METRICS))
    prediction = model.fit(fit.X, fit.y, fit.groups, stacks=fit.stacks).predict_ratio(judged.X)
    measured = judged.y.where(~pd.Series(prediction.estimate.is_saturated, judged.y.index))
    return pd.DataFrame({m: np.abs(prediction.value[m] / measured[m] - 1) for m in METRICS})


def page(values: pd.DataFrame, owners: pd.Series, rows: pd.DataFrame) -> str:
    """Return the page, the campaigns in the order of their gain in TPOT."""
    by_metric = {metric: part.set_index("campaign") for metric, part in values.groupby("metric")}
    lines = []
    for name in by_metric["tpot_s"]["change"].sort_values().index:
        own = rows["campaign"] == name
        cells = [
            f"{one.change:+.4f} ({one.low:+.4f} to {one.high:+.4f})"
            for one in (by_metric[m].loc[name] for m in METRICS)
        ]
        lines.append((str(name), f"{own.sum():,}", f"{owners[own].nunique()}", *cells))
    header = ("campaign", "rows", "owners", *METRICS.values())
    title = _TITLE.format(n_fold=N_FOLD, n_test=len(values), n_chance=round(len(values) / 10))
    return title + "\n" + markdown_table(header, lines) + "\n"


def main() -> None:
    """Write the page to the file that the first argument names."""
    rows = load_campaign_rows()
    added = tuple(name for name in CAMPAIGNS if name not in FIRST_CAMPAIGNS)
    Path(sys.argv[1]).write_text(page(campaign_values(rows, added), rows.owners, rows.measurements), encoding="utf-8")


if __name__ == "__main__":
    main()
