"""Evaluation metrics of decisions; ratios are fractions, never percentages."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def success_share(is_success: ArrayLike) -> float:
    """Return the share of recommendations that serve all users within the limits.

    Examples
    --------
    >>> success_share([True, True, True, False])
    0.75
    """
    return float(np.mean(np.asarray(is_success, dtype=np.bool_)))


def overspends(cost: ArrayLike, least_cost: ArrayLike) -> NDArray[np.float64]:
    """Return the relative excess of each recommendation's cost over that of the cheapest sufficient one.

    Examples
    --------
    >>> overspends([15.0, 8.0], [10.0, 8.0]).tolist()
    [0.5, 0.0]
    """
    return np.asarray(cost, dtype=np.float64) / np.asarray(least_cost, dtype=np.float64) - 1.0


def mean_overspend(overspend: ArrayLike, is_success: ArrayLike) -> float:
    """Return the mean overspend of the successful recommendations, NaN if none succeeded.

    A failed recommendation may cost less than the cheapest sufficient one, so it is excluded.

    Examples
    --------
    >>> mean_overspend([0.5, 0.1, -0.4], [True, True, False])
    0.3
    """
    values = np.asarray(overspend, dtype=np.float64)[np.asarray(is_success, dtype=np.bool_)]
    return float(np.mean(values)) if values.size else float("nan")


def so_score(success: float, overspend: float) -> float:
    """Return the S/O score: the harmonic mean of the success share and of one minus the overspend.

    It is zero without a success or with an overspend of 100 % or more.

    References
    ----------
    M. Lazuka, A. Anghel and T. Parnell, "LLM-Pilot: Characterize and Optimize Performance of your LLM Inference
    Services", SC 2024.

    Examples
    --------
    >>> so_score(1.0, 0.5), so_score(0.8, 1.2), so_score(0.0, float("nan"))
    (0.6666666666666666, 0.0, 0.0)
    """
    if success == 0:
        return 0.0
    thrift = max(0.0, 1.0 - overspend)
    return 2.0 * success * thrift / (success + thrift)
