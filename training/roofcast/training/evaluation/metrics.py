"""Evaluation metrics of predictions; ratios are fractions, never percentages.

A row without an answer has the prediction NaN. It is excluded from percentage errors, counts as a miss in
`share_within`, and reduces `share_answered`.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

TOLERANCE: Final = 0.25
"""Relative error up to which a prediction counts as accurate."""


def absolute_percentage_errors(measured: ArrayLike, predicted: ArrayLike) -> NDArray[np.float64]:
    """Return ``|predicted - measured| / measured`` of each row, NaN without a prediction.

    Examples
    --------
    >>> absolute_percentage_errors([10.0, 20.0], [11.0, 10.0]).tolist()
    [0.1, 0.5]
    """
    truth = np.asarray(measured, dtype=np.float64)
    return np.abs(np.asarray(predicted, dtype=np.float64) - truth) / truth


def mean_ape(measured: ArrayLike, predicted: ArrayLike) -> float:
    """Return the mean absolute percentage error of the answered rows, NaN if there is none.

    Examples
    --------
    >>> mean_ape([10.0, 20.0, 5.0], [11.0, 10.0, float("nan")])
    0.3
    """
    errors = absolute_percentage_errors(measured, predicted)
    return _mean(errors[~np.isnan(errors)])


def median_ape(measured: ArrayLike, predicted: ArrayLike) -> float:
    """Return the median absolute percentage error of the answered rows, NaN if there is none.

    Examples
    --------
    >>> median_ape([10.0, 10.0, 10.0], [10.0, 12.0, 90.0])
    0.2
    """
    errors = absolute_percentage_errors(measured, predicted)
    answered = errors[~np.isnan(errors)]
    return float(np.median(answered)) if answered.size else float("nan")


def share_within(measured: ArrayLike, predicted: ArrayLike, tolerance: float = TOLERANCE) -> float:
    """Return the share of all rows with a relative error of at most `tolerance`.

    Examples
    --------
    >>> share_within([10.0, 10.0, 10.0, 10.0], [8.0, 12.5, 13.0, float("nan")])
    0.5
    """
    return _mean(absolute_percentage_errors(measured, predicted) <= tolerance)


def share_answered(predicted: ArrayLike) -> float:
    """Return the share of rows that have a prediction.

    Examples
    --------
    >>> share_answered([1.0, float("nan")])
    0.5
    """
    return _mean(~np.isnan(np.asarray(predicted, dtype=np.float64)))


def error_summary(measured: ArrayLike, predicted: ArrayLike) -> dict[str, float]:
    """Return the four error metrics of a scoreboard entry by name.

    Examples
    --------
    >>> error_summary([10.0, 20.0], [11.0, 10.0])
    {'mape': 0.3, 'median_ape': 0.3, 'within_25': 0.5, 'answered': 1.0}
    """
    return {
        "mape": mean_ape(measured, predicted),
        "median_ape": median_ape(measured, predicted),
        "within_25": share_within(measured, predicted),
        "answered": share_answered(predicted),
    }


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if values.size else float("nan")
