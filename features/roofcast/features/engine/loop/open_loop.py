"""Mean-value model of a replica under an open loop, from which the shape of percentiles comes.

`features.engine.estimate` has the model that the estimated means come from.
"""

from dataclasses import replace

import numpy as np

from roofcast.features.engine.loop.closed_loop import Loop, Requests, StepTimes, closed_loop
from roofcast.features.queries import FloatArray

_N_SECANT = 10
_MAX_UTILISATION = 0.999
_MAX_PREFILL_UTILISATION = 0.98
_TINY = 1e-12
_UNLIMITED = 1e6


def saturation_rate(capacity: FloatArray, step_s: StepTimes, r: Requests) -> FloatArray:
    """Return the saturation rate in requests per second: above it the queue grows without bound.

    Examples
    --------
    Ten slots, answers of 1 s:

    >>> one = np.ones(1)
    >>> r = Requests(101 * one, 0 * one, 0 * one, 0 * one, one, one, one, 0.2 * one, np.inf * one)
    >>> saturation_rate(10 * one, lambda batch: 0.01 + 0 * batch, r).round(6)
    array([10.])
    """
    full = np.clip(capacity, 1.0, _UNLIMITED)
    return closed_loop(
        full + 1, full, step_s, replace(r, requests_per_slot=np.full_like(r.requests_per_slot, np.inf))
    ).request_per_s


def open_loop(rate_per_s: FloatArray, capacity: FloatArray, step_s: StepTimes, r: Requests) -> Loop:
    """Return the steady state of random arrivals at a rate; above saturation, that of 0.999 of saturation.

    Notes
    -----
    Random arrivals see the mean number L of other requests (PASTA), as a client of a closed loop of L + 1 does; L
    solves ``L = rate stay(L + 1)`` and increases with the rate. Its variance is ``L / (1 - rate stay')``. A prompt
    waits for the rest of the polling interval and for the prompts before it: an M/G/1 queue with vacations, gated
    where the engine polls rarely. The queueing time for a slot is that of M/G/k with the k of this variance: ``u **
    (sqrt(2 (k + 1)) - 1)`` (Sakasegawa), halved because lengths are not exponential (Allen and Cunneen).

    References
    ----------
    R. W. Wolff, "Poisson Arrivals See Time Averages", Operations Research 30(2), 1982.
    Y. Levy and U. Yechiali, "Utilization of Idle Time in an M/G/1 Queueing System", Management Science 22(2), 1975.
    H. Sakasegawa, "An Approximation Formula L = alpha rho^beta / (1 - rho)", Ann. Inst. Stat. Math. 29, 1977.
    A. O. Allen, "Probability, Statistics, and Queueing Theory", Academic Press, 1990.

    Examples
    --------
    Two requests per second, answers of 1 s: two run.

    >>> one = np.ones(1)
    >>> r = Requests(101 * one, 0 * one, 0 * one, 0 * one, one, one, one, 0.2 * one, np.inf * one)
    >>> open_loop(2 * one, 10 * one, lambda batch: 0.01 + 0 * batch, r).running.round(2)
    array([2.01])
    """
    full, unlimited = np.clip(capacity, 1.0, _UNLIMITED), np.full_like(capacity, np.inf)
    limit = saturation_rate(capacity, step_s, r)
    rate = np.minimum(rate_per_s, _MAX_UTILISATION * limit)
    mixed = replace(r, requests_per_slot=unlimited, spread=np.ones_like(r.spread))

    def solve(others: FloatArray) -> Loop:
        return closed_loop(others + 1, unlimited, step_s, mixed)

    others = _fixed_point(lambda n: rate * solve(n).e2e_s, full)
    gap = 0.05 * others + 0.05
    loop, more = solve(others), solve(others + gap)
    slope = np.clip(rate * (more.e2e_s - loop.e2e_s) / gap, 0.0, _MAX_PREFILL_UTILISATION)
    alone, delay_ratio, delay, look = _first_token(rate, others, loop, r)
    ttft = alone + delay + look / 2
    stay = ttft + (r.n_output - 1) * loop.tpot_s
    used = np.minimum(others / full, 1.0)
    p_wait = used ** (np.sqrt(2 * (full * (1 - slope) + 1)) - 1)
    queue = p_wait / (limit - rate) / 2
    return replace(
        loop,
        requests=replace(r, requests_per_slot=unlimited),
        concurrency=rate * (stay + queue),
        running=np.minimum(rate * stay, full),
        batch=np.minimum(loop.batch, full),
        delay_ratio=delay_ratio,
        delay_s=delay,
        look_s=look,
        queue_s=queue,
        later_queue_s=queue,
        queue_ratio=p_wait,
        ttft_s=ttft + queue,
        e2e_s=stay + queue,
        request_per_s=rate,
        deviation=np.sqrt(others / (1 - slope)),
        slope_s=(more.tpot_s - loop.tpot_s) / gap,
        step_slope_s=(more.step_s - loop.step_s) / gap,
        is_open=np.ones(rate.shape, dtype=bool),
        is_saturated=rate_per_s >= limit,
    )


def _first_token(
    rate: FloatArray, others: FloatArray, loop: Loop, r: Requests
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    present = 1 - np.exp(-others)
    service = r.prefill_s + r.n_chunk * present * loop.step_s
    used = np.minimum(rate * service, _MAX_PREFILL_UTILISATION)
    delay = used * service / (2 * (1 - used))
    is_seldom = r.poll_step > 1
    prefill_pass_s = np.where(r.n_chunk > 0, 0.0, loop.step_s / r.n_together)
    load = np.clip(rate * (r.prefill_s - prefill_pass_s), 0.0, _MAX_PREFILL_UTILISATION)
    between = r.poll_step * loop.step_s / (1 - load)
    came = rate * between
    lone_pass = np.where(r.n_chunk > 0, 0.0, np.maximum(1 - np.exp(-came) - came / r.n_together, 0.0))
    between = between - lone_pass * loop.step_s / (1 - load)
    gated = np.where(r.n_chunk < 1, np.minimum(rate * r.prefill_s, _MAX_PREFILL_UTILISATION), used)
    look = present * np.where(is_seldom, between * (1 + gated), loop.step_s)
    shared = np.minimum(loop.arrival_per_step * r.poll_step, r.n_together - 1) / 2
    alone = r.fixed_s + r.prefill_s * (1 + shared) + np.ceil(r.n_chunk) * present * loop.step_s
    return alone, used, delay, look


def _fixed_point(image: StepTimes, high: FloatArray) -> FloatArray:
    # Secant steps from below do not pass the fixed point of a convex function; a step outside the bracket is replaced
    # by its geometric mean.
    before = np.zeros_like(high)
    f_before = image(before)
    point = np.clip(f_before, _TINY, high)
    low = point
    for _ in range(_N_SECANT):
        f = image(point) - point
        low, high = np.where(f > 0, point, low), np.where(f > 0, high, point)
        fall = (f_before - f) / np.maximum(np.abs(point - before), _TINY) * np.sign(point - before)
        following = point + f / np.where(fall > 0, fall, _TINY)
        is_inside = (following > low) & (following < high)
        before, f_before = point, f
        point = np.where(is_inside, following, np.where(f == 0, point, np.sqrt(low * high)))
    return point
