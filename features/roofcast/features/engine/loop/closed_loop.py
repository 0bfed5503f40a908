"""Mean-value model of a replica under a closed loop, from which the shape of percentiles comes.

`features.engine.estimate` has the model that the estimated means come from.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from roofcast.features.queries import BoolArray, FloatArray

StepTimes = Callable[[FloatArray], FloatArray]

_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests to one replica and its scheduling; every array has shape (n_row,).

    - `n_output`, `prefill_s`: Mean output tokens, and prefill time of a mean prompt without other work.
    - `fixed_s`: Time of a request outside the engine's passes, part of TTFT.
    - `n_chunk`: Prompt tokens over the chunk size of a mixed step, possibly below 1; 0 if prompts are prefilled whole
      while decoding stops.
    - `n_together`: Prompts in one prefill pass, at least 1; with chunked prefill, chunk size over prompt tokens if
      larger.
    - `poll_step`: Steps between polls for new requests; 1 polls at each step.
    - `interference_ratio`: Time that another request's prefill takes from decoding, over `prefill_s`; 1 without
      overlap.
    - `spread`: Output lengths are uniform between ``1 - spread`` and 1 of the nominal length; 0 if fixed.
    - `requests_per_slot`: Requests of each client after a simultaneous start; infinite for a steady state.
    - `length_variation`: Coefficient of variation of the output lengths; None for that of `spread`, which is bounded.
    """

    n_output: FloatArray
    prefill_s: FloatArray
    fixed_s: FloatArray
    n_chunk: FloatArray
    n_together: FloatArray
    poll_step: FloatArray
    interference_ratio: FloatArray
    spread: FloatArray
    requests_per_slot: FloatArray
    length_variation: FloatArray | None = None

    @property
    def variation(self) -> FloatArray:
        """Coefficient of variation of the output lengths."""
        even = self.length_width_ratio / np.sqrt(12.0)
        return even if self.length_variation is None else self.length_variation

    @property
    def start_ratio(self) -> FloatArray:
        """Share of the requests in the startup burst."""
        return 1 / self.requests_per_slot

    @property
    def length_width_ratio(self) -> FloatArray:
        """Width of the length distribution over its mean."""
        return self.spread / (1 - self.spread / 2)

    @property
    def drain_ratio(self) -> FloatArray:
        """Share of the requests that are the last of their clients, reduced if clients end together."""
        apart = self.length_width_ratio / np.sqrt(self.start_ratio + _TINY)
        return self.start_ratio * np.minimum(apart, 1.0)


@dataclass(frozen=True, slots=True)
class Loop:
    """Solution of the loop; every array has shape (n_row,). Times are means over requests unless stated otherwise.

    - `concurrency`, `running`, `batch`: Requests in flight, those with a slot, and those in a decode step.
    - `step_s`: Decode step without prefill.
    - `arrival_per_step`, `crowd`: Arrivals per decode step, and the factor on their density: answers that begin
      together end together.
    - `ahead`, `later_ahead`: Prompts that a request waits for: mean, and mean after the startup burst.
    - `delay_ratio`, `delay_s`, `look_s`: Share of requests that find the chunked or open-loop prefill busy, the mean
      wait over all requests, and the longest wait for the next poll.
    - `queue_s`, `later_queue_s`, `queue_ratio`: Queueing time for a slot: mean, mean after the startup burst, and the
      share of open-loop requests that queue.
    - `ttft_s`, `tpot_s`, `e2e_s`, `request_per_s`: Means, and completed requests per second over the whole run.
    - `deviation`, `slope_s`, `step_slope_s`: Standard deviation of the number of requests in an open loop, and the
      increase of TPOT per request, in all and without prefills.
    - `is_open`, `is_saturated`: Whether requests arrive at a rate, and whether the rate exceeds saturation.
    """

    requests: Requests
    concurrency: FloatArray
    running: FloatArray
    batch: FloatArray
    step_s: FloatArray
    arrival_per_step: FloatArray
    crowd: FloatArray
    ahead: FloatArray
    later_ahead: FloatArray
    delay_ratio: FloatArray
    delay_s: FloatArray
    look_s: FloatArray
    queue_s: FloatArray
    later_queue_s: FloatArray
    ttft_s: FloatArray
    tpot_s: FloatArray
    e2e_s: FloatArray
    request_per_s: FloatArray
    is_open: BoolArray
    is_saturated: BoolArray
    queue_ratio: FloatArray
    deviation: FloatArray
    slope_s: FloatArray
    step_slope_s: FloatArray


