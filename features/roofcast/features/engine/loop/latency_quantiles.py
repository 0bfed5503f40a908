"""Quantiles of latency, by the parts of the estimated means: TTFT, TPOT and E2E over requests, ITL over tokens."""

from dataclasses import dataclass

import numpy as np

from roofcast.features.engine.coefficients import CoefficientSource, RowCoefficients
from roofcast.features.engine.estimate import Estimate, scheduling_step
from roofcast.features.engine.finite_run import waiting_ratio
from roofcast.features.engine.kernel_times import touched_expert
from roofcast.features.engine.memory import n_slot
from roofcast.features.engine.operators import new_token
from roofcast.features.queries import BoolArray, FloatArray, Queries, RowIndex, take_rows

_TINY = 1e-9
_MAX_VARIATION = 1.0
_MAX_ELASTICITY = 0.98
_WINDOW_VARIANCE = 2 / 3
_EVEN_VARIANCE = 1 / 3


def latency_quantiles(d: Queries, c: CoefficientSource, e: Estimate) -> tuple[RowIndex, dict[str, FloatArray]]:
    """Return the rows that ask for a quantile, and the quantile of each latency in these rows, in seconds.

    Static batches have no spread, so they are not among the rows.

    Notes
    -----
    Each part of an estimated mean has a distribution of that mean. Quantiles of the parts of one request are added,
    as if the request that waits longest for one part waits longest for each, so quantiles rise with their level.
    """
    rows = np.flatnonzero((d["workload.is_mean"] < 0.5) & (d["workload.is_static"] < 0.5))
    if not len(rows):
        return rows, {}
    some: Queries = take_rows(dict(d), rows)
    asked = _Asked(some, take_rows(c.by_row(d["config.engine"]), rows), take_rows(e, rows), some["workload.quantile"])
    quantiles = {"ttft_s": _ttft_s, "itl_s": _itl_s, "tpot_s": _tpot_s, "e2e_s": _e2e_s}
    return rows, {name: quantile(asked) for name, quantile in quantiles.items()}


@dataclass(frozen=True, slots=True)
class _Asked:
    d: Queries
    c: RowCoefficients
    e: Estimate
    level: FloatArray

    @property
    def is_open(self) -> BoolArray:
        return np.asarray(self.e.rate_ratio > 0)

    @property
    def running(self) -> FloatArray:
        return np.maximum(self.e.batch / self.d["config.dp"], 1.0)

    @property
    def others(self) -> FloatArray:
        return np.maximum(self.running - 1, _TINY)

    @property
    def first_ratio(self) -> FloatArray:
        return np.minimum(1 / self.e.n_wave, 1.0)

    @property
    def length_ratio(self) -> FloatArray:
        """The length of a prompt or an answer over its mean: gamma, at most as varied as an exponential one."""
        return _gamma_quantile(np.minimum(self.d["workload.length_variation"], _MAX_VARIATION) ** 2, self.level)


def _ttft_s(a: _Asked) -> FloatArray:
    """Return quantiles of TTFT.

    Notes
    -----
    The first request of each slot meets an even share of all prompts. What the estimate has beyond that is groups of
    later requests that still arrive together, or always do: each meets an even share of its group. Other prompts are
    met while one is in prefill, for an exponential time. The wait for steps under way is even. Prompts vary as
    answers do, of which alone the variation is known.
    """
    e, first = a.e, np.minimum(a.first_ratio, a.e.together_ratio)
    together = np.minimum(e.together_ratio * e.other_prompts_s / 2, e.prompts_ahead_s)
    place = np.maximum(
        a.level / (first + (1 - first) / _later_group_ratio(a)), (a.level - 1 + first) / np.maximum(first, _TINY)
    )
    busy = np.minimum(e.other_prompts_s / np.maximum(e.e2e_s - e.queue_s, _TINY), 1.0)
    met = 2 * together * place / np.maximum(e.together_ratio, _TINY)
    met += _tail(busy, e.prompts_ahead_s - together, a.level)
    wait = scheduling_step(a.d, a.c) * np.minimum(a.others, 1.0) * e.step.total_s * (2 * a.level - 1)
    own = e.ttft_s - e.queue_s - e.prompts_ahead_s + e.prefill_s * (a.length_ratio - 1)
    return np.asarray(own + _admission_s(a) + met + wait)


