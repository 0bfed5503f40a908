"""Groups of measurements in reports of drift."""

from collections.abc import Hashable
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.training.drift.prediction_scores import KINDS, METRICS

ALL: Final = "all"

TESTED: Final = (ALL, "accelerator", "engine_version", "stack")
"""Kinds of groups that are tested."""

SIGNIFICANCE: Final = 0.05
"""Of all tests of a report together."""

Key = tuple[Hashable, ...]
"""Metric, kind and name of a group."""


Positions = npt.NDArray[np.intp]


def group_positions(table: pd.DataFrame) -> dict[Key, Positions]:
    """Return the positions of the rows of each metric: of all, and of each group by kind and name."""
    parts: dict[Key, Positions] = {}
    metrics = table["metric"].to_numpy(dtype=object)
    codes = {kind: pd.factorize(table[kind], sort=True) for kind in KINDS if kind in table}
    for metric in dict.fromkeys(name for name in (*METRICS, *sorted(set(metrics))) if name in metrics):
        of_metric = np.flatnonzero(metrics == metric)
        parts[metric, ALL, ""] = of_metric
        for kind, (of_kind, names) in codes.items():
            members = of_kind[of_metric]
            for code in np.unique(members[members >= 0]):
                parts[metric, kind, str(names[code])] = of_metric[members == code]
    return parts


def groups_of(table: pd.DataFrame) -> list[tuple[Key, pd.DataFrame]]:
    """Return the rows of each of `group_positions`."""
    return [(key, table.iloc[part]) for key, part in group_positions(table).items()]
