"""Metrics that follow from others: what a request takes in all, and what a loop puts out.

A request takes the time to its first token and one time per token for each of the rest; a closed loop finishes as
many requests as are in flight in the time that one takes; an open loop finishes what comes, at the rate it comes.
Predicted apart, they would contradict each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.arrays import descriptor_arrays
from roofcast.features.engine.estimate import Estimate

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

SOURCES: Final = ("ttft_s", "tpot_s")
"""What the others follow from."""

E2E: Final = "e2e_s"
THROUGHPUT: Final = "output_throughput_token_per_s"
FOLLOWERS: Final = (E2E, THROUGHPUT)


@dataclass(frozen=True, slots=True)
class Loads:
    """How questions are loaded; arrays of shape (n_question,).

    Parameters
    ----------
    follows
        By metric of `FOLLOWERS`, which questions' answers follow from TTFT and TPOT. E2E does under any load that
        comes and goes, throughput in a closed loop. Static batches are measured whole, and all of an offline run is
        there at once.
    is_at_a_rate
        Which ask about an open loop, which puts out what its rate asks for.
    n_later
        Output tokens after the first.
    """

    follows: dict[str, BoolArray]
    is_at_a_rate: BoolArray
    n_later: FloatArray

    @classmethod
    def of(cls, descriptors: pd.DataFrame) -> Self:
        """Return the loads of questions: shape (n_question, n_descriptor)."""
        d = descriptor_arrays(descriptors)
        comes_and_goes = d["workload.is_static"] == 0
        is_closed = comes_and_goes & ~np.isnan(d["workload.concurrency"])
        is_open = comes_and_goes & ~np.isnan(d["workload.request_rate_per_s"])
        return cls({E2E: is_closed | is_open, THROUGHPUT: is_closed}, is_open, d["workload.n_output_token"] - 1)


def coherent(
    value: Mapping[str, FloatArray],
    estimates: Mapping[str, FloatArray],
    pace: Mapping[str, FloatArray],
    whole: Estimate,
    loads: Loads,
) -> dict[str, FloatArray]:
    """Return predictions by metric, E2E and throughput in keeping with TTFT and TPOT where they follow from these.

    Both move away from their estimates as the mean stay of a request does. So the estimate of a percentile keeps its
    shape, and its order among the others. Throughput is of the run, whatever percentile is asked; of an open
    loop it is the estimate, the rate.

    Parameters
    ----------
    value, estimates
        By metric, of shapes that end in (n_question,); the estimates of the statistics asked for.
    pace
        Predicted over estimated mean of `SOURCES`, of the same shapes; empty where one is not predicted.
    whole
        The estimate, of means.
    loads
        Of the questions.
    """
    answer = dict(value)
    if THROUGHPUT in value:
        answer[THROUGHPUT] = np.where(loads.is_at_a_rate, estimates[THROUGHPUT], value[THROUGHPUT])
    if not pace:
        return answer
    for metric, rows in loads.follows.items():
        if metric in value:
            asked = {m: value[m] / estimates[m] for m in SOURCES} if metric == E2E else pace
            before, after = _stay(asked, whole, loads)
            ratio = _sum(after) / _sum(before)
            moved = estimates[metric] * (ratio if metric == E2E else 1 / ratio)
            least = value["ttft_s"] if metric == E2E else 0.0
            answer[metric] = np.where(rows, np.maximum(moved, least), answer[metric])
    return answer


def shares(pace: Mapping[str, FloatArray], whole: Estimate, loads: Loads) -> dict[str, FloatArray]:
    """Return how much the corrections of TTFT and of TPOT count in what follows, each of shape (n_question,).

    Parameters
    ----------
    pace
        The corrections, as factors.
    whole, loads
        As in `coherent`.

    Notes
    -----
    Logarithmic means make it exact: the logarithms of the corrections of the parts, times their shares, sum to that
    of the whole.

    References
    ----------
    B. W. Ang, "The LMDI approach to decomposition analysis: a practical guide", Energy Policy 2005.
    """
    before, after = _stay(pace, whole, loads)
    all_of_it = logarithmic_mean(_sum(after), _sum(before))
    return {metric: logarithmic_mean(after[metric], before[metric]) / all_of_it for metric in SOURCES}


def asked_shares(
    value: Mapping[str, FloatArray],
    estimates: Mapping[str, FloatArray],
    pace: Mapping[str, FloatArray],
    whole: Estimate,
    loads: Loads,
) -> dict[str, dict[str, FloatArray]]:
    """Return `shares` of each metric that follows, by the corrections that `coherent` moves it by."""
    asked = {metric: value[metric] / estimates[metric] for metric in SOURCES}
    return {metric: shares(asked if metric == E2E else pace, whole, loads) for metric in FOLLOWERS}


def composed(share: Mapping[str, FloatArray], sd: Mapping[str, FloatArray]) -> FloatArray:
    """Return the standard deviation of what follows, from those of the logarithms of TTFT and of TPOT.

    Their errors are taken to have nothing to do with each other.

    Parameters
    ----------
    share
        Of one metric, as `shares` gives them, each of shape (n_question,).
    sd
        By metric, of the same shapes.
    """
    return np.asarray(np.hypot(*(share[metric] * sd[metric] for metric in SOURCES)))


def _stay(
    pace: Mapping[str, FloatArray], whole: Estimate, loads: Loads
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the mean seconds up to the first token and after it, as estimated and as predicted."""
    before = {"ttft_s": whole.ttft_s, "tpot_s": loads.n_later * whole.tpot_s}
    return before, {metric: seconds * pace[metric] for metric, seconds in before.items()}


def _sum(parts: Mapping[str, FloatArray]) -> FloatArray:
    return np.asarray(parts["ttft_s"] + parts["tpot_s"])


def logarithmic_mean(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``(a - b) / log(a / b)``, which lies between both.

    Examples
    --------
    >>> logarithmic_mean(np.array([1.0, 2.0, 0.0]), np.array([np.e, 2.0, 0.0])).round(3)
    array([1.718, 2.   , 0.   ])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.log(a) - np.log(b)
        mean = (a - b) / distance
    return np.where(np.abs(np.nan_to_num(distance)) < 1e-9, a, mean)