def _later_group_ratio(a: _Asked) -> FloatArray:
    first = np.minimum(a.first_ratio, a.e.together_ratio)
    return np.asarray(np.maximum((a.e.together_ratio - first) / np.maximum(1 - first, _TINY), _TINY))


def _admission_s(a: _Asked) -> FloatArray:
    """Return quantiles of the wait for a slot.

    Notes
    -----
    Clients of a closed loop start together: some find a slot, the others queue, and later requests wait alike.
    The queue of random arrivals has an exponential tail; beyond saturation it grows evenly during the run.
    """
    e, first = a.e, a.first_ratio
    served = np.minimum(e.served_ratio, 1.0)
    steady = e.queue_s / np.maximum(1 - (1 + served) / 2 * first, _TINY)
    in_line = steady * np.clip((a.level - first * served) / np.maximum(first * (1 - served), _TINY), 0.0, 1.0)
    slots = n_slot(a.d, e.memory)
    used = e.request_throughput_per_s * (e.e2e_s - e.queue_s) / slots
    random = np.where(e.is_saturated, 2 * a.level * e.queue_s, _tail(waiting_ratio(used, slots), e.queue_s, a.level))
    return np.where(a.is_open, random, in_line)


def _itl_s(a: _Asked) -> FloatArray:
    """Return quantiles of the gap between tokens.

    Notes
    -----
    A gap is a step plus the prefills in it: of a mixed step those of one chunk. Their number is that of a Poisson
    distribution in the share of steps in which prompts arrive, at polls and in groups. Groups dissolve: their size is
    the geometric mean of a lone prompt and the mean group (judgement).
    """
    e, d = a.e, a.d
    is_mixed, n_chunk = d["config.is_mixed"] > 0, new_token(d) / d["config.chunk_token"]
    most = np.where(is_mixed, np.maximum(1 / n_chunk, 1.0), np.inf)
    n_chunk = np.where(is_mixed, np.maximum(n_chunk, 1.0), 1.0)
    whole = np.maximum(a.c["prefill_interference"] * e.prompt_s, _TINY)
    each = e.interference_s / whole * n_chunk
    grouped = d["config.poll_interval_step"] * np.sqrt(1 + _later_group_ratio(a) * a.others / 2)
    grouped = np.minimum(grouped, np.maximum(most / np.maximum(each, _TINY), 1.0))
    level, mean = 1 - (1 - a.level) * grouped, each * grouped
    count = np.minimum(_count_quantile(mean, level), np.minimum(most, a.others))
    return e.itl_s + np.where(a.level > 0.5, count * whole / n_chunk, 0.0)


def _tpot_s(a: _Asked) -> FloatArray:
    """Return quantiles of TPOT.

    Notes
    -----
    An answer of z tokens meets the prompts of others at random, z times as many as one of a single token, and divides
    their time by z: so short answers have the widest TPOT. With lengths of variation v the variance of the time lost
    to prompts, over its squared mean, is ``(1 + v ** 2) / n`` (Poisson counts; 1 / z to second order), n the prompts
    that a mean answer meets, one of each other request. A gamma distribution has this mean and variance. Of the first
    requests the first in line meets all others and the last one none, evenly between, with a variance of 1/3; the
    larger of both variances counts. In an open loop the batch varies too; its mean over an answer has 2/3 of its
    variance, because the covariance decreases linearly to zero over the length of an answer. Above the median both
    deviations from it add in squares, as independent ones do; below it they simply add.
    """
    variation = a.d["workload.length_variation"]
    variance = np.maximum((1 + variation**2) / a.others, a.first_ratio * _EVEN_VARIANCE)
    middle = _gamma_quantile(variance, np.full_like(a.level, 0.5))
    met = a.e.interference_s * (_gamma_quantile(variance, a.level) - middle)
    varied = _normal_quantile(a.level) * _step_slope_s(a) * _batch_deviation(a)
    median = a.e.tpot_s + a.e.interference_s * (middle - 1)
    return np.asarray(median + np.where(varied > 0, np.hypot(met, varied), met + varied), dtype=np.float64)


