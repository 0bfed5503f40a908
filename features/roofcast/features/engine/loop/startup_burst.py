"""How a closed loop is started: all that may be in flight at once, then each as another ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

USUAL_WAVES: Final = 10.0
"""Requests sent for each in flight where it is not told: what most published benchmarks send."""


def n_wave(d: Mapping[str, FloatArray]) -> FloatArray:
    """Return the requests sent for each in flight, of shape (n_question,): infinite at a rate, which has no start.

    Examples
    --------
    >>> nan = np.nan
    >>> rate = np.array([nan, nan, 3.0])
    >>> n_wave({"workload.n_wave": np.array([4.0, nan, nan]), "workload.request_rate_per_s": rate})
    array([ 4., 10., inf])
    """
    told = np.where(np.isnan(d["workload.n_wave"]), USUAL_WAVES, d["workload.n_wave"])
    return np.where(np.isnan(d["workload.request_rate_per_s"]), told, np.inf)


def burst_ratio(d: Mapping[str, FloatArray], burst: FloatArray) -> FloatArray:
    """Return the share of requests that come in one wave, of shape (n_question,).

    Parameters
    ----------
    burst : shape (n_question,)
        That share in a run of `USUAL_WAVES`; it falls with their number, as only the first one comes together.
    """
    return np.asarray(np.minimum(burst * USUAL_WAVES / n_wave(d), 1.0), dtype=np.float64)
