"""Contributions to a prediction, and the measurements that are most correlated with it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.descriptors.config_hash import config_hashes
from roofcast.features.pipeline import METRICS
from roofcast.features.queries import IndexArray
from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.explain.importance import group_blocks, group_importance, shap_values
from roofcast.training.learner.derived_metrics import E2E, SOURCES, THROUGHPUT, source_shares
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.learner.ratio_model import RatioPrediction

PARTS: Final = ("estimate", "typical_ratio", *group_blocks(FEATURE_NAMES), "effects", "references")
"""Additive terms of a prediction in natural logarithms: the analytic estimate; the typical ratio over it; the SHAP
values of each physical group of columns; the random effects; and the reference measurements."""

TRAINING_POINT_COLUMNS: Final = (
    "model", "accelerator", "n_accelerator", "engine", "engine_version", "weight_precision", "kv_precision",
    "n_input_token", "n_output_token", "load", "concurrency", "request_rate", "statistic", "campaign", "date",
)  # fmt: skip
"""Stored columns of a training point, besides `METRICS`."""

WORKLOAD: Final = ("n_input_token", "n_output_token", "concurrency", "request_rate")

WORKLOAD_TOLERANCE: Final = 0.1
"""Difference of two workloads, in natural logarithms, below which they count as equal."""


@dataclass(frozen=True, slots=True)
class TrainingPoints:
    """Measurements that the random effects of a predictor are conditioned on.

    - `rows`: Measurements: columns `TRAINING_POINT_COLUMNS` and `METRICS`.
    - `keys`: Hashes of `roofcast.features.descriptors.config_hash`, aligned with `rows`.
    - `place`: Index in `rows` of each training point that measured the metric, as `ErrorDistribution.training_row`.
    """

    rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*TRAINING_POINT_COLUMNS, *METRICS]))
    keys: pd.DataFrame = field(default_factory=pd.DataFrame)
    place: dict[str, IndexArray] = field(default_factory=dict)


def build_training_points(predictor: RoofcastPredictor, data: TrainingSet) -> TrainingPoints:
    """Return the training points of a predictor that was fitted to `data`."""
    used: dict[str, IndexArray] = {}
    for metric, uncertainty in predictor.error_distributions_.items():
        error = log_ratio(data.y[metric].to_numpy(dtype=float), predictor.held_out_[metric].to_numpy())
        is_known = ~np.isnan(error) & ~is_uploaded(data.stacks).to_numpy()
        used[metric] = np.flatnonzero(is_known)[uncertainty.training_row]
    used_rows = np.unique(np.concatenate([*used.values(), np.empty(0, dtype=np.intp)]))
    rows = data.measurements.iloc[used_rows][list(TRAINING_POINT_COLUMNS)].join(data.y.iloc[used_rows])
    return TrainingPoints(
        rows.reset_index(drop=True),
        pd.DataFrame(config_hashes(data.X.iloc[used_rows])),
        {metric: np.searchsorted(used_rows, indices) for metric, indices in used.items()},
    )


def contributions(
    predictor: RoofcastPredictor,
    X: pd.DataFrame,
    references: CalibrationPoints | None = None,
    metrics: Collection[str] | None = None,
) -> dict[str, pd.DataFrame]:
    """Return the contribution of each of `PARTS` to the logarithm of each prediction, by metric.

    Contributions of columns are exact SHAP values of the trees summed by group, see `importance.shap_values`. The
    correction that keeps percentiles monotone counts as part of the workload.

    `X`: shape (n_row, n_descriptor). `metrics`: None for all.

    Returns
    -------
    shapes (n_row, n_part); a row sums to the logarithm of the prediction in its SI unit
    """
    names = predictor.select_metrics(metrics)
    parts = predictor.predict_ratio(X, names)
    raw, estimates = parts.value, parts.estimates
    plain = predictor.predict_distribution(X, metrics=names).median
    shifted = plain
    if references is not None:
        shifted = predictor.predict_distribution(X, references, metrics=names).median
    tables = {metric: _tree_contributions(predictor, metric, parts, X) for metric in raw}
    tables |= _derived_contributions(tables, parts, X)
    if THROUGHPUT in tables:
        tables[THROUGHPUT] = tables[THROUGHPUT].mask(pd.Series(parts.loads.is_open_loop, X.index), 0.0, axis=0)
    for metric, table in tables.items():
        table["estimate"] = np.log(estimates[metric])
        table["workload"] += np.log(raw[metric]) - table.sum(axis=1)
        table["effects"] = np.log(plain[metric] / raw[metric])
        table["references"] = np.log(shifted[metric] / plain[metric])
        tables[metric] = table[list(PARTS)]
    return tables


def _tree_contributions(
    predictor: RoofcastPredictor, metric: str, parts: RatioPrediction, X: pd.DataFrame
) -> pd.DataFrame:
    features = pd.DataFrame(parts.features, X.index, [*FEATURE_NAMES])
    values, typical = shap_values(predictor.regressors_[metric], features)
    table = group_importance(values).assign(typical_ratio=typical)
    return table.mul(predictor.correction_weight(metric, parts.keys, X["config.engine"].to_numpy()), axis=0)


def _derived_contributions(
    tables: Mapping[str, pd.DataFrame], parts: RatioPrediction, X: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    if not set(SOURCES) <= tables.keys():
        return {}
    correction = {m: parts.value[m] / parts.estimates[m] for m in SOURCES}
    share = source_shares(correction, parts.estimate, parts.loads)
    total = sum(tables[metric].mul(share[metric], axis=0) for metric in SOURCES)
    return {
        metric: tables[metric].mask(pd.Series(rows, X.index), total if metric == E2E else -total, axis=0)
        for metric, rows in parts.loads.is_derived.items()
        if metric in tables
    }


def nearest_measurements(
    predictor: RoofcastPredictor, training_points: TrainingPoints, X: pd.DataFrame, metric: str, n: int = 3
) -> list[pd.DataFrame]:
    """Return, for each query, the measurements most correlated with its prediction of one metric, in that order.

    There is one measurement per configuration: that with the most similar workload.

    `X`: shape (n_row, n_descriptor).

    Returns
    -------
    Columns `TRAINING_POINT_COLUMNS`; `measured`; `correlation` of the prediction errors there and at the query; and
    `differs`, the names of the hashes of `roofcast.features.descriptors.config_hash` and of the workload columns that
    are not equal
    """
    if metric not in training_points.place:
        return [pd.DataFrame(columns=[*TRAINING_POINT_COLUMNS, "measured", "correlation", "differs"])] * len(X)
    correlations = predictor.error_distributions_[metric].correlation(build_group_keys(X))
    query_hashes = pd.DataFrame(config_hashes(X))
    workload = X[[f"workload.{name}" for name in (*WORKLOAD[:3], "request_rate_per_s")]].to_numpy(dtype=float)
    names = np.array([*training_points.keys.columns, *WORKLOAD], dtype=object)
    tables = []
    for i, unordered in enumerate(correlations):
        order = np.argsort(-unordered, kind="stable")
        rows, correlation = training_points.place[metric][order], unordered[order]
        distance = np.abs(np.log(training_points.rows[list(WORKLOAD)].to_numpy(dtype=float)[rows] / workload[i]))
        best = np.lexsort((np.nansum(distance, axis=1), -correlation.round(6)))
        is_first = ~training_points.keys.iloc[rows[best]].duplicated().to_numpy()
        best = best[is_first][:n]
        is_other = (training_points.keys.iloc[rows[best]] != query_hashes.iloc[i]).to_numpy()
        differs = [list(names[row]) for row in np.hstack([is_other, distance[best] > WORKLOAD_TOLERANCE])]
        near = training_points.rows.iloc[rows[best]]
        tables.append(
            near[list(TRAINING_POINT_COLUMNS)].assign(
                measured=near[metric], correlation=correlation[best], differs=pd.Series(differs, near.index)
            )
        )
    return tables
