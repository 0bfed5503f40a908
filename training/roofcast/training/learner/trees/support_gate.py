"""Support gate: how far the trees may correct a query, by the lineages that they were measured of nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.config_hash import HashArray
from roofcast.features.engine.kernels.row_kernels import MEASURED_ENGINES
from roofcast.training.learner.errors.group_keys import TERMS, GroupKeys

FloatArray = npt.NDArray[np.float64]

NEIGHBOURHOOD: Final = ("accelerator", "engine", "load")
"""Term of `TERMS` whose lineages support a correction."""

HALF_LINEAGE: Final = 3.0
"""Lineages at which the trees have half of their weight."""

_NEIGHBOURHOOD_INDEX: Final = tuple(TERMS).index(NEIGHBOURHOOD)
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
    def fit(cls, rows: GroupKeys, groups: pd.Series) -> Self:
        """Return the gate of training rows and their lineages."""
        key = rows.keys[:, _NEIGHBOURHOOD_INDEX]
        table = pd.DataFrame({"key": key, "group": groups.to_numpy()}).drop_duplicates()
        keys, n_lineage = np.unique(table["key"].to_numpy(), return_counts=True)
        return cls(keys, n_lineage.astype(float))

    def weight(self, queries: GroupKeys, engine: FloatArray) -> FloatArray:
        """Return the weight of the trees for each query, given its code of `ENGINES` too: shape (n_query,)."""
        keys = queries.keys[:, _NEIGHBOURHOOD_INDEX]
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        n = np.where(self.keys[place] == keys, self.n_lineage[place], 0.0)
        return np.where(_HAS_KERNELS[engine.astype(np.intp)], n / (n + HALF_LINEAGE), 1.0)
