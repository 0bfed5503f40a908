"""Quantiles of latency under load: TTFT, TPOT and E2E over requests, ITL over tokens."""

from statistics import NormalDist

import numpy as np

from roofcast.features.engine.loop.closed_loop import Loop
from roofcast.features.queries import BoolArray, FloatArray

_TINY = 1e-9
_LEVELS = (0.5, 0.9, 0.95, 0.99)
_WINDOW_VARIANCE = 2 / 3
_EVEN_VARIANCE = 1 / 3


def ttft_quantile(loop: Loop, q: float) -> FloatArray:
    """Return the q-quantile of TTFT, in seconds, of shape (n_row,).

    Notes
    -----
    Requests of the startup burst and later ones have overlapping distributions, so the quantiles of such a run are
    sorted, which cannot increase their error.

    References
    ----------
    V. Chernozhukov, I. Fernandez-Val and A. Galichon, "Quantile and Probability Curves Without Crossing",
    Econometrica 2010.
    """
    if not np.isfinite(loop.requests.requests_per_slot).any():
        return _unsorted_ttft(loop, q)
    levels = sorted({*_LEVELS, q})
    return np.asarray(np.sort([_unsorted_ttft(loop, level) for level in levels], axis=0)[levels.index(q)])


def _unsorted_ttft(loop: Loop, q: float) -> FloatArray:
    """Return the q-quantile of TTFT if burst and later requests had disjoint distributions.

    Notes
    -----
    Requests of the startup burst queue: the one at share p of the line waits for that share of the prompts, and
    beyond capacity for that share of the queue. Later ones meet a Poisson number of prompts in their step, an
    exponential delay while the prefill is busy, and a uniform wait for the scheduler. The burst has the longest TTFT,
    or with a queue the shortest. Answers of fixed length that are prefilled whole stay synchronised, so each round of
    requests is a burst.
    """
    r = loop.requests
    stays_together = np.isfinite(r.requests_per_slot) & (r.spread == 0) & (r.n_chunk * loop.running <= 1)
    start = np.where(stays_together & (loop.later_queue_s == 0), 1.0, r.start_ratio)
    is_short = loop.later_queue_s * (1 - loop.is_open) > loop.running * r.prefill_s
    rest, line = _levels(start, is_short, q)
    later, first = _later_ttft(loop, rest), _start_ttft(loop, line)
    return np.where(np.where(is_short, q < start, q > 1 - start), first, later)


def _later_ttft(loop: Loop, rest: FloatArray) -> FloatArray:
    r = loop.requests
    others = np.maximum(loop.running - 1, 0.0)
    look = np.where(loop.later_queue_s > 0, 1.0, r.poll_step)
    group = np.maximum(np.minimum(loop.arrival_per_step * look * loop.crowd, others), _TINY)
    z = _probit(rest)
    none_before = -np.expm1(-group) / group
    before = _count_quantile(rest * group, group / 2, z) * (rest > none_before)
    company = np.minimum(_count_quantile(group, group, z) * (rest > np.exp(-group)), others)
    shared = 1 + np.minimum(loop.later_ahead, (r.n_together - 1) / 2)
    counted = (r.n_chunk == 0) & ~loop.is_open
    prompts = np.where(counted, _prompts(before, np.maximum(company, before), r.n_together), shared)
    present = np.where(loop.is_open, 1 - np.exp(-loop.running), np.minimum(others, 1.0))
    chunks = np.ceil(r.n_chunk) * present * loop.step_s
    delay = _tail(loop.delay_ratio, loop.delay_s, rest)
    queue = np.where(loop.is_open, _tail(loop.queue_ratio, loop.queue_s, rest), loop.later_queue_s)
    return r.fixed_s + prompts * r.prefill_s + chunks + delay + rest * loop.look_s + queue


def _start_ttft(loop: Loop, line: FloatArray) -> FloatArray:
    r = loop.requests
    others = np.maximum(loop.running - 1, 0.0)
    position = line * loop.concurrency
    prompts = _prompts(np.minimum(position, others), others, r.n_together)
    chunks = np.ceil(np.minimum(position, loop.running) * r.n_chunk) * loop.step_s * np.minimum(others, 1.0)
    beyond = np.maximum(position - loop.running, 0.0) / np.maximum(loop.concurrency - loop.running, _TINY)
    return r.fixed_s + prompts * r.prefill_s + chunks + beyond * loop.later_queue_s


def itl_quantile(loop: Loop, q: float) -> FloatArray:
    """Return the q-quantile of ITL over all tokens, in seconds.

    Notes
    -----
    A gap is a step plus the prefills in it: a Poisson number of prompts within the share of time in which they
    arrive, at most the prompts of a chunk; if a prompt spans several chunks, one chunk, in the share of steps with a
    chunk.
    """
    r = loop.requests
    dense = loop.crowd * np.where(loop.is_open | (loop.later_queue_s > 0), 1.0, r.poll_step)
    most = np.where(r.n_chunk > 0, r.n_together, np.inf)
    dense = np.minimum(dense, np.maximum(most / loop.arrival_per_step, 1.0))
    level = 1 - (1 - q) * dense
    mean = loop.arrival_per_step * dense
    count = np.minimum(_count_quantile(mean, mean, _probit(level)) * (level > np.exp(-mean)), most)
    has_chunk = 1 - q < loop.arrival_per_step * r.n_chunk
    chunk = np.where(has_chunk, 1 / np.maximum(r.n_chunk, _TINY), 0.0)
    return loop.step_s + r.interference_ratio * r.prefill_s * np.where(r.n_chunk >= 1, chunk, count)


