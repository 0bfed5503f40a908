"""Promotion decision: a candidate replaces the champion unless it is worse on the same held-out lineages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from roofcast.training.dataset.targets import log_ratio

TOLERANCE = 0.02
"""Relative increase of the error that counts as not worse: the spread between two seeds of one recipe."""


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """Outcome of a comparison.

    Parameters
    ----------
    candidate, champion
        Error of each: see `held_out_error`. With a champion, both are over the values that both predicted; the
        champion's is None if there is no such value or no champion.
    """

    candidate: float
    champion: float | None
    promoted: bool
    reason: str


def held_out_error(y: pd.DataFrame, predicted: pd.DataFrame, groups: pd.Series) -> float:
    """Return the mean absolute log error: over rows, then lineages, then metrics, with equal weights.

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
    """Return whether the candidate replaces the champion, by their errors on the values that both predicted.

    A candidate is refused if it lacks a value that the champion predicted, or predicted no measured value.

    Parameters
    ----------
    y : shape (n_row, n_metric)
        Measured values.
    candidate, champion : shape (n_row, n_metric)
        Predictions of the same rows, each with its lineage held out; None if there is no champion.
    groups : shape (n_row,)
    no_champion
        Reason if there is none.
    """
    alone = held_out_error(y, candidate, groups)
    if np.isnan(alone):
        return PromotionDecision(alone, None, False, "the candidate predicts no measured value")
    if champion is None:
        return PromotionDecision(alone, None, True, no_champion)
    has_candidate, has_champion = _is_predicted(y, candidate), _is_predicted(y, champion)
    n_missing = int((has_champion & ~has_candidate).to_numpy().sum())
    if n_missing:
        reason = f"the candidate lacks {n_missing} values that the champion predicts"
        return PromotionDecision(alone, None, False, reason)
    if not has_champion.to_numpy().any():
        return PromotionDecision(alone, None, True, "the champion predicts no measured value")
    shared = [m for m in champion if m in candidate]
    error, rival = (held_out_error(y.where(has_champion), table[shared], groups) for table in (candidate, champion))
    promoted = error <= rival * (1 + TOLERANCE)
    word = "not worse" if promoted else "worse"
    reason = f"held-out error {error:.4f} is {word} than the champion's {rival:.4f} (+{TOLERANCE:.0%})"
    return PromotionDecision(error, rival, promoted, reason)


def _is_predicted(y: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    return predicted.reindex(columns=y.columns).notna() & (y > 0)
