"""Held-out errors of the shipped predictor, stored beside it: one line for each training row.

The bundle has only their distribution; analyses need each error.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.predictor import RoofcastPredictor

FILE: Final = Path(__file__).parents[1] / "shipped" / "held_out_errors.csv.xz"

METRICS: Final = ("ttft_s", "itl_s", "tpot_s", "output_throughput_token_per_s")

SPLITS: Final = ("lineage", "stack")
"""What was held out: the LLM's lineage, or the owner of the stack that measured the row."""

N_ERROR_DIGIT: Final = 3
N_LEVEL_DIGIT: Final = 2


@dataclass(frozen=True, slots=True)
class HeldOutErrors:
    """Errors of one split; the tables have shape (n_row, n_metric), rows as in the training set.

    `error`: ln(measured / predicted) of ratio models (estimate times trees, no random effects) fitted without what is
    held out; NaN where nothing was measured or predicted. `level`: level of the narrowest interval that holds the
    measurement, from 0 to 1; NaN for tail percentiles, whose intervals are those of the median. With the lineage held
    out the interval is about the prediction that residuals of the stack shift.
    """

    error: pd.DataFrame
    level: pd.DataFrame


def write_held_out_errors(predictor: RoofcastPredictor, y: pd.DataFrame, path: Path = FILE) -> None:
    """Store the errors of a predictor that was just fitted to rows with the outcomes `y`."""
    columns = {}
    for i, (split, table) in enumerate(zip(SPLITS, (predictor.held_out_, predictor.stack_held_out_), strict=True)):
        for metric in (name for name in METRICS if name in predictor.error_distributions_):
            distribution = predictor.error_distributions_[metric]
            conformal = (distribution.lineage_conformal, distribution.conformal)[i]
            error = log_ratio(y[metric].to_numpy(dtype=float), table[metric].to_numpy())
            level = 2 * conformal.p_below(predictor.scores_[metric][i]) - 1
            columns[f"{split} error {metric}"] = pd.Series(error).round(N_ERROR_DIGIT)
            columns[f"{split} level {metric}"] = pd.Series(level).round(N_LEVEL_DIGIT)
    pd.DataFrame(columns).to_csv(path, index=False, compression={"method": "xz", "preset": 9})


def read_held_out_errors(path: Path = FILE) -> dict[str, HeldOutErrors]:
    """Return the stored errors by split."""
    table = pd.read_csv(path)
    return {
        split: HeldOutErrors(_select(table, f"{split} error "), _select(table, f"{split} level ")) for split in SPLITS
    }


def _select(table: pd.DataFrame, prefix: str) -> pd.DataFrame:
    return table.filter(like=prefix).rename(columns=lambda name: str(name).removeprefix(prefix))
