"""Why a prediction is what it is: what its parts contribute, and which measurements tell most about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import FEATURE_NAMES
from roofcast.features.descriptors.config_hash import config_hashes
from roofcast.features.pipeline import METRICS
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.explain.importance import group_blocks, group_importance, shap_values
from roofcast.training.learner.derived_metrics import E2E, SOURCES, THROUGHPUT, source_shares
from roofcast.training.learner.group_keys import build_group_keys
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.learner.ratio_model import RatioPrediction

IndexArray = npt.NDArray[np.intp]

PARTS: Final = ("estimate", "typical_ratio", *group_blocks(FEATURE_NAMES), "effects", "references")
"""What a prediction is the sum of, in natural logarithms: the analytic estimate; the usual ratio over it; what each
physical group of columns moves that ratio by; what measurements of the like have in common; and what the reference
measurements add."""

ANCHOR_COLUMNS: Final = (
    "model", "accelerator", "n_accelerator", "engine", "engine_version", "weight_precision", "kv_precision",
    "n_input_token", "n_output_token", "load", "concurrency", "request_rate", "statistic", "campaign", "date",
)  # fmt: skip
"""What is kept of a measurement, besides `METRICS`."""

WORKLOAD: Final = ("n_input_token", "n_output_token", "concurrency", "request_rate")

ALIKE: Final = 0.1
"""Difference of two workloads, in natural logarithms, that is not worth a word."""


@dataclass(frozen=True, slots=True)
class TrainingPoints:
    """The measurements that a predictor's effects are conditioned on.

    Parameters
    ----------
    rows
        As measured: columns `ANCHOR_COLUMNS` and `METRICS`.
    keys
        What they share with questions, as of `roofcast.features.descriptors.config_hash`; rows as in `rows`.
    place
        By metric, the row of each anchor of its effects.
    """

    rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*ANCHOR_COLUMNS, *METRICS]))
    keys: pd.DataFrame = field(default_factory=pd.DataFrame)
    place: dict[str, IndexArray] = field(default_factory=dict)


def build_training_points(predictor: RoofcastPredictor, data: TrainingSet) -> TrainingPoints:
    """Return the anchors of a predictor that was fitted to these rows."""
    used: dict[str, IndexArray] = {}
    for metric, uncertainty in predictor.error_distributions_.items():
        error = log_ratio(data.y[metric].to_numpy(dtype=float), predictor.held_out_[metric].to_numpy())
        used[metric] = np.flatnonzero(~np.isnan(error))[uncertainty.training_row]
    kept = np.unique(np.concatenate([*used.values(), np.empty(0, dtype=np.intp)]))
    rows = data.measurements.iloc[kept][list(ANCHOR_COLUMNS)].join(data.y.iloc[kept])
    return TrainingPoints(
        rows.reset_index(drop=True),
        pd.DataFrame(config_hashes(data.X.iloc[kept])),
        {metric: np.searchsorted(kept, places_of) for metric, places_of in used.items()},
    )


def contributions(
    predictor: RoofcastPredictor,
    X: pd.DataFrame,
    references: CalibrationPoints | None = None,
    metrics: Collection[str] | None = None,
) -> dict[str, pd.DataFrame]:
    """Return what each of `PARTS` adds to the logarithm of each prediction, by metric.

    Those of the columns are exact Shapley values of the trees, summed by group; see
    `importance.shap_values`. What keeps a percentile from falling below a lower one counts as the
    workload's, to which the percentile belongs.

    Parameters
    ----------
    predictor
        Fitted.
    X : shape (n_question, n_descriptor)
    references
        Given to the prediction.
    metrics
        Wanted ones; None for all.

    Returns
    -------
    shapes (n_question, n_part); a row sums to the logarithm of the prediction in its SI unit
    """
    names = predictor.select_metrics(metrics)
    parts = predictor.predict_ratio(X, names)
    raw, estimates = parts.value, parts.estimates
    plain = predictor.predict_distribution(X, metrics=names).median
    shifted = plain
    if references is not None:
        shifted = predictor.predict_distribution(X, references, metrics=names).median
    tables = {metric: _of_trees(predictor, metric, parts.features) for metric in raw}
    tables |= _led(tables, parts, X)
    if THROUGHPUT in tables:
        tables[THROUGHPUT] = tables[THROUGHPUT].mask(pd.Series(parts.loads.is_open_loop, X.index), 0.0, axis=0)
    for metric, table in tables.items():
        table["estimate"] = np.log(estimates[metric])
        table["workload"] += np.log(raw[metric]) - table.sum(axis=1)
        table["effects"] = np.log(plain[metric] / raw[metric])
        table["references"] = np.log(shifted[metric] / plain[metric])
        tables[metric] = table[list(PARTS)]
    return tables


def _of_trees(predictor: RoofcastPredictor, metric: str, features: pd.DataFrame) -> pd.DataFrame:
    values, usual = shap_values(predictor.regressors_[metric], features)
    return group_importance(values).assign(typical_ratio=usual)


def _led(tables: Mapping[str, pd.DataFrame], parts: RatioPrediction, X: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what the parts of TTFT and TPOT add to the metrics that follow from these, where they do."""
    if not set(SOURCES) <= tables.keys():
        return {}
    correction = {m: parts.value[m] / parts.estimates[m] for m in SOURCES}
    share = source_shares(correction, parts.estimate, parts.loads)
    whole = sum(tables[metric].mul(share[metric], axis=0) for metric in SOURCES)
    return {
        metric: tables[metric].mask(pd.Series(rows, X.index), whole if metric == E2E else -whole, axis=0)
        for metric, rows in parts.loads.is_derived.items()
        if metric in tables
    }


