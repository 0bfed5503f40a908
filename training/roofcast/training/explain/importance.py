"""Exact SHAP values of the learned ratio over the estimate, and their sums by physical group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.learner.boosted_trees import ResidualRegressor


def shap_values(regressor: ResidualRegressor, features: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Return the SHAP values of each row's log ratio, and the base value.

    The values are exact for trees (path-dependent TreeSHAP): a row's values and the base value sum to its prediction.

    `features`: shape (n_row, n_column).

    Returns
    -------
    shape (n_row, n_column), in natural logarithms; the base value

    References
    ----------
    S. Lundberg et al., "From local explanations to global understanding with explainable AI for trees", Nature
    Machine Intelligence 2, 2020.
    """
    matrix = features.to_numpy(dtype=float)
    contributions = [booster.shap_values(matrix) for booster in regressor.boosters_]
    mean: FloatArray = np.mean(np.array(contributions, dtype=np.float64), axis=0)
    return pd.DataFrame(mean[:, :-1], index=features.index, columns=features.columns), float(
        mean[0, -1]
    ) + regressor.median_


def group_importance(values: pd.DataFrame) -> pd.DataFrame:
    """Return the columns summed by physical group, the prefix of their names.

    SHAP values of groups remain additive: opposite contributions within a group cancel.

    `values`: shape (n_row, n_column).

    Returns
    -------
    shape (n_row, n_group)

    Examples
    --------
    >>> group_importance(pd.DataFrame({"model.a": [0.5], "memory.b": [0.25], "model.c": [-0.5]}))
       model  memory
    0    0.0    0.25
    """
    return pd.DataFrame({g: values[list(columns)].sum(axis=1) for g, columns in group_blocks(values.columns).items()})


def group_blocks(names: Sequence[str] | pd.Index[str]) -> dict[str, list[str]]:
    """Return the column names by physical group, in order of appearance.

    Examples
    --------
    >>> group_blocks(["model.a", "memory.b", "model.c"])
    {'model': ['model.a', 'model.c'], 'memory': ['memory.b']}
    """
    blocks: dict[str, list[str]] = {}
    for name in names:
        blocks.setdefault(name.partition(".")[0], []).append(name)
    return blocks
