"""How a closed loop is started: all that may be in flight at once, then each as another ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

TYPICAL_REQUESTS_PER_SLOT: Final = 10.0
"""Requests sent for each in flight where it is not told: what most published benchmarks send."""


def requests_per_slot(d: Mapping[str, FloatArray]) -> FloatArray:
    """Return the requests sent for each in flight, of shape (n_question,): infinite at a rate, which has no start.

    Examples
    --------
    >>> nan = np.nan
    >>> rate = np.array([nan, nan, 3.0])
    >>> requests_per_slot({"workload.n_wave": np.array([4.0, nan, nan]), "workload.request_rate_per_s": rate})
    array([ 4., 10., inf])
    """
    told = np.where(np.isnan(d["workload.n_wave"]), TYPICAL_REQUESTS_PER_SLOT, d["workload.n_wave"])
    return np.where(np.isnan(d["workload.request_rate_per_s"]), told, np.inf)


def startup_burst_ratio(d: Mapping[str, FloatArray], burst: FloatArray) -> FloatArray:
    """Return the share of requests that come in one wave, of shape (n_question,).

    Parameters
    ----------
    burst : shape (n_question,)
        That share in a run of `TYPICAL_REQUESTS_PER_SLOT`; it falls with their number, because only the
        first request of each slot comes with all others.
    """
    return np.asarray(np.minimum(burst * TYPICAL_REQUESTS_PER_SLOT / requests_per_slot(d), 1.0), dtype=np.float64)
