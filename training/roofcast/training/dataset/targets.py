"""What the learner is trained on: the logarithm of measurement over estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.pipeline import METRICS

FloatArray = npt.NDArray[np.float64]


def log_ratio(measured: FloatArray, estimate: FloatArray) -> FloatArray:
    """Return log(measured / estimate); NaN where nothing was measured or the measurement is zero.

    Examples
    --------
    >>> log_ratio(np.array([2.0, 0.0]), np.array([1.0, 1.0])).round(3)
    array([0.693,   nan])
    """
    positive = np.where(measured > 0, measured, np.nan)
    return np.asarray(np.log(positive / estimate), dtype=np.float64)


def outcomes(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of `METRICS`, NaN where a row does not say, derived it, or its run did not end well.

    The throughput of a static batch is never derived: it is the time of the whole batch, told as a rate. That of an
    open loop is its rate, and no outcome.
    """
    is_measured = pd.DataFrame({name: ~measurements["derived"].str.contains(rf"\b{name}\b") for name in METRICS})
    is_measured["output_throughput_token_per_s"] |= measurements["load"] == "static_batch"
    is_measured["output_throughput_token_per_s"] &= measurements["load"] != "open_loop"
    return measurements[list(METRICS)].where(measurements["status"] == "ok").where(is_measured)


def row_weights(groups: npt.NDArray[Any] | pd.Series) -> FloatArray:
    """Return a weight per row such that groups of many rows do not drown those of few.

    Notes
    -----
    ``1 / sqrt(rows of the group)``, scaled to a mean of 1: halfway between equal rows and equal groups.

    Examples
    --------
    >>> row_weights(pd.Series(["a", "b", "b", "b", "b"])).round(3)
    array([1.667, 0.833, 0.833, 0.833, 0.833])
    """
    codes, _ = pd.factorize(np.asarray(groups, dtype=object))
    weight = 1 / np.sqrt(np.bincount(codes))[codes]
    return np.asarray(weight / weight.mean(), dtype=np.float64)
