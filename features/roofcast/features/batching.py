"""The closed loop: what a running engine makes of a concurrency or a request rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roofcast.features.coefficients import Coefficients
from roofcast.features.memory import Memory, estimate_memory
from roofcast.features.operators import StepTime, estimate_prefill_s, estimate_step

FloatArray = npt.NDArray[np.float64]
Descriptors = Mapping[str, FloatArray]

_N_BISECTION = 48
_MIN_CONCURRENCY = 1e-12
_BEYOND_CAPACITY = 16.0
_SHARPNESS = 4.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Analytic estimate of each question; arrays have shape (n_question,).

    `concurrency` is that of the question, or for a request rate the one that Little's law gives; `is_saturated`
    marks rates above what the replica can serve: their queue grows for as long as they last, and the estimate is that
    of 16 times as many requests as fit. TPOT includes the prefills of other requests, ITL is the plain step between
    them.
    """

    memory: Memory
    step: StepTime
    concurrency: FloatArray
    batch: FloatArray
    prefill_s: FloatArray
    interference_s: FloatArray
    queue_s: FloatArray
    ttft_s: FloatArray
    itl_s: FloatArray
    tpot_s: FloatArray
    e2e_s: FloatArray
    output_throughput_token_per_s: FloatArray
    is_saturated: npt.NDArray[np.bool_]

    @property
    def request_throughput_per_s(self) -> FloatArray:
        """Requests finished per second."""
        return self.concurrency / self.e2e_s


def estimate(d: Descriptors, c: Coefficients) -> Estimate:
    """Return the estimate of each question, whether closed or open loop.

    Notes
    -----
    For a request rate the concurrency is the one whose closed-loop request throughput equals the rate (Little's
    law); throughput never falls with concurrency, so it is found by bisection. Below one request in flight it
    is proportional.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961.

    Examples
    --------
    Throughput is concurrency times output tokens over the time of one request:

    >>> from roofcast.features.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> e = estimate(example_descriptors(), DEFAULT_COEFFICIENTS)
    >>> bool(abs(e.output_throughput_token_per_s[0] - 8 * 200 / e.e2e_s[0]) < 1e-9)
    True
    """
    fixed = estimate_memory(d, c), estimate_prefill_s(d, c)
    concurrency = d["workload.concurrency"]
    rate = d["workload.request_rate_per_s"]
    is_open = np.isnan(concurrency)
    if not is_open.any():
        return _closed_loop(d, c, fixed, concurrency)
    low = np.full_like(rate, np.log(_MIN_CONCURRENCY))
    highest = np.log(_BEYOND_CAPACITY * np.clip(fixed[0].capacity, 1.0, 1e6))
    high = highest.copy()
    for _ in range(_N_BISECTION):
        middle = (low + high) / 2
        loop = _closed_loop(d, c, fixed, np.exp(middle))
        enough = loop.request_throughput_per_s >= rate
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    solved = np.where(is_open, np.exp(high), concurrency)
    is_saturated = is_open & (high >= highest)
    return replace(_closed_loop(d, c, fixed, solved), is_saturated=is_saturated)


def _closed_loop(
    d: Descriptors, c: Coefficients, fixed: tuple[Memory, FloatArray], concurrency: FloatArray
) -> Estimate:
    memory, prefill = fixed
    n_output = d["workload.n_output_token"]
    n_rank = d["config.dp"]
    per_rank = running_batch(concurrency / n_rank, memory.capacity / n_rank)
    batch = per_rank * n_rank
    step = estimate_step(d, c, batch)
    interference = c.prefill_interference * np.maximum(per_rank - 1, 0.0) * prefill / n_output
    tpot = step.total_s + interference
    service = c.request_overhead_s + prefill + c.wait_step * step.total_s
    stay = service + (n_output - 1) * tpot
    queue = np.maximum(concurrency / batch - 1, 0.0) * stay
    ttft = service + queue
    e2e = queue + stay
    return Estimate(
        memory=memory,
        step=step,
        concurrency=concurrency,
        batch=batch,
        prefill_s=prefill,
        interference_s=interference,
        queue_s=queue,
        ttft_s=ttft,
        itl_s=step.total_s,
        tpot_s=tpot,
        e2e_s=e2e,
        output_throughput_token_per_s=concurrency * n_output / e2e,
        is_saturated=np.zeros(len(concurrency), dtype=bool),
    )


def running_batch(concurrency: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return the requests that run together: the smaller of those there are and those that fit, smoothly.

    Lengths vary, so the limit is felt a little before the mean says so; the soft minimum has power 4. At least
    one request runs: a lone one is no faster for being rare.

    Examples
    --------
    >>> import numpy as np
    >>> running_batch(np.array([4.0, 64.0]), np.array([64.0, 4.0])).round(3)
    array([4., 4.])
    """
    fits = np.maximum(capacity, 1.0)
    wanted = np.maximum(concurrency, 1.0)
    soft = wanted * (1 + (wanted / fits) ** _SHARPNESS) ** (-1 / _SHARPNESS)
    return np.maximum(soft, 1.0)
