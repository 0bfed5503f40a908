"""Description of a version of the predictor for people: what it learnt from, how good it is, why it serves or not."""

import datetime as dt
from typing import Final

import pandas as pd

from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.lifecycle.gate.comparison import PromotionDecision
from roofcast.training.lifecycle.learned_targets import LearningRows
from roofcast.training.lifecycle.registry.registry import Champion

N_NAMED: Final = 8
"""Campaigns of the operator that a description names, the largest first."""


def own_rows(stacks: pd.Series) -> pd.Series:
    """Return whether the rows of each stack were imported here: shape (n_row,)."""
    return (stacks == "") | is_uploaded(stacks)


def describe_version(
    decision: PromotionDecision, champion: Champion | None, scores: dict[str, dict[str, float]], data: LearningRows
) -> str:
    """Return the description of a candidate that was compared with the champion and has just been trained.

    Everyone reads it, so it names campaigns of the operator, and counts the rows of API keys.
    """
    campaigns, stacks = data.measurements["campaign"], data.stacks
    is_own, is_of_key = own_rows(stacks), is_uploaded(stacks)
    counts = campaigns[stacks == ""].value_counts()
    named = [f"{name} {n:,}" for name, n in counts.head(N_NAMED).items()]
    if len(counts) > N_NAMED:
        named.append(f"{len(counts) - N_NAMED} more campaigns")
    if is_of_key.any():
        named.append(f"API keys {is_of_key.sum():,}")
    imported = f" ({', '.join(named)})" if named else ""
    n_shipped = int((~is_own).sum())
    errors = ", ".join(f"{metric} {one['median_ape']:.1%}" for metric, one in scores.items())
    rival = f", that of version {champion.version} {decision.champion:.4f}" if champion and decision.champion else ""
    verdict = "Promoted" if decision.promoted else "Not promoted"
    return (
        f"Trained on {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC from {len(campaigns):,} measurements of "
        f"{data.groups.nunique()} lineages: {n_shipped:,} of {campaigns[~is_own].nunique()} shipped campaigns, "
        f"{len(campaigns) - n_shipped:,} imported{imported}.\n"
        f"Median error on held-out lineages: {errors}.\n"
        f"Mean absolute log error {decision.candidate:.4f}{rival}.\n"
        f"{verdict}: {decision.reason}."
    )