def _e2e_s(a: _Asked) -> FloatArray:
    """Return quantiles of end-to-end latency.

    Notes
    -----
    It varies with the output length, with the wait for a slot, and with the batch. Prompts
    that a request waits for before its prefill do not interrupt its decoding, so these effects cancel.
    """
    e = a.e
    slope = e.interference_s / a.others + _step_slope_s(a)
    per_token = e.tpot_s * (a.length_ratio - 1) + _normal_quantile(a.level) * slope * _batch_deviation(a)
    own = e.e2e_s - e.queue_s
    return np.asarray(own + _admission_s(a) + a.d["workload.n_output_token"] * per_token)


def _batch_deviation(a: _Asked) -> FloatArray:
    """Return the deviation of the mean batch over an answer at random arrivals.

    Notes
    -----
    The number of requests has the variance ``L / (1 - x)`` for x the elasticity of their residence, the share of it
    that is prefills of others.
    """
    elasticity = np.clip(a.e.interference_s / a.e.tpot_s, 0.0, _MAX_ELASTICITY)
    return np.where(a.is_open, np.sqrt(a.others / (1 - elasticity) * _WINDOW_VARIANCE), 0.0)


def _step_slope_s(a: _Asked) -> FloatArray:
    # Products of few tokens read the same weights whatever their number.
    step, n_expert, n_choice = a.e.step, a.d["model.n_expert"], a.d["model.n_expert_per_token"]
    touched, more = (touched_expert(n_expert, n_choice, n) for n in (a.running, a.running + 1))
    experts = np.where(n_expert > 0, more / np.maximum(touched, 1.0) - 1, 0.0)
    return np.asarray((step.attention_s / a.running + step.expert_s * experts) * a.e.itl_s / step.total_s)


def _gamma_quantile(variance: FloatArray, level: FloatArray) -> FloatArray:
    """Return quantiles of gamma distributions of mean 1 and the given variances.

    Notes
    -----
    The cube root of a gamma variable is nearly normal.

    References
    ----------
    E. B. Wilson and M. M. Hilferty, "The Distribution of Chi-Square", PNAS 17(12), 1931.

    Examples
    --------
    A tenth of chi-square with ten degrees of freedom has mean 1 and variance 0.2; tables say 15.99 at 0.9:

    >>> _gamma_quantile(np.array([0.2]), np.array([0.9])).round(2)
    array([1.6])
    """
    ninth = variance / 9
    return np.asarray(np.maximum(1 - ninth + _normal_quantile(level) * np.sqrt(ninth), 0.0) ** 3)


def _normal_quantile(level: FloatArray) -> FloatArray:
    from scipy.special import ndtri  # noqa: PLC0415  (a server starts without it)

    return np.asarray(ndtri(level), dtype=np.float64)


def _count_quantile(mean: FloatArray, level: FloatArray) -> FloatArray:
    # Cornish-Fisher expansion of a Poisson count.
    z = _normal_quantile(np.clip(level, _TINY, 1 - _TINY))
    count = np.maximum(np.floor(mean + z * np.sqrt(mean) + (z * z - 1) / 6 + 0.5), 1.0)
    return np.asarray(count * (level > np.exp(-mean)))


def _tail(ratio: FloatArray, mean: FloatArray, level: FloatArray) -> FloatArray:
    # A share waits, for an exponential time.
    share = np.maximum(ratio, _TINY)
    return np.asarray(mean / share * np.log(np.maximum(share / (1 - level), 1.0)))
