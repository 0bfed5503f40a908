"""Derived metrics: E2E latency and throughput reconciled with TTFT and TPOT, and the propagation of their errors.

A request takes the time to its first token and one time per token for each of the rest. A closed loop finishes as
many requests as are in flight in the time that one takes, an open loop as many as arrive. Predicted independently,
the metrics would contradict each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import BoolArray, FloatArray, QueryTable, descriptor_arrays

ByMetric = Mapping[str, FloatArray]

SOURCES: Final = ("ttft_s", "tpot_s")
"""Metrics that the derived ones are computed from."""

E2E: Final = "e2e_s"
THROUGHPUT: Final = "output_throughput_token_per_s"
DERIVED: Final = (E2E, THROUGHPUT)

REPEAT_SD: Final = 0.02
"""Standard deviation of the logarithm of repeats of one measurement."""


@dataclass(frozen=True, slots=True)
class Loads:
    """Kind of load of each query; arrays of shape (n_query,).

    - `is_derived`: By metric of `DERIVED`, the queries in which it follows from TTFT and TPOT: E2E latency in closed
      and open loops, throughput in closed loops. Static batches are measured as a whole, and an offline run has all
      its requests at once.
    - `is_open_loop`: Requests arrive at a rate, so throughput is that rate.
    - `n_later_token`: Output tokens after the first.
    """

    is_derived: dict[str, BoolArray]
    is_open_loop: BoolArray
    n_later_token: FloatArray

    @classmethod
    def of(cls, descriptors: QueryTable) -> Self:
        """Return the loads of queries."""
        d = descriptor_arrays(descriptors)
        is_live = d["workload.is_static"] == 0
        is_closed = is_live & ~np.isnan(d["workload.concurrency"])
        is_open = is_live & ~np.isnan(d["workload.request_rate_per_s"])
        return cls({E2E: is_closed | is_open, THROUGHPUT: is_closed}, is_open, d["workload.n_output_token"] - 1)


def reconcile(
    value: ByMetric, estimates: ByMetric, mean_correction: ByMetric, estimate: Estimate, loads: Loads
) -> dict[str, FloatArray]:
    """Return predictions in which E2E latency and throughput agree with TTFT and TPOT where they follow from these.

    Both move away from their estimates as the mean latency of a request does, so the estimate of a percentile keeps
    its shape and order. Throughput is of the run, whatever percentile the query names; of an open loop it is the
    estimate, the rate.

    - `value`, `estimates`: By metric, of shapes that end in (n_query,); the estimates of the statistics that the
      queries name.
    - `mean_correction`: Predicted over estimated mean of `SOURCES`, of the same shapes; empty where one is not
      predicted.
    - `estimate`: Of means.
    """
    result = dict(value)
    if THROUGHPUT in value:
        result[THROUGHPUT] = np.where(loads.is_open_loop, estimates[THROUGHPUT], value[THROUGHPUT])
    if not mean_correction:
        return result
    corrections = corrections_by_metric(value, estimates, mean_correction)
    for metric, rows in loads.is_derived.items():
        if metric in value:
            before, after = _latency_parts(corrections[metric], estimate, loads)
            ratio = sum(after.values()) / sum(before.values())
            derived = estimates[metric] * (ratio if metric == E2E else 1 / ratio)
            least = value["ttft_s"] if metric == E2E else 0.0
            result[metric] = np.where(rows, np.maximum(derived, least), result[metric])
    return result


def corrections_by_metric(
    value: ByMetric, estimates: ByMetric, mean_correction: ByMetric
) -> dict[str, dict[str, FloatArray]]:
    """Return the corrections of `SOURCES` that each derived metric follows: of the statistic, or of the mean."""
    of_statistic = {metric: value[metric] / estimates[metric] for metric in SOURCES}
    return {E2E: of_statistic, THROUGHPUT: dict(mean_correction)}


def source_shares(correction: ByMetric, estimate: Estimate, loads: Loads) -> dict[str, FloatArray]:
    """Return the weights of TTFT's and TPOT's log corrections in that of the latency, each of shape (n_query,).

    Notes
    -----
    Logarithmic means make the decomposition exact: the weighted log corrections sum to that of the latency.

    References
    ----------
    B. W. Ang, "The LMDI approach to decomposition analysis: a practical guide", Energy Policy 2005.
    """
    before, after = _latency_parts(correction, estimate, loads)
    total = logarithmic_mean(np.asarray(sum(after.values())), np.asarray(sum(before.values())))
    return {metric: logarithmic_mean(after[metric], before[metric]) / total for metric in SOURCES}


def service_shares(correction: ByMetric, estimate: Estimate, loads: Loads) -> dict[str, FloatArray]:
    """Return the weights of TTFT's and TPOT's errors in that of a closed loop's throughput: shapes (n_query,).

    They are `source_shares` of the time that a request holds a slot. The queue before it lasts as long as other
    requests hold theirs: it has their error, which TPOT has mostly, and none of its own.
    """
    return source_shares(correction, replace(estimate, ttft_s=estimate.ttft_s - estimate.queue_s), loads)


def combine_sds(share: ByMetric, sd: ByMetric) -> FloatArray:
    """Return the standard deviation of a derived metric's logarithm, the errors of `SOURCES` taken as independent."""
    return np.asarray(np.hypot(*(share[metric] * sd[metric] for metric in SOURCES)))


