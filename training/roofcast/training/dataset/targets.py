"""Training targets: the logarithm of measurement over estimate."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.pipeline import METRICS
from roofcast.features.queries import FloatArray


def log_ratio(measured: FloatArray, estimate: FloatArray) -> FloatArray:
    """Return log(measured / estimate); NaN without a positive measurement.

    Examples
    --------
    >>> log_ratio(np.array([2.0, 0.0]), np.array([1.0, 1.0])).round(3)
    array([0.693,   nan])
    """
    positive = np.where(measured > 0, measured, np.nan)
    return np.asarray(np.log(positive / estimate), dtype=np.float64)


def outcomes(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the measured columns of `METRICS`; NaN where absent, derived by the source, or from a failed run.

    The throughput of a static batch counts as measured: it is the time of the batch in another unit. That of an open
    loop is its request rate, so it is no outcome.
    """
    codes, derived = pd.factorize(measurements["derived"])
    is_ok = (measurements["status"] == "ok").to_numpy()
    is_measured = {
        name: is_ok & np.array([name not in names.split() for names in derived], dtype=bool)[codes]
        for name in METRICS
    }
    load = measurements["load"].to_numpy(dtype=object)
    is_static = is_ok & (load == "static_batch")
    is_measured["output_throughput_token_per_s"] |= is_static
    is_measured["output_throughput_token_per_s"] &= load != "open_loop"
    values = {name: np.where(is_measured[name], measurements[name].to_numpy(dtype=float), np.nan) for name in METRICS}
    return pd.DataFrame(values, index=measurements.index)


def row_weights(groups: npt.NDArray[Any] | pd.Series) -> FloatArray:
    """Return a weight per row that limits the influence of groups with many rows.

    Notes
    -----
    ``1 / sqrt(rows of the group)``, scaled to a mean of 1: between equal rows and equal groups.

    Examples
    --------
    >>> row_weights(pd.Series(["a", "b", "b", "b", "b"])).round(3)
    array([1.667, 0.833, 0.833, 0.833, 0.833])
    """
    codes, _ = pd.factorize(np.asarray(groups, dtype=object))
    weight = 1 / np.sqrt(np.bincount(codes))[codes]
    return np.asarray(weight / weight.mean(), dtype=np.float64)
