"""Training set of the predictor: measurements joined with their specs."""

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
from roofcast.data.memory_campaigns import load_starts
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.dataset.review import review
from roofcast.training.dataset.server_starts import tried_starts
from roofcast.training.dataset.stacks import is_uploaded, name_by_uploader, name_stacks
from roofcast.training.dataset.targets import outcomes
from roofcast.training.learner.out_of_memory import Attempts, build_attempts

TRAINED_ON: Final = CAMPAIGNS
"""Shipped campaigns used for training."""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Training rows; the tables share one index.

    - `X`: shape (n_row, n_descriptor)
    - `y`: shape (n_row, n_metric)
    - `groups`: shape (n_row,). Fold group of each row's LLM; lineages with the same architecture shape share a group.
    - `stacks`: shape (n_row,). Stack that measured each row; empty for own measurements, whose stack is that of the
      queries.
    - `attempts`: Deployments that ran and deployments that ran out of memory.
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
        """Digest of the rows, independent of their order."""
        return hashlib.blake2b("".join(sorted(self.ids)).encode(), digest_size=16).hexdigest()

    def take(self, mask: npt.NDArray[np.bool_]) -> TrainingSet:
        """Return the rows where `mask` is true, without what the whole set alone has, `set_aside` and `attempts`."""
        return TrainingSet(
            self.measurements[mask], self.X[mask], self.y[mask], self.groups[mask], self.stacks[mask], self.ids[mask]
        )


def build_training_set(
    measurements: pd.DataFrame,
    models: Mapping[str, ModelSpec],
    accelerators: Mapping[str, AcceleratorSpec],
    *,
    n_own: int = 0,
    uploaders: pd.Series | None = None,
) -> TrainingSet:
    """Return the training set of the measurements that `roofcast.training.dataset.review.review` accepts.

    Raises `InputError` if no row is accepted.

    - `measurements`: With a range index.
    - `n_own`: Number of last rows that were measured on the user's own stack, whatever their campaign.
    - `uploaders`: shape (n_row,). API key that stored each row, blank for the others; None if none did. Its campaigns
      and stacks belong to the key, whatever their names, and it neither reports failures nor removes rows of others.
    """
    every_id = pd.Series(row_ids(measurements), index=measurements.index, name="id")
    if uploaders is not None:
        measurements = name_by_uploader(measurements, uploaders)
    set_aside = review(measurements, models, accelerators)
    rows = measurements.drop(index=set_aside.index)
    ids = every_id[rows.index].reset_index(drop=True)
    is_own = (rows.index >= len(measurements) - n_own) & ~is_uploaded(rows["stack"]).to_numpy()
    rows = rows.reset_index(drop=True)
    if rows.empty:
        rules = ", ".join(set_aside["rule"].unique())
        raise InputError(
            "measurements", f"none can be used for training ({rules or 'there are none'}); import measurements first"
        )
    groups = rows["model"].map({name: spec.fold_group for name, spec in models.items()}).rename("group")
    stacks = name_stacks(rows).mask(is_own, "")
    counts = {str(rule): int(n) for rule, n in set_aside["rule"].value_counts().items()}
    is_failed = (measurements["status"] == "out_of_memory") & ~is_uploaded(measurements["stack"])
    sound, failed = rows[~is_uploaded(rows["stack"])], measurements[is_failed]
    attempts = build_attempts(sound, failed, models, accelerators, tried_starts(load_starts()))
    X, y = describe(rows, models, accelerators), outcomes(rows)
    return TrainingSet(rows, X, y, groups, stacks, ids, counts, attempts)
