"""The gate: a candidate replaces the champion only if it is not worse on the same held-out lineages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from roofcast.training.targets import log_ratio

TOLERANCE = 0.02
"""Relative rise of the error that still counts as not worse: the scatter between two seeds of one recipe."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of a comparison.

    Parameters
    ----------
    candidate, champion
        Error of each: see `held_out_error`; the champion's is None if there is none.
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


def judge(y: pd.DataFrame, candidate: pd.DataFrame, champion: pd.DataFrame | None, groups: pd.Series) -> Verdict:
    """Return whether the candidate may replace the champion.

    Parameters
    ----------
    y : shape (n_row, n_metric)
        What was measured.
    candidate, champion : shape (n_row, n_metric)
        Predictions of the same rows with their lineage held out; None if there is no champion.
    groups : shape (n_row,)
    """
    if champion is None:
        error = held_out_error(y, candidate, groups)
        return Verdict(error, None, True, "there was no champion")
    shared = [m for m in candidate if m in champion]
    mine, theirs = (held_out_error(y, table[shared], groups) for table in (candidate, champion))
    promoted = mine <= theirs * (1 + TOLERANCE)
    word = "not worse" if promoted else "worse"
    return Verdict(
        mine,
        theirs,
        promoted,
        f"held-out error {mine:.4f} is {word} than the champion's {theirs:.4f} (+{TOLERANCE:.0%})",
    )
