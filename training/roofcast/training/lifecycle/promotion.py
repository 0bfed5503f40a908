"""The gate: a candidate replaces the champion only if it is not worse on the same held-out lineages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from roofcast.training.dataset.targets import log_ratio

TOLERANCE = 0.02
"""Relative rise of the error that still counts as not worse: the scatter between two seeds of one recipe."""


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """Outcome of a comparison.

    Parameters
    ----------
    candidate, champion
        Error of each: see `held_out_error`. Beside a champion both are over what both answered; the champion's is
        None if nothing of the kind exists.
    promoted
        Whether the candidate passes.
    reason
        In a sentence.
    """

    candidate: float
    champion: float | None
    promoted: bool
    reason: str


def held_out_error(y: pd.DataFrame, predicted: pd.DataFrame, groups: pd.Series) -> float:
    """Return the mean absolute log error: over rows, then lineages, then metrics, each weighing the same.

    Examples
    --------
    >>> y = pd.DataFrame({"ttft_s": [1.0, 1.0, 1.0]})
    >>> predicted = pd.DataFrame({"ttft_s": [np.e, np.e, 1.0]})
    >>> float(held_out_error(y, predicted, pd.Series(["a", "a", "b"])))
    0.5
    """
    errors = pd.DataFrame(
        {m: np.abs(log_ratio(y[m].to_numpy(dtype=float), predicted[m].to_numpy(dtype=float))) for m in predicted},
        index=y.index,
    )
    return float(errors.groupby(groups).mean().mean().mean())


def compare(
    y: pd.DataFrame,
    candidate: pd.DataFrame,
    champion: pd.DataFrame | None,
    groups: pd.Series,
    no_champion: str = "there was no champion",
) -> PromotionDecision:
    """Return whether the candidate may replace the champion.

    Both are compared on the values that both answered. A candidate that leaves out what the champion answered is
    refused, however small its error, and so is one that answered nothing that was measured.

    Parameters
    ----------
    y : shape (n_row, n_metric)
        What was measured.
    candidate, champion : shape (n_row, n_metric)
        Predictions of the same rows with their lineage held out; None if there is no champion.
    groups : shape (n_row,)
    no_champion
        Why there is none, for the reason given.
    """
    alone = held_out_error(y, candidate, groups)
    if np.isnan(alone):
        return PromotionDecision(alone, None, False, "the candidate answered nothing that was measured")
    if champion is None:
        return PromotionDecision(alone, None, True, no_champion)
    mine, theirs = _answered(y, candidate), _answered(y, champion)
    n_missing = int((theirs & ~mine).to_numpy().sum())
    if n_missing:
        reason = f"the candidate leaves {n_missing} values unanswered that the champion answered"
        return PromotionDecision(alone, None, False, reason)
    if not theirs.to_numpy().any():
        return PromotionDecision(alone, None, True, "the champion answered nothing that was measured")
    shared = [m for m in champion if m in candidate]
    error, rival = (held_out_error(y.where(theirs), table[shared], groups) for table in (candidate, champion))
    promoted = error <= rival * (1 + TOLERANCE)
    word = "not worse" if promoted else "worse"
    reason = f"held-out error {error:.4f} is {word} than the champion's {rival:.4f} (+{TOLERANCE:.0%})"
    return PromotionDecision(error, rival, promoted, reason)


def _answered(y: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    return predicted.reindex(columns=y.columns).notna() & (y > 0)
