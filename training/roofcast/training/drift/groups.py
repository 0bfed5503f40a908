"""Groups of measurements in reports of drift."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import pandas as pd

from roofcast.training.drift.prediction_scores import KINDS, METRICS

ALL: Final = "all"

TESTED: Final = (ALL, "accelerator", "engine_version", "stack")
"""Kinds of groups that are tested."""

SIGNIFICANCE: Final = 0.05
"""Of all tests of a report together."""

Key = tuple[Hashable, ...]
"""Metric, kind and name of a group."""


def groups_of(table: pd.DataFrame) -> list[tuple[Key, pd.DataFrame]]:
    """Return the rows of each metric: all of them, and those of each group by kind and name."""
    parts: list[tuple[Key, pd.DataFrame]] = []
    for metric in METRICS:
        of_metric = table[table["metric"] == metric]
        if of_metric.empty:
            continue
        parts.append(((metric, ALL, ""), of_metric))
        for kind in (kind for kind in KINDS if kind in table):
            parts += [((metric, kind, str(name)), part) for name, part in of_metric.groupby(kind, sort=True)]
    return parts
