"""Description of a version of the predictor for people: what it learnt from, how good it is, why it serves or not."""

from __future__ import annotations

import datetime as dt
from typing import Final

import pandas as pd

from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.lifecycle.promotion import PromotionDecision
from roofcast.training.lifecycle.registry import Champion

N_NAMED: Final = 8
"""Own campaigns that a description names, the largest first."""


def own_rows(data: TrainingSet) -> pd.Series:
    """Return whether each row was imported here: shape (n_row,)."""
    return (data.stacks == "") | is_uploaded(data.stacks)


def describe_version(
    data: TrainingSet,
    decision: PromotionDecision,
    champion: Champion | None,
    scores: dict[str, dict[str, float]],
    moment: dt.datetime,
) -> str:
    """Return the description of a candidate that was compared with the champion.

    Parameters
    ----------
    scores
        Held-out errors by metric.
    moment
        End of the training, with its zone.
    """
    campaigns, is_own = data.measurements["campaign"], own_rows(data)
    counts = campaigns[is_own].value_counts()
    named = ", ".join(f"{name} {n:,}" for name, n in counts.head(N_NAMED).items())
    rest = f" and {len(counts) - N_NAMED} more" if len(counts) > N_NAMED else ""
    n_shipped = int((~is_own).sum())
    errors = ", ".join(f"{metric} {one['median_ape']:.1%}" for metric, one in scores.items())
    rival = f", that of version {champion.version} {decision.champion:.4f}" if champion and decision.champion else ""
    verdict = "Promoted" if decision.promoted else "Not promoted"
    return (
        f"Trained on {moment.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC from {len(data.X):,} measurements of "
        f"{data.groups.nunique()} lineages: {n_shipped:,} of {campaigns[~is_own].nunique()} shipped campaigns, "
        f"{len(data.X) - n_shipped:,} imported{f' ({named}{rest})' if named else ''}.\n"
        f"Median error on held-out lineages: {errors}.\n"
        f"Mean absolute log error {decision.candidate:.4f}{rival}.\n"
        f"{verdict}: {decision.reason}."
    )