def tpot_quantile(loop: Loop, q: float) -> FloatArray:
    """Return the q-quantile of TPOT, in seconds, of shape (n_row,).

    Notes
    -----
    An answer of z tokens meets the prompts of others at random, z times as many as one of a single token, and divides
    their time by z: so short answers have the widest TPOT. With lengths of variation v the variance of the time lost
    to prompts, over its squared mean, is ``(1 + v ** 2) / n`` (Poisson counts; 1 / z to second order), n the prompts
    that a mean answer meets, one of each other request. A gamma distribution has this mean and variance. In the
    startup burst the first in line meets all others and the last one none, evenly between, with a variance of 1/3. In
    an open loop the batch varies too; its mean over an answer has 2/3 of its variance, because the covariance
    decreases linearly to zero over the length of an answer. Above the median both deviations from it add in squares,
    as independent ones do; below it they simply add.
    """
    r = loop.requests
    n_met = np.maximum(loop.running - np.where(loop.is_open, 0.0, 1.0), _TINY)
    variance = (1 - r.start_ratio) * (1 + r.variation**2) / n_met + r.start_ratio * _EVEN_VARIANCE
    interference = loop.tpot_s - loop.step_s
    middle = _gamma_quantile(variance, 0.5)
    met = interference * (_gamma_quantile(variance, q) - middle)
    varied = NormalDist().inv_cdf(q) * _batch_deviation(loop)
    median = loop.tpot_s + interference * (middle - 1)
    return np.asarray(median + np.where(varied > 0, np.hypot(met, varied), met + varied), dtype=np.float64)


def e2e_quantile(loop: Loop, q: float) -> FloatArray:
    """Return the q-quantile of end-to-end latency, in seconds.

    Notes
    -----
    It varies with the output length, uniformly, and with the queueing time. Prompts that a request waits for before
    its prefill do not interrupt its decoding, so these effects cancel.
    """
    r = loop.requests
    is_bound = (loop.later_queue_s > 0) & ~loop.is_open
    rest, line = _levels(r.start_ratio, is_bound, q)
    waits = np.where(is_bound & (q < r.start_ratio), line * loop.later_queue_s, loop.later_queue_s)
    queue = np.where(loop.is_open, _tail(loop.queue_ratio, loop.queue_s, rest), waits)
    length = r.length_width_ratio * (rest - 0.5)
    varied = NormalDist().inv_cdf(q) * _tpot_deviation(loop)
    return loop.e2e_s - loop.queue_s + queue + r.n_output * (loop.tpot_s * length + varied)


def _tpot_deviation(loop: Loop) -> FloatArray:
    return np.asarray(loop.slope_s * loop.deviation * np.sqrt(_WINDOW_VARIANCE))


def _batch_deviation(loop: Loop) -> FloatArray:
    return np.asarray(loop.step_slope_s * loop.deviation * np.sqrt(_WINDOW_VARIANCE))


def _gamma_quantile(variance: FloatArray, q: float) -> FloatArray:
    """Return the q-quantile of gamma distributions of mean 1 and the given variances, of the shape of these.

    Notes
    -----
    The cube root of a gamma variable is nearly normal.

    References
    ----------
    E. B. Wilson and M. M. Hilferty, "The Distribution of Chi-Square", PNAS 17(12), 1931.

    Examples
    --------
    A tenth of chi-square with ten degrees of freedom has mean 1 and variance 0.2; tables say 15.99 at 0.9:

    >>> _gamma_quantile(np.array([0.2]), 0.9).round(2)
    array([1.6])
    """
    ninth = variance / 9
    return np.asarray(np.maximum(1 - ninth + NormalDist().inv_cdf(q) * np.sqrt(ninth), 0.0) ** 3)


def _levels(start: FloatArray, is_short: BoolArray, q: float) -> tuple[FloatArray, FloatArray]:
    later = np.maximum(1 - start, _TINY)
    rest = np.where(is_short, q - start, q) / later
    line = np.where(is_short, q, q - later) / np.maximum(start, _TINY)
    return np.clip(rest, 0.0, 1 - (1 - q) / 2), np.clip(line, 0.0, 1.0)


def _prompts(before: FloatArray, group: FloatArray, together: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(1 + group, together * (1 + np.floor(before / together))))


def _count_quantile(mean: FloatArray, variance: FloatArray, z: FloatArray) -> FloatArray:
    # The quantile at normal deviate z of a positive Poisson-like count (Cornish-Fisher expansion).
    return np.asarray(np.maximum(np.floor(mean + z * np.sqrt(variance) + (z * z - 1) / 6 + 0.5), 1.0))


def _tail(ratio: FloatArray, mean: FloatArray, q: FloatArray) -> FloatArray:
    share = np.maximum(ratio, _TINY)
    return np.asarray(mean / share * np.log(np.maximum(share / (1 - q), 1.0)))


def _probit(p: FloatArray) -> FloatArray:
    # The standard normal quantile, within 0.003 (Hastings).
    p = np.clip(p, _TINY, 1 - _TINY)
    t = np.sqrt(-2 * np.log(np.minimum(p, 1 - p)))
    size = t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t**2)
    return np.asarray(np.where(p < 0.5, -size, size))
