"""Exact test of exceedances, and Holm's correction for many tests."""

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

Key = TypeVar("Key", bound=Hashable)


def exceedance_p_value(is_outside: ArrayLike, expected_share: float) -> float:
    """Return the probability of at least as many observations outside limits, if `expected_share` of all lie there.

    Notes
    -----
    The exact binomial test of the share of failures. One observation alone never has a p-value below
    `expected_share`.

    References
    ----------
    P. H. Kupiec, "Techniques for Verifying the Accuracy of Risk Measurement Models", Journal of Derivatives 3(2),
    1995: the backtest of intervals by the proportion of failures.

    Examples
    --------
    >>> round(exceedance_p_value([True, True], 0.1), 4), exceedance_p_value([False, False], 0.1)
    (0.01, 1.0)
    """
    from scipy.special import bdtrc  # noqa: PLC0415  (scipy.stats would take longer to import than an import takes)

    outside = np.asarray(is_outside, dtype=bool)
    return float(bdtrc(int(outside.sum()) - 1, len(outside), expected_share))


def adjust_p_values(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Return the p-values by Holm's step-down procedure, which holds whatever the tests have in common.

    References
    ----------
    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6(2), 1979.

    Examples
    --------
    >>> adjust_p_values({"a": 0.01, "b": 0.04, "c": 0.3})
    {'a': 0.03, 'b': 0.08, 'c': 0.3}
    """
    ordered = sorted(p_values.items(), key=lambda pair: pair[1])
    adjusted: dict[Key, float] = {}
    least = 0.0
    for n_before, (key, p_value) in enumerate(ordered):
        least = max(least, min(1.0, (len(ordered) - n_before) * p_value))
        adjusted[key] = least
    return adjusted


def p_values_of_groups(rows_of: Mapping[Key, Hashable], p_value: Callable[[Key], float]) -> dict[Key, float]:
    """Return the adjusted p-value of each group; groups of the same rows are one test, of the first of them."""
    first_of: dict[Hashable, Key] = {}
    same = {key: first_of.setdefault(rows, key) for key, rows in rows_of.items()}
    adjusted = adjust_p_values({key: p_value(key) for key in first_of.values()})
    return {key: adjusted[first] for key, first in same.items()}
