"""Waits of runs: the startup burst of a closed loop, prompts ahead, and queues below and above saturation."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from roofcast.features.queries import BoolArray, FloatArray

TYPICAL_REQUESTS_PER_SLOT: Final = 10.0
"""Requests per slot assumed where unknown: the number of most published benchmarks."""


def requests_per_slot(d: Mapping[str, FloatArray], cycle_s: FloatArray) -> FloatArray:
    """Return the requests per slot of concurrency, of shape (n_row,); infinite for open loops, which have no burst.

    A timed run has as many as cycles fit into its duration. An offline run of known length has one: all its requests
    are in flight from the start.

    Examples
    --------
    >>> nan = np.nan
    >>> known = {"n_wave": [4.0, nan, nan, nan, nan], "n_request": [32.0, nan, nan, 500.0, nan]}
    >>> load = {"concurrency": [8.0, 8.0, nan, nan, 8.0], "request_rate_per_s": [nan, nan, 3.0, nan, nan]}
    >>> run = known | load | {"duration_s": [nan, nan, nan, nan, 60.0]}
    >>> d = {f"workload.{name}": np.array(values) for name, values in run.items()}
    >>> requests_per_slot(d, np.full(5, 5.0))
    array([ 4., 10., inf,  1., 12.])
    """
    duration = d["workload.duration_s"]
    known = np.where(np.isnan(duration), d["workload.n_wave"], np.maximum(duration / cycle_s, 1.0))
    known = np.where(is_all_at_once(d), 1.0, known)
    given = np.where(np.isnan(known), TYPICAL_REQUESTS_PER_SLOT, known)
    return np.where(np.isnan(d["workload.request_rate_per_s"]), given, np.inf)


def is_all_at_once(d: Mapping[str, FloatArray]) -> BoolArray:
    """Return whether the run is offline with a known number of requests, which are all in flight from the start."""
    is_offline = np.isnan(d["workload.concurrency"]) & np.isnan(d["workload.request_rate_per_s"])
    return np.asarray(is_offline & ~np.isnan(d["workload.n_request"]))


def startup_burst_ratio(requests_per_slot: FloatArray, burst: FloatArray) -> FloatArray:
    """Return the share of requests in the startup burst, of shape (n_row,).

    `burst`: shape (n_row,): the share in a run of `TYPICAL_REQUESTS_PER_SLOT`; it is inversely proportional to the
    requests per slot, because only the first request of each slot is in the burst.
    """
    return np.asarray(np.minimum(burst * TYPICAL_REQUESTS_PER_SLOT / requests_per_slot, 1.0), dtype=np.float64)


TYPICAL_RUN_S: Final = 600.0
"""Duration of an open-loop run whose number of requests is unknown: the least duration of a valid MLPerf run.

