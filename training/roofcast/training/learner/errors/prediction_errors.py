"""Errors of predictions: of calibration points, and of metrics that are derived from others."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.training.dataset.targets import log_ratio
from roofcast.training.learner.derived_metrics import (
    SOURCES,
    THROUGHPUT,
    combine_sds,
    impute_source_errors,
    sd_of_rate,
)
from roofcast.training.learner.errors.error_distribution import LogError
from roofcast.training.learner.ratio_model import RatioPrediction

FloatArray = npt.NDArray[np.float64]

INTERCHANGEABLE: Final = (("tpot_s", "itl_s"), ("itl_s", "tpot_s"))
"""TPOT (per-request mean) and ITL (per-gap): the error of one stands in for the other."""


def calibration_surprises(
    X: pd.DataFrame, y: pd.DataFrame, prediction: RatioPrediction, expected: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return log(measurement / expected) of calibration points: shapes (n_row,), NaN where there is no information.

    A mean or median of ITL informs TPOT, and the other way round. A measurement of a derived metric informs TTFT or
    TPOT, whichever takes most of the latency, if its row has neither, or is a mean and has the other one. Throughput
    of an open loop is its rate and informs nothing.
    """
    measured = y.reindex(columns=list(expected)).astype(float)
    error = {metric: log_ratio(measured[metric].to_numpy(), value) for metric, value in expected.items()}
    if THROUGHPUT in error:
        error[THROUGHPUT] = np.where(prediction.loads.is_open_loop, np.nan, error[THROUGHPUT])
    is_central = (X["workload.quantile"] == 0.5).to_numpy()
    _exchange(error, is_central)
    if prediction.mean_correction:
        loads, is_mean = prediction.loads, (X["workload.is_mean"] == 1).to_numpy()
        seconds = {"ttft_s": expected["ttft_s"], "tpot_s": loads.n_later_token * expected["tpot_s"]}
        means = {metric: np.where(is_mean, part, np.nan) for metric, part in seconds.items()}
        impute_source_errors(error, loads.is_derived, prediction.shares(), means)
        _exchange(error, is_central)
    return error


def _exchange(error: dict[str, FloatArray], rows: npt.NDArray[np.bool_]) -> None:
    for metric, other in INTERCHANGEABLE:
        if metric in error and other in error:
            error[metric] = np.where(rows & np.isnan(error[metric]), error[other], error[metric])


def derived_sds(prediction: RatioPrediction, errors: Mapping[str, LogError]) -> dict[str, FloatArray]:
    """Return the standard deviations, those of derived metrics combined from TTFT's and TPOT's.

    Throughput is of the run: it follows from the means, whatever percentile the query names.
    """
    sds = {metric: error.sd for metric, error in errors.items()}
    result, shares = dict(sds), prediction.error_shares()
    for metric in prediction.value.keys() & shares.keys():
        sources = {m: errors[m].median_sd if metric == THROUGHPUT else sds[m] for m in SOURCES}
        combined = combine_sds(shares[metric], sources)
        result[metric] = np.where(prediction.loads.is_derived[metric], combined, sds.get(metric, combined))
    if THROUGHPUT in sds:
        of_rate = sd_of_rate(prediction.estimate.rate_ratio, sds[THROUGHPUT])
        result[THROUGHPUT] = np.where(prediction.loads.is_open_loop, of_rate, result[THROUGHPUT])
    return result
