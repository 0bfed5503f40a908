"""Which measurements tell most about a prediction, for a few questions at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.predict.json_rows import rows_from_columns
from roofcast.serving.predict.row_parser import object_column
from roofcast.training.explain.contributions import WORKLOAD, TrainingPoints
from roofcast.training.learner.group_keys import build_group_keys
from roofcast.training.learner.predictor import RoofcastPredictor

LEAST_CORRELATION: Final = 0.1
"""Below it the error of a measurement says next to nothing about the question's."""

SHOWN: Final = (
    "model", "accelerator", "n_accelerator", "engine", "weight_precision", "n_input_token", "n_output_token",
    "concurrency", "request_rate", "statistic", "campaign", "date",
)  # fmt: skip


def nearest(
    predictor: RoofcastPredictor, kept: TrainingPoints, X: pd.DataFrame, metric: str, n: int
) -> list[tuple[dict[str, Any], ...]]:
    """Return of each question the measurements whose errors go most with its own, at most `n`, as JSON values.

    There are none where no measurement goes with it by `LEAST_CORRELATION` or more.

    Among those that tell as much, the nearest workload comes first. `explain.contributions` says it at
    length, and slower.

    Parameters
    ----------
    predictor, kept
        Of one bundle; without reference measurements, which are none of its own.
    X : shape (n_question, n_descriptor)
    metric
        What was measured.
    n
        Of each question.
    """
    place = kept.place.get(metric)
    if place is None or not len(place) or X.empty:
        return [()] * len(X)
    order, correlation = predictor.error_distributions_[metric].effects.nearest(build_group_keys(X), len(place))
    asked = X[[f"workload.{name}" for name in (*WORKLOAD[:3], "request_rate_per_s")]].to_numpy(dtype=float)
    measured = np.stack([kept.rows[name].to_numpy(dtype=float)[place] for name in WORKLOAD], axis=1)
    picked = []
    for i, anchors in enumerate(order):
        telling = correlation[i].round(6)
        alike = np.flatnonzero(telling >= max(telling[:n][-1], LEAST_CORRELATION))
        distance = np.nansum(np.abs(np.log(measured[anchors[alike]] / asked[i])), axis=1)
        best = alike[np.lexsort((distance, -telling[alike]))[:n]]
        picked.append(best[correlation[i][best] >= LEAST_CORRELATION])
    chosen = np.concatenate([order[i][best] for i, best in enumerate(picked)])
    rows, back = np.unique(place[chosen], return_inverse=True)
    shown = rows_from_columns({
        **{name: _some(kept.rows[name], rows) for name in SHOWN},
        "metric": object_column(len(rows), metric),
        "measured": _some(kept.rows[metric], rows),
    })  # fmt: skip
    every = iter(back.tolist())
    return [
        tuple({**shown[next(every)], "correlation": float(correlation[i][k])} for k in best)
        for i, best in enumerate(picked)
    ]


def _some(column: pd.Series, rows: npt.NDArray[np.intp]) -> ColumnArray:
    return np.asarray(column.array.take(rows).to_numpy())
