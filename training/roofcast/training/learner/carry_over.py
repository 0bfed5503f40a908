"""How much of the trees' correction carries over to a stack that nobody measured."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.ratio_model import HeldOutModel


def fit_carry_over(
    folds: Sequence[HeldOutModel], X: pd.DataFrame, y: pd.DataFrame, owners: pd.Series
) -> dict[str, float]:
    """Return the share of the log correction that carries over to stacks left out, from 0 to 1, by metric.

    It has the least absolute error over the rows whose stack the model never saw. An owner of n rows has the weight
    sqrt(n). Derived metrics are left out, for they follow from others.

    - `folds`: Models and the rows of the stacks that they did not see.
    - `X`, `y`: shapes (n_row, n_descriptor) and (n_row, n_metric)
    - `owners`: shape (n_row,). Owner of each row's stack.
    """
    parts: dict[str, list[tuple[FloatArray, FloatArray, pd.Series]]] = {}
    for fold in folds:
        prediction = fold.model.predict_ratio(X.iloc[fold.test])
        for metric, value in prediction.value.items():
            estimate = prediction.estimates[metric]
            error = log_ratio(y[metric].iloc[fold.test].to_numpy(dtype=float), estimate)
            is_own = ~np.isnan(error) & prediction.is_own(metric)
            correction = np.log(value / estimate)
            parts.setdefault(metric, []).append((correction[is_own], error[is_own], owners.iloc[fold.test][is_own]))
    joined = {metric: map(np.concatenate, zip(*tables, strict=True)) for metric, tables in parts.items()}
    return {metric: carry_over_share(*columns) for metric, columns in joined.items()}


def carry_over_share(
    correction: FloatArray, error: FloatArray, owner: npt.NDArray[np.object_], *, size_exponent: float = 0.5
) -> float:
    """Return the factor from 0 to 1 of the correction with the least sum of ``|error - factor * correction|``.

    An owner of n rows weighs ``n ** size_exponent``.

    Examples
    --------
    >>> carry_over_share(np.array([1.0, -1.0, 2.0]), np.array([0.5, -0.4, 1.0]), np.array(["a", "a", "b"]))
    0.5
    """
    moves = np.abs(correction) > 1e-9
    correction, error, owner = correction[moves], error[moves], owner[moves]
    if not len(correction):
        return 1.0
    _, code, size = np.unique(owner.astype(str), return_inverse=True, return_counts=True)
    share, weight = error / correction, np.abs(correction) / size[code] ** (1.0 - size_exponent)
    order = np.argsort(share, kind="stable")
    middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    return float(np.clip(share[order][middle], 0.0, 1.0))
