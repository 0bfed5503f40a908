"""The training set: measurements joined with their specs, ready for the predictor."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.measurements import row_ids
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.descriptors import describe
from roofcast.training.targets import outcomes


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
    ids : shape (n_row,)
        Content hash of each row.
    """

    measurements: pd.DataFrame
    X: pd.DataFrame
    y: pd.DataFrame
    groups: pd.Series
    ids: pd.Series

    @property
    def digest(self) -> str:
        """Fingerprint of the rows, whatever their order."""
        return hashlib.blake2b("".join(sorted(self.ids)).encode(), digest_size=16).hexdigest()

    def take(self, mask: npt.NDArray[np.bool_]) -> TrainingSet:
        """Return the rows where `mask` is true."""
        return TrainingSet(self.measurements[mask], self.X[mask], self.y[mask], self.groups[mask], self.ids[mask])


def build_training_set(
    measurements: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> TrainingSet:
    """Return the training set of the measurements that ran and whose model and accelerator are known.

    Raises
    ------
    InputError
        If no row remains.
    """
    usable = (
        (measurements["status"] == "ok")
        & measurements["model"].isin(list(models))
        & measurements["accelerator"].isin(list(accelerators))
    )
    rows = measurements[usable].reset_index(drop=True)
    if rows.empty:
        raise InputError("measurements", "none has status ok and a known model and accelerator; import some first")
    groups = rows["model"].map({name: spec.fold_group for name, spec in models.items()}).rename("group")
    ids = pd.Series(row_ids(rows), index=rows.index, name="id")
    return TrainingSet(rows, describe(rows, models, accelerators), outcomes(rows), groups, ids)
