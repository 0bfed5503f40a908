"""Contributions to a prediction, and the measurements that are most correlated with it."""

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import pandas as pd

from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.descriptors.config_hash import config_hashes
from roofcast.features.queries import IndexArray
from roofcast.training.dataset.stacks import is_uploaded
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.explain.importance import group_blocks, group_importance, shap_values
from roofcast.training.explain.measured_points import DESCRIPTORS, POINT_COLUMNS, TOLERANCE, MeasuredPoints
from roofcast.training.learner.derived_metrics import E2E, SOURCES, THROUGHPUT, source_shares
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.learner.ratio_model import RatioPrediction

PARTS: Final = ("estimate", "typical_ratio", *group_blocks(FEATURE_NAMES), "effects", "references")
"""Additive terms of a prediction in natural logarithms: the analytic estimate; the typical ratio over it; the SHAP
values of each physical group of columns; the random effects; and the reference measurements."""

WORKLOAD: Final = ("n_input_token", "n_output_token", "concurrency", "request_rate")


def build_measured_points(predictor: RoofcastPredictor, data: TrainingSet) -> MeasuredPoints:
    """Return the measurements of `data`, to which the predictor was fitted, without those of API keys."""
    is_public = ~is_uploaded(data.stacks).to_numpy()
    rows = np.flatnonzero(is_public)
    place: dict[str, IndexArray] = {}
    for metric, uncertainty in predictor.error_distributions_.items():
        error = log_ratio(data.y[metric].to_numpy(dtype=float), predictor.held_out_[metric].to_numpy())
        used = np.flatnonzero(~np.isnan(error) & is_public)[uncertainty.training_row]
        place[metric] = np.searchsorted(rows, used)
    X, columns = data.X.iloc[rows], [name for name in POINT_COLUMNS if name != "stack"]
    told = data.measurements.iloc[rows][columns].assign(stack=data.stacks.iloc[rows])[[*POINT_COLUMNS]]
    return MeasuredPoints(
        told.join(data.y.iloc[rows]).reset_index(drop=True),
        pd.DataFrame(config_hashes(X)),
        X[[*DESCRIPTORS]].reset_index(drop=True),
        place,
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
    predictor: RoofcastPredictor, points: MeasuredPoints, X: pd.DataFrame, metric: str, n: int = 3
) -> list[pd.DataFrame]:
    """Return, for each query, the measurements most correlated with its prediction of one metric, in that order.

    There is one measurement per configuration: that with the most similar workload.

    `X`: shape (n_row, n_descriptor).

    Returns
    -------
    Columns `POINT_COLUMNS`; `measured`; `correlation` of the prediction errors there and at the query; and
    `differs`, the names of the hashes of `roofcast.features.descriptors.config_hash` and of the workload columns that
    are not equal
    """
    if metric not in points.place:
        return [pd.DataFrame(columns=[*POINT_COLUMNS, "measured", "correlation", "differs"])] * len(X)
    effects = predictor.error_distributions_[metric].effects
    correlations = effects.correlation(build_group_keys(X), points.group_keys.take(points.place[metric]))
    query_hashes = pd.DataFrame(config_hashes(X))
    workload = X[[f"workload.{name}" for name in (*WORKLOAD[:3], "request_rate_per_s")]].to_numpy(dtype=float)
    names = np.array([*points.keys.columns, *WORKLOAD], dtype=object)
    tables = []
    for i, unordered in enumerate(correlations):
        order = np.argsort(-unordered, kind="stable")[: np.count_nonzero(unordered)]
        rows, correlation = points.place[metric][order], unordered[order]
        distance = np.abs(np.log(points.rows[list(WORKLOAD)].to_numpy(dtype=float)[rows] / workload[i]))
        best = np.lexsort((np.nansum(distance, axis=1), -correlation.round(6)))
        is_first = ~points.keys.iloc[rows[best]].duplicated().to_numpy()
        best = best[is_first][:n]
        is_other = (points.keys.iloc[rows[best]] != query_hashes.iloc[i]).to_numpy()
        differs = [list(names[row]) for row in np.hstack([is_other, distance[best] > TOLERANCE])]
        near = points.rows.iloc[rows[best]]
        tables.append(
            near[list(POINT_COLUMNS)].assign(
                measured=near[metric], correlation=correlation[best], differs=pd.Series(differs, near.index)
            )
        )
    return tables