def sd_of_rate(rate_ratio: FloatArray, sd: FloatArray) -> FloatArray:
    """Return the standard deviation of the logarithm of an open loop's throughput: shape (n_query,).

    The deployment keeps up with the rate, to `REPEAT_SD`, unless its capacity is lower. It then falls behind by as
    much as the capacity is off, so that the standard deviation `sd` of the capacity's logarithm counts with that
    probability.

    `rate_ratio`: shape (n_query,): request rate over the estimated saturation rate. `sd`: shape (n_query,).

    Examples
    --------
    >>> sd_of_rate(np.array([0.1, 0.9, 1.0]), np.full(3, 0.3)).round(3)
    array([0.02 , 0.108, 0.151])

    References
    ----------
    G. Camilli, "Origin of the scaling constant d = 1.7 in item response theory", J. Educational and Behavioral
    Statistics 1994: the logistic function of 1.702 z is within .01 of the normal distribution's at z.
    """
    odds = np.minimum(rate_ratio, 16.0) ** (1.702 / np.maximum(sd, REPEAT_SD))
    return np.hypot(REPEAT_SD, odds / (1 + odds) * sd)


def derived_scores(
    shares: Mapping[str, ByMetric], loads: Loads, errors: ByMetric, expected_sd: ByMetric
) -> dict[str, FloatArray]:
    """Return absolute standardised errors of derived metrics, shaped as the errors, (..., n_row), NaN where unknown.

    Where a metric follows from TTFT and TPOT its standard deviation is theirs combined. Its own held-out log error
    counts where it was measured beside them, for it is not quite the sum of its parts; elsewhere it is theirs
    combined, as they are measured of far more LLMs.
    """
    scores = {}
    for metric in errors.keys() & shares.keys():
        share = shares[metric]
        error = sum(share[source] * errors[source] for source in SOURCES)
        error = np.where(np.isfinite(error) & np.isfinite(errors[metric]), errors[metric], error)
        combined = np.abs(error) / combine_sds(share, expected_sd)
        own = np.abs(errors[metric]) / expected_sd[metric]
        scores[metric] = np.where(loads.is_derived[metric], combined, own)
    return scores


def impute_source_errors(
    error: dict[str, FloatArray],
    is_derived: Mapping[str, BoolArray],
    shares: Mapping[str, ByMetric],
    seconds: ByMetric,
) -> None:
    """Attribute the error of a derived metric to TTFT or TPOT, and set its own to 0.

    A missing error of the source with at least half of the latency is computed; the other source's stays unknown. If
    both are missing it is the error of the latency. If the other one is known, its measured seconds are subtracted
    from the measured latency, and the error is that of the remaining seconds, NaN if none remain. If both are known,
    the derived metric adds nothing.

    `shares`: `source_shares` by derived metric. `seconds`: expected seconds of each source in the latency; NaN except
    in means, for percentiles do not add up.
    """
    for metric in DERIVED:
        if metric not in error:
            continue
        rows, latency_error = is_derived[metric], error[metric] if metric == E2E else -error[metric]
        before = {source: error[source] for source in SOURCES}
        is_known = ~np.isnan(error[metric]) | np.all([~np.isnan(before[source]) for source in SOURCES], axis=0)
        for source, other in (SOURCES, SOURCES[::-1]):
            rest = (seconds[source] + seconds[other]) * np.exp(latency_error) - seconds[other] * np.exp(before[other])
            expected = np.where(seconds[source] > 0, seconds[source], np.nan)
            rest_error = np.log(np.where(rest > 0, rest, np.nan) / expected)
            imputed = np.where(np.isnan(before[other]), latency_error, rest_error)
            takes = rows & np.isnan(before[source]) & (shares[metric][source] >= 0.5)
            error[source] = np.where(takes, imputed, error[source])
        error[metric] = np.where(rows, np.where(is_known, 0.0, np.nan), error[metric])


def _latency_parts(
    correction: ByMetric, estimate: Estimate, loads: Loads
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    before = {"ttft_s": estimate.ttft_s, "tpot_s": loads.n_later_token * estimate.tpot_s}
    return before, {metric: seconds * correction[metric] for metric, seconds in before.items()}


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
    return np.where(np.abs(distance) >= 1e-9, mean, a)
