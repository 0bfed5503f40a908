"""The learner of inference, as the lifecycle uses it: fit of a bundle, its held-out errors, and what a run logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.validation import row_ids
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import is_uploaded, stack_owners
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.dataset.training_set import TrainingSet, build_training_set
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.explain.contributions import build_measured_points
from roofcast.training.learner.out_of_memory import fit_out_of_memory
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import Progress
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.gate.budget import query_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def join_stored_rows(shipped: pd.DataFrame, own: pd.DataFrame, uploaders: pd.Series, catalog: Catalog) -> TrainingSet:
    """Return the training set of the shipped rows and those of the store, each distinct row once.

    `own` and `uploaders`: shape (n_own,): rows of the store, and the API key that stored each; blank for the
    operator's.
    """
    is_new = ~pd.Series(row_ids(own), dtype=object).isin(row_ids(shipped)).to_numpy(dtype=bool)
    own, uploaders = own[is_new], uploaders[is_new]
    rows = pd.concat([shipped, own], ignore_index=True) if len(own) else shipped.reset_index(drop=True)
    keys = pd.concat([pd.Series("", index=shipped.index, dtype=object), uploaders], ignore_index=True)
    return build_training_set(rows, catalog.models, catalog.accelerators, n_own=len(own), uploaders=keys)


def fit_bundle(
    data: TrainingSet, config: TrainingConfig | None = None, progress: Progress | None = None
) -> ModelBundle:
    """Return a bundle fitted to the training set.

    Raises `InputError` if the rows of no API key span fewer than two lineages, so that none can be held out.
    """
    if data.groups[~is_uploaded(data.stacks)].nunique() < 2:
        raise InputError("measurements", "must span two LLM lineages at least, got one; import another campaign")
    predictor = RoofcastPredictor(config or TrainingConfig())
    predictor.fit(data.X, data.y, data.groups, progress, stacks=data.stacks)
    folds = score_folds(data, predictor.held_out_)
    scores = folds.groupby("metric")[["mape", "median_ape", "within_25"]].mean()
    return ModelBundle(
        predictor=predictor,
        fingerprint=ModelBundle.layout(),
        data_digest=data.digest,
        row_ids=tuple(data.ids),
        engines=tuple(sorted(set(data.measurements["engine"]) - {""})),
        accelerators=tuple(sorted(set(data.measurements["accelerator"]))),
        scores={str(m): {str(k): float(v) for k, v in row.items()} for m, row in scores.iterrows()},
        anchors=build_measured_points(predictor, data),
        feasibility=fit_out_of_memory(data.attempts, predictor.coefficients_) if data.attempts else None,
    )


def score_folds(data: TrainingSet, held_out: pd.DataFrame, groups: pd.Series | None = None) -> pd.DataFrame:
    """Return the held-out errors of each group and metric.

    `groups`: shape (n_row,): lineages by default, of the rows of no API key, so that uploads do not move published
    errors. Rows without a prediction are left out of other groups.
    """
    rows: list[dict[str, Any]] = []
    is_public = ~is_uploaded(data.stacks).to_numpy()
    of_lineages, groups = groups is None, data.groups if groups is None else groups
    for group in groups.unique():
        inside = (groups == group).to_numpy()
        for metric in held_out.columns:
            known = inside & (data.y[metric] > 0).to_numpy()
            known &= is_public if of_lineages else held_out[metric].notna().to_numpy()
            if known.any():
                errors = error_summary(data.y[metric][known], held_out[metric][known])
                rows.append({"group": group, "metric": metric, "n_row": int(known.sum()), **errors})
    return pd.DataFrame(rows)


def predict_queries(data: TrainingSet) -> tuple[Callable[[ModelBundle], object], int]:
    """Return what predicts some of the rows by a bundle, and their number: see `over_budget`."""
    queries = data.X.iloc[query_rows(len(data.X))]
    return lambda bundle: bundle.predictor.predict_distribution(queries), len(queries)


def score_held_out(predictor: RoofcastPredictor, data: TrainingSet) -> pd.DataFrame:
    """Return the errors of `score_folds` of lineages, and of owners of stacks: column `held_out`."""
    folds = score_folds(data, predictor.held_out_)
    stacks = score_folds(data, predictor.stack_held_out_, stack_owners(data.stacks))
    return pd.concat([folds.assign(held_out="lineage"), stacks.assign(held_out="owner")], ignore_index=True)


def run_parameters(predictor: RoofcastPredictor) -> dict[str, Any]:
    """Return the settings of a fit."""
    return (predictor.config or TrainingConfig()).model_dump()


def run_figures(predictor: RoofcastPredictor, data: TrainingSet) -> Iterator[tuple[str, Figure]]:
    """Yield plots of the held-out predictions and of the coefficients, by name."""
    from roofcast.training.evaluation.plots import (  # noqa: PLC0415  (no server needs plots)
        plot_coefficients,
        plot_coverage,
        plot_predicted,
    )

    errors = {}
    for metric in predictor.metrics_:
        measured, predicted = data.y[metric].to_numpy(dtype=float), predictor.held_out_[metric].to_numpy()
        yield metric, plot_predicted(measured, predicted, data.groups, metric)
        errors[metric] = np.abs(log_ratio(measured, predicted))
    yield "coverage", plot_coverage(errors, data.groups)
    yield "coefficients", plot_coefficients(predictor.coefficients_)
