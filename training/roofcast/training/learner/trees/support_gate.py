"""Support gate: how far the trees may correct a query, by the lineages that they were measured of nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.config_hash import HashArray, config_hashes, joint_hash
from roofcast.features.engine.kernels.row_kernels import MEASURED_ENGINES

FloatArray = npt.NDArray[np.float64]

NEIGHBOURHOOD: Final = ("accelerator", "engine", "load")
"""Columns of `config_hashes` whose lineages support a correction."""

HALF_LINEAGE: Final = 3.0
"""Lineages at which the trees have half of their weight."""

_HAS_KERNELS: Final = np.isin(ENGINES, MEASURED_ENGINES)


@dataclass(frozen=True, slots=True)
class SupportGate:
    """Weight of the trees' log correction: ``n / (n + 3)`` with n training lineages of `NEIGHBOURHOOD`.

    It applies to engines with kernel tables: on a stack that nobody measured their estimate is better than what trees
    learn from other stacks. The weight of other engines is 1.

    Parameters
    ----------
    keys : shape (n_key,)
        Hashes of the measured neighbourhoods, sorted.
    n_lineage : shape (n_key,)
    """

    keys: HashArray
    n_lineage: FloatArray

    @classmethod
    def fit(cls, descriptors: pd.DataFrame, groups: pd.Series) -> Self:
        """Return the gate of training rows and their lineages."""
        table = pd.DataFrame({"key": _keys(descriptors), "group": groups.to_numpy()}).drop_duplicates()
        keys, n_lineage = np.unique(table["key"].to_numpy(), return_counts=True)
        return cls(keys, n_lineage.astype(float))

    def weight(self, descriptors: pd.DataFrame) -> FloatArray:
        """Return the weight of the trees for each query: shape (n_query,)."""
        keys = _keys(descriptors)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        n = np.where(self.keys[place] == keys, self.n_lineage[place], 0.0)
        is_gated = _HAS_KERNELS[descriptors["config.engine"].to_numpy().astype(np.intp)]
        return np.where(is_gated, n / (n + HALF_LINEAGE), 1.0)


def _keys(descriptors: pd.DataFrame) -> HashArray:
    return joint_hash(config_hashes(descriptors), NEIGHBOURHOOD)
