"""Comparison of a candidate with the champion on held-out rows that both know, slice by slice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from roofcast.training.dataset.targets import log_ratio
from roofcast.training.lifecycle.gate.slice_bootstrap import SIGNIFICANCE, TOLERANCE, find_regressions

N_NAMED = 3
"""Slices that a reason names."""


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """Outcome of a comparison.

    `candidate` and `champion`: error of each: see `held_out_error`. With a champion, both are over the values that
    both predicted; the champion's is None if there is no such value or no champion.
    """

    candidate: float
    champion: float | None
    promoted: bool
    reason: str

    def refuse(self, reason: str) -> PromotionDecision:
        """Return the same comparison with another outcome."""
        return replace(self, promoted=False, reason=reason)


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
    slices: pd.DataFrame,
    *,
    no_champion: str = "there was no champion",
    rival: str = "the champion",
    significance: float = SIGNIFICANCE,
) -> PromotionDecision:
    """Return whether the candidate replaces the champion, by their errors on the values that both predicted.

    It is refused if it lacks a value that the champion predicted, predicted no measured value, has an error more than
    `TOLERANCE` above the champion's, or is significantly worse on a slice, see `find_regressions`.

    - `candidate`, `champion`: shape (n_row, n_metric). Predictions of the same rows, each with the same group of rows
      held out; None if there is no champion.
    - `slices`: shape (n_row, n_column). As in `find_regressions`.
    - `significance`: As in `find_regressions`.
    """
    groups = slices["lineage"]
    alone = held_out_error(y, candidate, groups)
    if np.isnan(alone):
        return PromotionDecision(alone, None, False, "the candidate predicts no measured value")
    if champion is None:
        return PromotionDecision(alone, None, True, no_champion)
    has_candidate, has_champion = _is_predicted(y, candidate), _is_predicted(y, champion)
    n_missing = int((has_champion & ~has_candidate).to_numpy().sum())
    if n_missing:
        reason = f"the candidate lacks {n_missing} values that {rival} predicts"
        return PromotionDecision(alone, None, False, reason)
    if not has_champion.to_numpy().any():
        return PromotionDecision(alone, None, True, f"{rival} predicts no measured value")
    shared = [m for m in champion if m in candidate]
    compared = y.where(has_champion)
    error, other = (held_out_error(compared, table[shared], groups) for table in (candidate, champion))
    is_better = error <= other * (1 + TOLERANCE)
    word = "not worse" if is_better else "worse"
    reason = f"held-out error {error:.4f} is {word} than the {other:.4f} of {rival} (+{TOLERANCE:.0%})"
    decision = PromotionDecision(error, other, is_better, reason)
    predictions = candidate[shared], champion[shared]
    worse = find_regressions(compared, *predictions, slices, significance) if is_better else []
    if worse:
        named = "; ".join(map(str, worse[:N_NAMED]))
        rest = f"; and {len(worse) - N_NAMED} more" if len(worse) > N_NAMED else ""
        return decision.refuse(f"significantly worse than {rival} on {named}{rest}")
    return decision


def _is_predicted(y: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    return predicted.reindex(columns=y.columns).notna() & (y > 0)
