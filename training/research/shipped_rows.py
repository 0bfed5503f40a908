"""Rows that the shipped predictor learnt, with their descriptors, features and estimates, for analyses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.validation import row_ids
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.pipeline import build_features
from roofcast.training.dataset.stacks import name_stacks
from roofcast.training.dataset.targets import outcomes
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.shipped import load_shipped


@dataclass(frozen=True, slots=True)
class ShippedRows:
    """The shipped bundle and its training rows; the tables share one index.

    - `measurements`, `X`, `y`: As in `roofcast.training.dataset.training_set.TrainingSet`.
    - `groups`, `stacks`: shape (n_row,). Fold group of each row's LLM, and its stack.
    - `features`: shape (n_row, n_feature). Columns of the learner.
    - `estimates`: shape (n_row, n_metric). Analytic estimates at the bundle's coefficients.
    """

    bundle: ModelBundle
    measurements: pd.DataFrame
    X: pd.DataFrame
    y: pd.DataFrame
    groups: pd.Series
    stacks: pd.Series
    features: pd.DataFrame
    estimates: pd.DataFrame


def load_shipped_rows() -> ShippedRows:
    """Return the shipped bundle and the rows that it learnt from, found by their content hashes."""
    bundle, catalog = load_shipped(INFERENCE_TARGET), load_catalog()
    rows = load_campaigns(TRAINED_ON)
    is_learnt = pd.Series(row_ids(rows), rows.index).isin(bundle.row_ids)
    rows = rows[is_learnt].reset_index(drop=True)
    X = describe(rows, catalog.models, catalog.accelerators)
    features, estimates, _ = build_features(X, bundle.predictor.coefficients_)
    groups = rows["model"].map({name: spec.fold_group for name, spec in catalog.models.items()})
    estimated = pd.DataFrame(estimates, index=X.index)
    return ShippedRows(bundle, rows, X, outcomes(rows), groups, name_stacks(rows), features, estimated)


def sample_evenly(rows: pd.DataFrame, by: Sequence[str], n: int, seed: int = 0) -> npt.NDArray[Any]:
    """Return the index of at most `n` random rows of each combination of values, in order."""
    shuffled = rows.sample(frac=1, random_state=seed)
    return shuffled.groupby(list(by), sort=False).head(n).index.sort_values().to_numpy()
