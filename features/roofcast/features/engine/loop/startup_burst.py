"""Startup burst of a closed loop: all slots of concurrency start with a request at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from roofcast.features.arrays import FloatArray

TYPICAL_REQUESTS_PER_SLOT: Final = 10.0
"""Requests per slot assumed where unknown: the number of most published benchmarks."""


def requests_per_slot(d: Mapping[str, FloatArray]) -> FloatArray:
    """Return the requests per slot of concurrency, of shape (n_row,); infinite for open loops, which have no burst.

    Examples
    --------
    >>> nan = np.nan
    >>> rate = np.array([nan, nan, 3.0])
    >>> requests_per_slot({"workload.n_wave": np.array([4.0, nan, nan]), "workload.request_rate_per_s": rate})
    array([ 4., 10., inf])
    """
    given = np.where(np.isnan(d["workload.n_wave"]), TYPICAL_REQUESTS_PER_SLOT, d["workload.n_wave"])
    return np.where(np.isnan(d["workload.request_rate_per_s"]), given, np.inf)


def startup_burst_ratio(d: Mapping[str, FloatArray], burst: FloatArray) -> FloatArray:
    """Return the share of requests in the startup burst, of shape (n_row,).

    Parameters
    ----------
    burst : shape (n_row,)
        The share in a run of `TYPICAL_REQUESTS_PER_SLOT`; it is inversely proportional to the requests per slot,
        because only the first request of each slot is in the burst.
    """
    return np.asarray(np.minimum(burst * TYPICAL_REQUESTS_PER_SLOT / requests_per_slot(d), 1.0), dtype=np.float64)
