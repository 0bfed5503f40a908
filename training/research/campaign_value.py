"""Value of a campaign: errors on stacks that nobody measured, of models fitted with it and without it.

``python -m research.campaign_value FILE`` writes the table; some ten minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.progress import track

from roofcast.data.campaigns import CAMPAIGNS, FIRST_CAMPAIGNS
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.evaluation.markdown import markdown_table
from roofcast.training.evaluation.protocols.campaign_rows import CampaignRows, load_campaign_rows
from roofcast.training.learner.ratio_model import RatioModel

N_FOLD: Final = 4
"""Folds of owners of stacks: fewer than P7's, because each is fitted once a campaign."""

METRICS: Final = {"tpot_s": "TPOT", "ttft_s": "TTFT", "output_throughput_token_per_s": "throughput"}

SEED: Final = "(another seed of the trees)"
"""Row of the table that shows how much of a difference is chance."""

_TITLE: Final = """# Value of each campaign

Does a campaign that was added improve predictions about the stacks of the others? Models without intervals are fitted
with stacks left out, {n_fold} folds of owners, once with all campaigns and once without the one in question; both are
judged on the rows of all other campaigns. *Change*: median absolute percentage error with the campaign less that
without it, pooled over rows, so that **less than zero is a gain**; *owners*: share of the owners of stacks whose
median error is smaller with it. The last line is the same of two models that differ by the seed of their trees alone:
a change no greater than its is chance. Written by `python -m research.campaign_value`.
"""


def campaign_values(rows: CampaignRows, campaigns: tuple[str, ...]) -> pd.DataFrame:
    """Return, for each campaign and metric, the errors with it and without it on the rows of the others."""
    folds = list(leave_one_group_out(rows.owners, N_FOLD))
    cases = [None, SEED, *campaigns]
    errors = {}
    for case in track(cases, "campaigns", disable=not sys.stderr.isatty()):
        errors[case] = pd.concat([_held_out_errors(rows, train, test, case) for train, test in folds])
    lines = []
    for case in cases[1:]:
        judged = (rows.measurements["campaign"] != case).reindex(errors[None].index)
        for metric in METRICS:
            pair = pd.DataFrame({"all": errors[None][metric], "less": errors[case][metric]})[judged].dropna()
            lines.append({"campaign": case, "metric": metric, "n_row": len(pair), **_compare(pair, rows.owners)})
    return pd.DataFrame(lines)


def _compare(pair: pd.DataFrame, owners: pd.Series) -> dict[str, float]:
    by_owner = pair.groupby(owners.reindex(pair.index)).median()
    differs = by_owner[by_owner["all"] != by_owner["less"]]
    return {
        "with": float(pair["all"].median()),
        "without": float(pair["less"].median()),
        "owners": float((differs["all"] < differs["less"]).mean()) if len(differs) else np.nan,
    }


def _held_out_errors(
    rows: CampaignRows, train: npt.NDArray[np.intp], test: npt.NDArray[np.intp], case: str | None
) -> pd.DataFrame:
    """Return the absolute percentage errors of a fold's rows by a model that lacks them and the campaign `case`."""
    measurements = rows.measurements
    is_used = rows.is_sound[train] & (measurements["campaign"].iloc[train] != case).to_numpy()
    is_used &= ~measurements["run"].iloc[train].isin(measurements["run"].iloc[test]).to_numpy()
    fit, judged = rows.take(train[is_used]), rows.take(test[rows.is_sound[test]])
    model = RatioModel(TrainingConfig(seed=int(case == SEED)), tuple(METRICS))
    prediction = model.fit(fit.X, fit.y, fit.groups, stacks=fit.stacks).predict_ratio(judged.X)
    measured = judged.y.where(~pd.Series(prediction.estimate.is_saturated, judged.y.index))
    return pd.DataFrame({m: np.abs(prediction.value[m] / measured[m] - 1) for m in METRICS})


def page(values: pd.DataFrame, owners: pd.Series, rows: pd.DataFrame) -> str:
    """Return the page, the campaigns in the order of their gain in TPOT."""
    wide = values.pivot_table(["with", "without", "owners"], "campaign", "metric", dropna=False)
    change = wide["with"] - wide["without"]
    order = [*change.drop(SEED)["tpot_s"].sort_values().index, SEED]
    lines = []
    for name in order:
        own = rows["campaign"] == name
        cells = [name, f"{own.sum():,}" if own.any() else "", f"{owners[own].nunique()}" if own.any() else ""]
        for metric in METRICS:
            cells += [f"{change.loc[name, metric]:+.4f}", f"{wide['owners'].loc[name, metric]:.2f}"]
        lines.append(tuple(cells))
    header = (
        "campaign",
        "rows",
        "owners",
        *(f"{m}, {what}" for m in METRICS.values() for what in ("change", "owners")),
    )
    return _TITLE.format(n_fold=N_FOLD) + "\n" + markdown_table(header, lines) + "\n"


def main() -> None:
    """Write the page to the file that the first argument names."""
    rows = load_campaign_rows()
    added = tuple(name for name in CAMPAIGNS if name not in FIRST_CAMPAIGNS)
    Path(sys.argv[1]).write_text(page(campaign_values(rows, added), rows.owners, rows.measurements), encoding="utf-8")


if __name__ == "__main__":
    main()