@dataclass(frozen=True, slots=True)
class _Encounters:
    prompt_step: FloatArray
    look_step: FloatArray
    rounding_step: FloatArray
    density: FloatArray
    crowd: FloatArray
    queued: FloatArray
    later: FloatArray
    first: FloatArray


def crowding(r: Requests) -> FloatArray:
    """Return the factor on the arrival density over a run that starts with a burst, relative to even arrivals.

    Notes
    -----
    After j answers with lengths of relative width s the clients are spread over about ``s sqrt(j)`` of an answer, so
    arrivals are ``max(1, 1 / (s sqrt(j)))`` times denser. The mean over j = 1 .. requests_per_slot - 1 is
    approximated by an integral from 1/2 with equal weights.
    """
    width = np.maximum(r.length_width_ratio, _TINY)
    is_cold = np.isfinite(r.requests_per_slot)
    last = np.where(is_cold, np.maximum(r.requests_per_slot, 1.0), 2.0) - 0.5
    even = np.clip(width**-2, 0.5, last)
    total = 2 * (np.sqrt(even) - np.sqrt(0.5)) / width + last - even
    return np.where(is_cold, np.maximum(total / np.maximum(last - 0.5, _TINY), 1.0), 1.0)


def closed_loop(concurrency: FloatArray, capacity: FloatArray, step_s: StepTimes, r: Requests) -> Loop:
    """Return the solution for `concurrency` clients without think time on a replica with `capacity` slots.

    `concurrency` and `capacity`: shape (n_row,): of one replica or data-parallel rank; may be fractional. `step_s`:
    StepTimes: seconds of a decode step as a function of its requests; called once.

    Notes
    -----
    During one answer each other running request is prefilled once, and that time counts once: in TTFT of the requests
    that wait for it, in TPOT of those that decode. Hence, with z decode steps per answer, ``TTFT = (1 + ahead)
    prefill + waits`` and ``TPOT = step + (run - 1 - ahead) prefill / z``. Requests beyond capacity queue for ``C /
    run - 1`` times the residence time (Little). The startup burst has weight ``1 / n`` for n requests per slot; while
    the last answers end, no prefill arrives and the batch decreases linearly to zero.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961.

    Examples
    --------
    Four requests, 100 steps of 10 ms, prefills of 20 ms: ``10 + 3 x 20 / 100`` ms a token, except for prompts that
    arrive in the same step; each of the four completes every 1.08 s:

    >>> one = np.ones(1)
    >>> r = Requests(101 * one, 0.02 * one, 0 * one, 0 * one, one, one, one, 0 * one, np.inf * one)
    >>> loop = closed_loop(4 * one, 100 * one, lambda batch: 0.01 + 0 * batch, r)
    >>> loop.tpot_s.round(4), loop.ttft_s.round(4), loop.request_per_s.round(3)
    (array([0.0106]), array([0.0204]), array([3.704]))
    """
    run = np.minimum(concurrency, np.maximum(capacity, 1.0))
    others, z = np.maximum(run - 1, 0.0), np.maximum(r.n_output - 1, 1.0)
    start, drain, with_others = r.start_ratio, r.drain_ratio, np.minimum(others, 1.0)
    met = _encounters(run, z, replace(r, poll_step=np.where(concurrency > run, 1.0, r.poll_step)))
    ahead = start * met.first + (1 - start) * met.later
    batch = np.maximum(met.density * z, np.minimum(run, 1.0))
    step = step_s(batch * (1 - drain / 6))
    wait = met.rounding_step + met.look_step + (1 - start) * met.prompt_step + start * r.n_chunk * (1 + met.first)
    ttft = r.fixed_s + (1 + ahead) * r.prefill_s + wait * with_others * step
    absent = (1 - start) * drain / 2
    tpot = step + r.interference_ratio * np.maximum(others * (1 - absent) - ahead, 0.0) * r.prefill_s / z
    stay = ttft + z * tpot
    later_queue = np.maximum(concurrency / run - 1, 0.0) * stay
    queue = later_queue * (1 - start * (1 + run / concurrency) / 2)
    zero, none = np.zeros_like(run), np.zeros(run.shape, dtype=bool)
    delay = met.queued * r.prefill_s + (met.prompt_step - r.n_chunk) * with_others * step
    return Loop(
        requests=r,
        concurrency=concurrency,
        running=run,
        batch=batch,
        step_s=step,
        arrival_per_step=met.density,
        crowd=met.crowd,
        ahead=ahead,
        later_ahead=met.later,
        delay_ratio=np.minimum(met.density * r.n_chunk, 1.0),
        delay_s=delay * (r.n_chunk > 0),
        look_s=2 * met.look_step * step,
        queue_s=queue,
        later_queue_s=later_queue,
        ttft_s=ttft + queue,
        tpot_s=tpot,
        e2e_s=stay + queue,
        request_per_s=concurrency / (later_queue + stay) / (1 + drain / 2),
        is_open=none,
        is_saturated=none,
        queue_ratio=zero,
        deviation=zero,
        slope_s=zero,
        step_slope_s=zero,
    )


