"""From a predicted distribution to the probability that limits are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.training.learner.error_distribution import GroupedConformal

FloatArray = npt.NDArray[np.float64]

ROUNDING: Final = 1e-9
"""How far above what can be promised a confidence may be that was computed from it."""


def chance_of_all(chances: Sequence[FloatArray], metrics: Sequence[str]) -> FloatArray:
    """Return the probability that all limits are met, from that of each and the metric that it limits.

    Limits on one metric share its error: the least counts. Those on different metrics multiply, as if their errors
    had nothing to do with each other; as slow machines are slow in everything, that promises rather too little.

    Examples
    --------
    >>> one = np.array([0.9])
    >>> chance_of_all([one, 0.8 * one, one], ["ttft_s", "ttft_s", "itl_s"]).round(3).tolist()
    [0.648]
    """
    least: dict[str, FloatArray] = {}
    for chance, metric in zip(chances, metrics, strict=True):
        least[metric] = np.minimum(least.get(metric, chance), chance)
    together = np.ones_like(chances[0])
    for chance in least.values():
        together = together * chance
    return together


def highest_confidence(scales: Mapping[str, GroupedConformal]) -> float:
    """Return the greatest probability that the measurements can promise of all limits.

    Parameters
    ----------
    scales
        Of each metric that is limited.
    """
    return float(np.prod([(1 + scale.highest_level) / 2 for scale in scales.values()]))


def check_confidence(confidence: float, scales: Mapping[str, GroupedConformal]) -> None:
    """Raise if a confidence is no probability above a half, or more than the measurements can promise.

    Parameters
    ----------
    confidence
        That all limits are met.
    scales
        Of each metric that is limited.

    Raises
    ------
    InputError
        If it is below a half: what is rather missed than met is no recommendation.
    OutOfRangeError
        If it is more than can be promised.
    """
    if not 0.5 <= confidence < 1:
        raise InputError("confidence", f"must be at least 0.5 and below 1, got {confidence:g}")
    highest = highest_confidence(scales)
    if confidence > highest + ROUNDING:
        raise OutOfRangeError(
            f"a confidence of {confidence:g} is more than the measurements can promise for these limits; ask for at "
            f"most {highest - 0.0005:.3f}"
        )
