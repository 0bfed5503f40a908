"""From a predicted distribution to the probability that limits are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError, OutOfRangeError
from roofcast.training.learner.conformal import GroupedConformal

FloatArray = npt.NDArray[np.float64]

N_STEP: Final = 50
"""Levels from 0 to 1 at which the distribution of errors is read; between them it is taken to be straight."""

ROUNDING: Final = 1e-9
"""How far above what can be promised a confidence may be that was computed from it."""


@dataclass(frozen=True, slots=True)
class ErrorScale:
    """How large errors are in their own standard deviations, as lineages left out had them.

    Parameters
    ----------
    size : shape (n,)
        Rising.
    level : shape (n,)
        Share of the errors, of either sign, that are no larger.
    """

    size: FloatArray
    level: FloatArray

    @classmethod
    def of(cls, conformal: GroupedConformal) -> Self:
        """Return the scale of a conformal distribution, to the highest level that it can promise."""
        levels = [i / N_STEP for i in range(1, N_STEP) if i / N_STEP < conformal.highest_level]
        levels.append(conformal.highest_level)
        sizes = [conformal.quantile(level) for level in levels]
        return cls(np.array([0.0, *sizes]), np.array([0.0, *levels]))

    def chance_below(self, z: FloatArray) -> FloatArray:
        """Return the probability that an error is below `z` standard deviations, any shape.

        Errors are taken to be as often above as below. What is further off than any error measured is promised no
        more than the highest level.

        Examples
        --------
        >>> scale = ErrorScale(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.6, 0.9]))
        >>> scale.chance_below(np.array([-1.0, 0.0, 1.0, 9.0])).round(3).tolist()
        [0.2, 0.5, 0.8, 0.95]
        """
        size = np.abs(z)
        above = np.searchsorted(self.size, size, side="right")
        upper = np.minimum(above, len(self.size) - 1)
        lower = above - 1
        width = np.where(upper > lower, self.size[upper] - self.size[lower], 1.0)
        share = np.minimum((size - self.size[lower]) / width, 1.0)
        level = self.level[lower] + (self.level[upper] - self.level[lower]) * share
        return np.asarray(0.5 + np.sign(z) * level / 2, dtype=np.float64)

    def z_at(self, confidence: float) -> float:
        """Return how many standard deviations an error is below with a probability of at least a half.

        Examples
        --------
        >>> round(ErrorScale(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.6, 0.9])).z_at(0.8), 3)
        1.0
        """
        return float(np.interp(2 * confidence - 1, self.level, self.size))


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