def nearest_measurements(
    predictor: RoofcastPredictor, anchors: TrainingPoints, X: pd.DataFrame, metric: str, n: int = 3
) -> list[pd.DataFrame]:
    """Return, for each question, the measurements that tell most about one metric, the most telling first.

    Of each configuration there is one: that of the workload most like the question's.

    Parameters
    ----------
    predictor, anchors
        Of one bundle.
    X : shape (n_question, n_descriptor)
    metric
        One that is predicted.
    n
        Rows of each answer at most.

    Returns
    -------
    Columns `ANCHOR_COLUMNS`; `measured`; `correlation`, of the errors of prediction there and at the question; and
    `differs`, what is not the same in both: parts of `roofcast.features.descriptors.config_hash`, and the workload
    """
    if metric not in anchors.place:
        return [pd.DataFrame(columns=[*ANCHOR_COLUMNS, "measured", "correlation", "differs"])] * len(X)
    effects = predictor.error_distributions_[metric].effects
    found, correlation = effects.nearest(build_group_keys(X), len(anchors.place[metric]))
    asked = pd.DataFrame(config_hashes(X))
    workload = X[[f"workload.{name}" for name in (*WORKLOAD[:3], "request_rate_per_s")]].to_numpy(dtype=float)
    names = np.array([*anchors.keys.columns, *WORKLOAD], dtype=object)
    tables = []
    for i, order in enumerate(found):
        rows = anchors.place[metric][order]
        distance = np.abs(np.log(anchors.rows[list(WORKLOAD)].to_numpy(dtype=float)[rows] / workload[i]))
        best = np.lexsort((np.nansum(distance, axis=1), -correlation[i].round(6)))
        is_first = ~anchors.keys.iloc[rows[best]].duplicated().to_numpy()
        best = best[is_first][:n]
        is_other = (anchors.keys.iloc[rows[best]] != asked.iloc[i]).to_numpy()
        differs = [list(names[row]) for row in np.hstack([is_other, distance[best] > ALIKE])]
        near = anchors.rows.iloc[rows[best]]
        tables.append(
            near[list(ANCHOR_COLUMNS)].assign(
                measured=near[metric], correlation=correlation[i][best], differs=pd.Series(differs, near.index)
            )
        )
    return tables
