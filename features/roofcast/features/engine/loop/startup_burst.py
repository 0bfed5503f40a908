"""Startup burst of a closed loop: all slots of concurrency start with a request at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.features.queries import FloatArray

TYPICAL_REQUESTS_PER_SLOT: Final = 10.0
"""Requests per slot assumed where unknown: the number of most published benchmarks."""


def requests_per_slot(d: Mapping[str, FloatArray]) -> FloatArray:
    """Return the requests per slot of concurrency, of shape (n_row,); infinite for open loops, which have no burst.

    An offline run of known length has one: all its requests are in flight from the start.

    Examples
    --------
    >>> nan = np.nan
    >>> known = {"n_wave": [4.0, nan, nan, nan], "n_request": [32.0, nan, nan, 500.0]}
    >>> load = {"concurrency": [8.0, 8.0, nan, nan], "request_rate_per_s": [nan, nan, 3.0, nan]}
    >>> requests_per_slot({f"workload.{name}": np.array(values) for name, values in (known | load).items()})
    array([ 4., 10., inf,  1.])
    """
    known = np.where(is_all_at_once(d), 1.0, d["workload.n_wave"])
    given = np.where(np.isnan(known), TYPICAL_REQUESTS_PER_SLOT, known)
    return np.where(np.isnan(d["workload.request_rate_per_s"]), given, np.inf)


def is_all_at_once(d: Mapping[str, FloatArray]) -> npt.NDArray[np.bool_]:
    """Return whether the run is offline with a known number of requests, which are all in flight from the start."""
    is_offline = np.isnan(d["workload.concurrency"]) & np.isnan(d["workload.request_rate_per_s"])
    return np.asarray(is_offline & ~np.isnan(d["workload.n_request"]))


def startup_burst_ratio(d: Mapping[str, FloatArray], burst: FloatArray) -> FloatArray:
    """Return the share of requests in the startup burst, of shape (n_row,).

    Parameters
    ----------
    burst : shape (n_row,)
        The share in a run of `TYPICAL_REQUESTS_PER_SLOT`; it is inversely proportional to the requests per slot,
        because only the first request of each slot is in the burst.
    """
    return np.asarray(np.minimum(burst * TYPICAL_REQUESTS_PER_SLOT / requests_per_slot(d), 1.0), dtype=np.float64)
