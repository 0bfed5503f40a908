"""Held-out scores of the out-of-memory classifier beside the plain rule that what fits runs."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS, Coefficients
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.learner.out_of_memory import (
    LLM_PILOT,
    Attempts,
    OutOfMemoryClassifier,
    memory_columns,
    memory_of,
)

FloatArray = npt.NDArray[np.float64]

RULE_PROBABILITY: Final = 0.99
"""Probability that a yes of the deterministic rule counts as in the logarithmic loss."""


def predict_held_out_attempts(attempts: Attempts, coefficients: Coefficients = DEFAULT_COEFFICIENTS) -> FloatArray:
    """Return the probability that each attempt runs, by a classifier that never saw its lineage."""
    columns, p_runs = memory_columns(attempts.X, memory_of(attempts.X, coefficients)), np.empty(len(attempts.ran))
    for train, test in leave_one_group_out(attempts.groups):
        fold = OutOfMemoryClassifier().fit(columns[train], attempts.ran[train])
        p_runs[test] = fold.predict_proba(columns[test])[:, 1]
    return p_runs


def probability_scores(ran: npt.NDArray[np.bool_], p_runs: FloatArray) -> dict[str, float]:
    """Return the Brier score and the mean logarithmic loss of probabilities.

    Examples
    --------
    >>> probability_scores(np.array([True, False]), np.array([0.8, 0.2]))
    {'brier': 0.04, 'log_loss': 0.223}
    """
    loss = -np.log(np.where(ran, p_runs, 1.0 - p_runs))
    return {"brier": round(float(((p_runs - ran) ** 2).mean()), 4), "log_loss": round(float(loss.mean()), 3)}


def out_of_memory_figures(attempts: Attempts) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return scores of held-out probabilities by method, and the calibration of each."""
    rule = np.where(memory_of(attempts.X).fits, RULE_PROBABILITY, 1.0 - RULE_PROBABILITY)
    methods = {"classifier": predict_held_out_attempts(attempts), "rule": rule}
    is_pilot = (attempts.rows["campaign"] == LLM_PILOT).to_numpy()
    lines, bins = [], []
    for method, p_runs in methods.items():
        for name, rows in (("all", np.ones(len(rule), dtype=bool)), (LLM_PILOT, is_pilot)):
            counts = {"n": int(rows.sum()), "n_failed": int((~attempts.ran[rows]).sum())}
            scores = probability_scores(attempts.ran[rows], p_runs[rows])
            lines.append({"attempts": name, "method": method, **counts, **scores})
        table = pd.DataFrame({"predicted": p_runs, "ran": attempts.ran})
        summary = table.groupby(pd.cut(table["predicted"], [0.0, 0.1, 0.5, 0.9, 0.98, 1.0]), observed=True).agg(
            n=("ran", "size"), predicted=("predicted", "mean"), ran=("ran", "mean")
        )
        bins.append(summary.rename_axis("between").reset_index().assign(method=method))
    return pd.DataFrame(lines), pd.concat(bins, ignore_index=True)
