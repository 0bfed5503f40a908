"""The training set: measurements joined with their specs, ready for the predictor."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS
from roofcast.data.errors import InputError
from roofcast.data.measurements.validation import row_ids
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.dataset.review import review
from roofcast.training.dataset.targets import outcomes
from roofcast.training.learner.out_of_memory import Attempts, build_attempts

TRAINED_ON: Final = CAMPAIGNS
"""Shipped campaigns that the predictor is fitted to: all."""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Rows to train on; tables share one index.

    Parameters
    ----------
    measurements
        The rows as measured.
    X : shape (n_row, n_descriptor)
    y : shape (n_row, n_metric)
    groups : shape (n_row,)
        Fold group of each row's LLM: lineages that share an architecture's shape share a group.
    stacks : shape (n_row,)
        Shipped campaign that each row is of; empty for one's own, whose stack will be asked about.
    ids : shape (n_row,)
        Content hash of each row.
    set_aside
        Measurements that are not learnt from, counted by the rule that says so.
    attempts
        Deployments that ran and that did not.
    """

    measurements: pd.DataFrame
    X: pd.DataFrame
    y: pd.DataFrame
    groups: pd.Series
    stacks: pd.Series
    ids: pd.Series
    set_aside: dict[str, int] = field(default_factory=dict)
    attempts: Attempts | None = None

    @property
    def digest(self) -> str:
        """Fingerprint of the rows, whatever their order."""
        return hashlib.blake2b("".join(sorted(self.ids)).encode(), digest_size=16).hexdigest()

    def take(self, mask: npt.NDArray[np.bool_]) -> TrainingSet:
        """Return the rows where `mask` is true."""
        return TrainingSet(
            self.measurements[mask], self.X[mask], self.y[mask], self.groups[mask], self.stacks[mask], self.ids[mask]
        )


def build_training_set(
    measurements: pd.DataFrame,
    models: Mapping[str, ModelSpec],
    accelerators: Mapping[str, AcceleratorSpec],
    *,
    n_own: int = 0,
) -> TrainingSet:
    """Return the training set of the measurements that `roofcast.training.dataset.review.review` does not set aside.

    Parameters
    ----------
    measurements
        With an index from 0 on.
    models, accelerators
        What is known by name.
    n_own
        How many of the last rows were measured on one's own stack, whatever they call their campaign.

    Raises
    ------
    InputError
        If no row remains.
    """
    set_aside = review(measurements, models, accelerators)
    rows = measurements.drop(index=set_aside.index)
    is_own = rows.index >= len(measurements) - n_own
    rows = rows.reset_index(drop=True)
    if rows.empty:
        rules = ", ".join(set_aside["rule"].unique())
        raise InputError("measurements", f"none can be learnt from ({rules or 'there are none'}); import some first")
    groups = rows["model"].map({name: spec.fold_group for name, spec in models.items()}).rename("group")
    stacks = rows["campaign"].mask(is_own, "").rename("stack")
    ids = pd.Series(row_ids(rows), index=rows.index, name="id")
    counts = {str(rule): int(n) for rule, n in set_aside["rule"].value_counts().items()}
    attempts = build_attempts(rows, measurements[measurements["status"] == "out_of_memory"], models, accelerators)
    X, y = describe(rows, models, accelerators), outcomes(rows)
    return TrainingSet(rows, X, y, groups, stacks, ids, counts, attempts)