def _encounters(run: FloatArray, z: FloatArray, r: Requests) -> _Encounters:
    """Return the requests that a request meets before its first token.

    Notes
    -----
    Of g other requests that arrive in the same step (or polling interval) half are ahead. In a pass of m prompts the
    first one waits for the last one, on average ``min(g, m - 1) / 2`` more. Answers of fixed length that begin
    together always end together.
    """
    others = np.maximum(run - 1, 0.0)
    is_chunked = r.n_chunk > 0
    is_synchronised = np.isfinite(r.requests_per_slot) & (r.spread == 0)
    look = np.where(is_synchronised & (r.n_chunk * run <= 1), 0.0, (r.poll_step - 1) / 2 * np.minimum(others, 1.0))
    prompt_step = _prompt_step(run, z, r)
    rounding = np.ceil(r.n_chunk) - r.n_chunk
    density = run / (z + prompt_step + rounding + look)
    crowd = crowding(r)
    group = np.minimum(density * r.poll_step * np.where(is_chunked, 1.0, crowd), others)
    group = np.where(is_synchronised & is_chunked, np.minimum(r.n_together - 1, others), group)
    prompt_step = prompt_step + r.n_chunk * np.maximum(group - 1, 0.0) / 2
    queued = np.where(is_chunked, prompt_step / np.maximum(r.n_chunk, _TINY) - 1, group / 2)
    later = np.minimum(queued + np.minimum(group, r.n_together - 1) / 2, others)
    first = (others + np.minimum(others, r.n_together - 1)) / 2
    density = run / (z + prompt_step + rounding + look)
    return _Encounters(prompt_step, look, rounding, density, crowd, queued, later, first)


def _prompt_step(run: FloatArray, z: FloatArray, r: Requests) -> FloatArray:
    """Return the steps from arrival to the end of a chunked prefill.

    Notes
    -----
    Machine-repairman model: the prefill serves one prompt at a time, n_chunk steps each, for clients that are away
    for z steps. With half a service left of the prompt in progress, Schweitzer's mean-value equation is quadratic in
    the wait. Answers of equal length do not meet again after the first encounter: that term then vanishes.

    References
    ----------
    P. J. Schweitzer, "Approximate Analysis of Multiclass Closed Networks of Queues", Int. Conf. on Stochastic
    Control and Optimization, Amsterdam, 1979.
    """
    excess = r.n_chunk * run - z
    deviation = r.spread * r.n_output / np.sqrt(12)
    chance = deviation / (deviation + np.maximum(r.n_chunk, _TINY))
    met = chance * (4 * r.n_chunk * z - 2 * r.n_chunk**2 * np.maximum(run - 1, 0.0))
    return np.asarray(np.maximum((excess + np.sqrt(np.maximum(excess**2 + met, 0.0))) / 2, r.n_chunk))
