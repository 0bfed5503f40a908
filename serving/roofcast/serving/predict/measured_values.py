"""Measured values beside answers: of the same configuration, lengths and load, by whom, with what and when."""

from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.measurements.cells import Table, object_column
from roofcast.features.queries import Queries
from roofcast.training.explain.measured_points import MeasuredPoints
from roofcast.training.learner.errors.group_keys import GroupKeys

MEASURED_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")

_TOLD: Final = ("stack", "engine_version", "date")

MEASURED_NUMBERS: Final = tuple(f"observed_{name}" for name in MEASURED_METRICS)
MEASURED_TEXTS: Final = ("support", *(f"observed_{name}" for name in _TOLD))
MEASURED_COLUMNS: Final = ("support", *MEASURED_NUMBERS, *MEASURED_TEXTS[1:])
"""What an answer rests on, `Support`, and the newest measurement of the same; blank where there is none."""


def blank_columns(n_row: int) -> Table:
    """Return `MEASURED_COLUMNS` of rows without an answer."""
    return {
        name: np.full(n_row, np.nan) if name in MEASURED_NUMBERS else object_column(n_row, "")
        for name in MEASURED_COLUMNS
    }


def fill_measured(
    answers: Table, rows: npt.NDArray[np.intp], points: MeasuredPoints, queries: Queries, keys: GroupKeys
) -> None:
    """Fill `MEASURED_COLUMNS` of some rows, which have these queries and group keys."""
    match = points.match(queries, keys)
    answers["support"][rows] = match.support
    known = match.row >= 0
    if not known.any():
        return
    for name in (*MEASURED_METRICS, *_TOLD):
        answers[f"observed_{name}"][rows[known]] = points.rows[name].array.take(match.row[known]).to_numpy()
