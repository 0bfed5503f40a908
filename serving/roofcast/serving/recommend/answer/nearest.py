"""Nearest measurements of predictions: those whose errors correlate most with theirs."""

from typing import Any, Final

import numpy as np

from roofcast.data.measurements.cells import object_column
from roofcast.features.queries import FloatArray
from roofcast.serving.predict.question_rows import rows_from_columns
from roofcast.training.explain.contributions import WORKLOAD
from roofcast.training.explain.measured_points import MeasuredPoints
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.predictor import RoofcastPredictor

LEAST_CORRELATION: Final = 0.1
"""Correlation of errors below which a measurement is not informative."""

SHOWN: Final = (
    "model", "accelerator", "n_accelerator", "engine", "weight_precision", "n_input_token", "n_output_token",
    "concurrency", "request_rate", "statistic", "campaign", "date",
)  # fmt: skip


def nearest(
    predictor: RoofcastPredictor, points: MeasuredPoints, d: dict[str, FloatArray], metric: str, n: int
) -> list[tuple[dict[str, Any], ...]]:
    """Return up to `n` measurements of each query whose errors correlate most with its own, as JSON values.

    Among equal correlations the nearest workload comes first. Measurements below `LEAST_CORRELATION` are left out.

    `predictor` and `points`: of one bundle, not conditioned on reference measurements. `metric`: measured
    metric.
    """
    n_query, indices = len(d["config.engine"]), points.place.get(metric)
    if indices is None or not len(indices) or not n_query:
        return [()] * n_query
    effects = predictor.error_distributions_[metric].effects
    correlations = effects.correlation(build_group_keys(d), points.group_keys.take(indices))
    workload = np.stack([d[f"workload.{name}"] for name in (*WORKLOAD[:3], "request_rate_per_s")], axis=1)
    measured = np.stack([points.rows[name].to_numpy(dtype=float)[indices] for name in WORKLOAD], axis=1)
    best_of_row = []
    for own, correlation in zip(workload, correlations, strict=True):
        rounded = correlation.round(6)
        nth = np.sort(rounded)[-n:][0]
        candidates = np.flatnonzero((rounded >= nth) & (correlation >= LEAST_CORRELATION))
        distance = np.nansum(np.abs(np.log(measured[candidates] / own)), axis=1)
        order = np.lexsort((-correlation[candidates], distance, -rounded[candidates]))
        best_of_row.append(candidates[order[:n]])
    selected = np.concatenate(best_of_row)
    rows, back = np.unique(indices[selected], return_inverse=True)
    values = {name: points.rows[name].array.take(rows).to_numpy() for name in (*SHOWN, metric)}
    columns = {name: np.asarray(values[name]) for name in SHOWN}
    columns |= {"metric": object_column(len(rows), metric), "measured": np.asarray(values[metric])}
    json_rows = rows_from_columns(columns)
    row_of_point = iter(back.tolist())
    return [
        tuple({**json_rows[next(row_of_point)], "correlation": float(correlation[k])} for k in best)
        for best, correlation in zip(best_of_row, correlations, strict=True)
    ]