References
----------
MLCommons, "MLPerf Inference Rules", section "Benchmarks", minimum duration.
"""

_CRITICAL: Final = 2 / 3 * np.sqrt(2 / np.pi)


def n_request(d: Mapping[str, FloatArray]) -> FloatArray:
    """Return the requests of each open-loop run: those of `TYPICAL_RUN_S` where unknown."""
    sent, rate = d["workload.n_request"], d["workload.request_rate_per_s"]
    return np.where(np.isnan(sent), np.maximum(rate * TYPICAL_RUN_S, 1.0), sent)


def mean_queue_s(steady_s: FloatArray, requests_per_slot: FloatArray, served_ratio: FloatArray) -> FloatArray:
    """Return the mean wait for a slot in a closed loop of `requests_per_slot` requests per client.

    `steady_s`: wait of a request that finds all clients in flight. `served_ratio`: running requests over those in
    flight.

    Notes
    -----
    Clients start together: the k-th beyond the slots waits for k completions, so the first request of a client waits
    for half the steady queue on average, or not at all if it finds a slot.

    Examples
    --------
    Four requests at once and one slot wait 0, 1, 2 and 3 s; with endless requests each waits 3 s:

    >>> mean_queue_s(np.array([3.0, 3.0]), np.array([1.0, np.inf]), np.array([0.25, 0.25]))
    array([1.125, 3.   ])
    """
    return np.asarray(steady_s * (1 - (1 + served_ratio) / 2 / requests_per_slot))


def achieved_rate(rate_per_s: FloatArray, e2e_s: FloatArray, queue_s: FloatArray, n_sent: FloatArray) -> FloatArray:
    """Return the completed requests per second of a run that sends `n_sent` requests at a rate.

    Notes
    -----
    The run lasts until the last request ends, which queues twice as long as the mean one if the queue grows.

    Examples
    --------
    A hundred requests, 10 a second, of 1 s each, take 11 s:

    >>> achieved_rate(np.array([10.0]), np.array([1.0]), np.array([0.0]), np.array([100.0])).round(3)
    array([9.091])
    """
    return np.asarray(rate_per_s / (1 + rate_per_s * (e2e_s + queue_s) / n_sent))


def arrival_queue_s(
    used_ratio: FloatArray, n_slot: FloatArray, margin_per_s: FloatArray, limit_per_s: FloatArray, n_sent: FloatArray
) -> FloatArray:
    """Return the mean wait of random arrivals for a slot, without that of a queue that grows beyond saturation.

    `used_ratio`: slots in use. `margin_per_s`: saturation rate minus request rate.

    Notes
    -----
    In a steady state that of a queue with as many servers as slots, halved because lengths are not exponential. Near
    saturation a run ends before the queue is that long: the wait then is that of a reflected Brownian motion without
    drift, averaged over the run, with the variance of the arrivals.

    References
    ----------
    H. Sakasegawa, "An Approximation Formula L = alpha rho^beta / (1 - rho)", Ann. Inst. Stat. Math. 29, 1977;
    A. O. Allen, "Probability, Statistics, and Queueing Theory", Academic Press, 1990 (Allen and Cunneen's half);
    J. M. Harrison, "Brownian Motion and Stochastic Flow Systems", Wiley, 1985, section 2.8.
    """
    p_wait = waiting_ratio(used_ratio, n_slot)
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = np.where(margin_per_s > 0, p_wait / margin_per_s / 2, np.inf)
        critical = p_wait * _CRITICAL * np.sqrt(n_sent) / limit_per_s
    return np.asarray(np.fmin(steady, critical))


def waiting_ratio(used_ratio: FloatArray, n_slot: FloatArray) -> FloatArray:
    """Return the share of random arrivals that wait for a slot: see `arrival_queue_s`."""
    return np.asarray(np.minimum(used_ratio, 1.0) ** (np.sqrt(2 * (n_slot + 1)) - 1))


_MAX_QUEUED_PROMPT: Final = 4.5


def prompt_wait_s(
    other_prompts: FloatArray, prompt_s: FloatArray, cycle_s: FloatArray, collision: FloatArray
) -> FloatArray:
    """Return the wait for prefills of other requests, each of which arrives at random once per cycle.

    Notes
    -----
    Machine-repairman model by mean-value analysis: each other request is in prefill for a share ``(prompt + wait) /
    (cycle + wait)`` of the time, and half of its prompt remains. `collision` multiplies the remainder. The queue is
    at most 4.5 prompts: an engine that falls further behind prefills several in one pass.

    References
    ----------
    P. J. Schweitzer, "Approximate Analysis of Multiclass Closed Networks of Queues", Int. Conf. on Stochastic Control
    and Optimization, Amsterdam, 1979. The longest queue is judgement.

    Examples
    --------
    One other request whose prompt takes a hundredth of the cycle; then three that only prefill:

    >>> prompt_wait_s(np.array([1.0, 3.0]), np.ones(2), np.array([100.0, 1.0]), np.ones(2)).round(3)
    array([0.005, 2.581])
    """
    demand = other_prompts * prompt_s
    remainder = collision / 2
    excess = demand - cycle_s
    wait = (excess + np.sqrt(excess**2 + 4 * remainder * demand * prompt_s)) / 2
    return np.asarray(np.minimum(wait, _MAX_QUEUED_PROMPT * collision * prompt_s))
