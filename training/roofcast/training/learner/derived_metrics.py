"""What is known of the errors of metrics that follow from TTFT and TPOT: what is known of theirs.

`roofcast.training.learner.reconciliation` says how the predictions follow.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from roofcast.training.learner.group_keys import GroupKeys
from roofcast.training.learner.ratio_model import QUANTILE_PLACE, RatioPrediction, at_quantile
from roofcast.training.learner.reconciliation import (
    E2E,
    FOLLOWERS,
    SOURCES,
    THROUGHPUT,
    asked_shares,
    composed,
)
from roofcast.training.learner.uncertainty import Uncertainty

FloatArray = npt.NDArray[np.float64]


def sds_of_followers(
    parts: RatioPrediction, known: Mapping[str, Uncertainty], asked: GroupKeys, sds: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return the standard deviations of what follows from TTFT and TPOT, as wide as these make it.

    Throughput is of the run: it follows from the means, whatever percentile is asked. At a rate there is no doubt.
    """
    found, features = {}, parts.features.to_numpy()
    share = asked_shares(parts.value, parts.estimates, parts.pace, parts.whole, parts.loads) if parts.pace else {}
    for metric in parts.value.keys() & share.keys():
        sources = {source: sds[source] for source in SOURCES}
        if metric == THROUGHPUT and (features[:, QUANTILE_PLACE] != 0.5).any():
            central = at_quantile(features, 0.5)
            sources = {source: known[source].shift(central, asked)[1] for source in SOURCES}
        found[metric] = np.where(parts.loads.follows[metric], composed(share[metric], sources), sds[metric])
    if THROUGHPUT in sds:
        found[THROUGHPUT] = np.where(parts.loads.is_at_a_rate, 0.0, found.get(THROUGHPUT, sds[THROUGHPUT]))
    return found


def scores_of_followers(
    parts: RatioPrediction, errors: Mapping[str, FloatArray], expected: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return errors over their expected size by metric, each of shape (n_row,), NaN where one is not known.

    Where a metric follows from TTFT and TPOT, its error is theirs by their shares: they are measured of far more
    LLMs than it is itself.
    """
    if not parts.pace or not set(SOURCES) <= errors.keys():
        return {}
    share = asked_shares(parts.value, parts.estimates, parts.pace, parts.whole, parts.loads)
    scores = {}
    for metric in errors.keys() & share.keys():
        error = sum(share[metric][source] * errors[source] for source in SOURCES)
        led = np.abs(error) / composed(share[metric], expected)
        scores[metric] = np.where(parts.loads.follows[metric], led, np.abs(errors[metric]) / expected[metric])
    return scores


def lead(error: dict[str, FloatArray], rows: Mapping[str, npt.NDArray[np.bool_]]) -> None:
    """Let errors of metrics that follow stand for those of TTFT or TPOT that are not told, and tell nothing more."""
    for metric in FOLLOWERS:
        if metric not in error:
            continue
        sign = 1 if metric == E2E else -1
        for source in SOURCES:
            lacks = rows[metric] & np.isnan(error[source])
            error[source] = np.where(lacks, sign * error[metric], error[source])
        is_told = rows[metric] & ~np.isnan(error["ttft_s"]) & ~np.isnan(error["tpot_s"])
        error[metric] = np.where(rows[metric], np.where(is_told, 0.0, np.nan), error[metric])
