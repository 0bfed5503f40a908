"""A replica under load: running requests, waits and throughput at a concurrency, as formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
StepTimes = Callable[[FloatArray], FloatArray]

_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Requests:
    """What each row asks of one replica, and how its engine schedules; every array has shape (n_row,).

    Parameters
    ----------
    n_output, prefill_s
        Mean tokens of an answer, and time to prefill a mean prompt alone.
    fixed_s
        Time that a request spends outside the engine's passes, part of TTFT.
    n_chunk
        Prompt tokens over the chunk that a step carries along, may be below 1; 0 where prompts are prefilled whole
        while decoding stands still.
    n_together
        Prompts of one prefill pass, at least 1; with chunks, chunk over prompt tokens where that is more.
    poll_step
        Steps from one look at the arrivals to the next; 1 looks at each.
    interference_ratio
        Time that the prefill of another request takes from decoding, over `prefill_s`; 1 where nothing overlaps.
    spread
        Lengths are even between ``1 - spread`` and 1 of nominal; 0 if fixed.
    requests_per_slot
        Requests that each client sends, after all started at once; infinite for a steady state.
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

    @property
    def start_ratio(self) -> FloatArray:
        """Share of the requests that belong to the common start."""
        return 1 / self.requests_per_slot

    @property
    def length_width_ratio(self) -> FloatArray:
        """Width of the lengths over their mean."""
        return self.spread / (1 - self.spread / 2)

    @property
    def drain_ratio(self) -> FloatArray:
        """Share of the requests that are the last of their clients, as far as these do not end together."""
        apart = self.length_width_ratio / np.sqrt(self.start_ratio + _TINY)
        return self.start_ratio * np.minimum(apart, 1.0)


@dataclass(frozen=True, slots=True)
class Loop:
    """A replica under load; every array has shape (n_row,). Times are means over requests unless said otherwise.

    Parameters
    ----------
    concurrency, running, batch
        Requests in flight, those that have a place, and those of a decode step.
    step_s
        The plain decode step: the time between tokens where no prefill comes in.
    arrival_per_step, crowd
        New requests in a decode step, and how many times denser they come: answers begun together end together.
    ahead, later_ahead
        Prompts that a request waits for: the mean, and that after the common start.
    delay_ratio, delay_s, look_s
        Share of requests that find the chunked or open loop's prefill busy, the mean wait (over all) that it means,
        and the longest wait for the scheduler to look.
    queue_s, later_queue_s, queue_ratio
        Wait for a place: the mean, that after the common start, and the share of requests in an open loop that wait.
    ttft_s, tpot_s, e2e_s, request_per_s
        The means, and requests finished a second over the whole run.
    deviation, slope_s
        Standard deviation of the requests in an open loop, and what one more adds to TPOT.
    is_open, is_saturated
        Whether requests come at a rate, and whether that is more than can be served.
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


@dataclass(frozen=True, slots=True)
class _Company:
    """Whom a request of the closed loop meets before its first token, in prompts, and its waits in steps."""

    prompt_step: FloatArray
    look_step: FloatArray
    rounding_step: FloatArray
    density: FloatArray
    crowd: FloatArray
    queued: FloatArray
    later: FloatArray
    first: FloatArray


def crowding(r: Requests) -> FloatArray:
    """Return how many times denser than evenly requests come, over a run after a common start.

    Notes
    -----
    After j answers with lengths of relative width s the clients are spread over about ``s sqrt(j)`` of an answer, so
    that they come ``max(1, 1 / (s sqrt(j)))`` times as densely. The mean over j = 1 ..
    requests_per_slot - 1 is approximated by an integral from 1/2 with equal weights.
    """
    width = np.maximum(r.length_width_ratio, _TINY)
    is_cold = np.isfinite(r.requests_per_slot)
    last = np.where(is_cold, np.maximum(r.requests_per_slot, 1.0), 2.0) - 0.5
    even = np.clip(width**-2, 0.5, last)
    total = 2 * (np.sqrt(even) - np.sqrt(0.5)) / width + last - even
    return np.where(is_cold, np.maximum(total / np.maximum(last - 0.5, _TINY), 1.0), 1.0)


def closed_loop(concurrency: FloatArray, capacity: FloatArray, step_s: StepTimes, r: Requests) -> Loop:
    """Return the loop of `concurrency` clients that each ask again at once, on a replica with `capacity` places.

    Parameters
    ----------
    concurrency, capacity : shape (n_row,)
        Of one replica or data-parallel rank; fractions are allowed.
    step_s : StepTimes
        Seconds of a decode step by the requests in it; called once.
    r : Requests
        What is asked.

    Notes
    -----
    In the time of one answer each other running request is prefilled once, and that time is paid once: in TTFT
    by those who wait for it, in TPOT by those who decode. Hence, with z decode steps an answer,
    ``TTFT = (1 + ahead) prefill + waits`` and ``TPOT = step + (run - 1 - ahead) prefill / z``. Requests beyond
    capacity wait ``C / run - 1`` times one stay (Little). After a common start the first requests count with weight
    ``1 / requests_per_slot``; while the last answers end, no prefill comes in and the batch falls evenly to nothing.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961.

    Examples
    --------
    Four requests, 100 steps of 10 ms, prefills of 20 ms: ``10 + 3 x 20 / 100`` ms a token, but for prompts that
    came in the same step; all four end once in 1.08 s:

    >>> one = np.ones(1)
    >>> r = Requests(101 * one, 0.02 * one, 0 * one, 0 * one, one, one, one, 0 * one, np.inf * one)
    >>> loop = closed_loop(4 * one, 100 * one, lambda batch: 0.01 + 0 * batch, r)
    >>> loop.tpot_s.round(4), loop.ttft_s.round(4), loop.request_per_s.round(3)
    (array([0.0106]), array([0.0204]), array([3.704]))
    """
    run = np.minimum(concurrency, np.maximum(capacity, 1.0))
    others, z = np.maximum(run - 1, 0.0), np.maximum(r.n_output - 1, 1.0)
    start, drain, with_others = r.start_ratio, r.drain_ratio, np.minimum(others, 1.0)
    met = _company(run, z, replace(r, poll_step=np.where(concurrency > run, 1.0, r.poll_step)))
    ahead = start * met.first + (1 - start) * met.later
    batch = np.maximum(met.density * z, np.minimum(run, 1.0))
    step = step_s(batch * (1 - drain / 6))
    wait = met.rounding_step + met.look_step + (1 - start) * met.prompt_step + start * r.n_chunk * (1 + met.first)
    ttft = r.fixed_s + (1 + ahead) * r.prefill_s + wait * with_others * step
    tpot = step + r.interference_ratio * np.maximum(others * (1 - drain / 2) - ahead, 0.0) * r.prefill_s / z
    stay = ttft + z * tpot
    later_queue = np.maximum(concurrency / run - 1, 0.0) * stay
    queue = later_queue * (1 - start * (1 + run / concurrency) / 2)
    zero, never = np.zeros_like(run), np.zeros(run.shape, dtype=bool)
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
        is_open=never,
        is_saturated=never,
        queue_ratio=zero,
        deviation=zero,
        slope_s=zero,
    )


def _company(run: FloatArray, z: FloatArray, r: Requests) -> _Company:
    """Return whom a request meets.

    Notes
    -----
    Of a group of g others that come within the same step (or interval of polling) half are ahead; a pass
    of m prompts makes its first wait for its last, another ``min(g, m - 1) / 2``. Answers of fixed length that began
    together end together for ever.
    """
    others = np.maximum(run - 1, 0.0)
    is_chunked = r.n_chunk > 0
    in_step = np.isfinite(r.requests_per_slot) & (r.spread == 0)
    look = np.where(in_step & (r.n_chunk * run <= 1), 0.0, (r.poll_step - 1) / 2 * np.minimum(others, 1.0))
    prompt_step = _prompt_step(run, z, r)
    rounding = np.ceil(r.n_chunk) - r.n_chunk
    density = run / (z + prompt_step + rounding + look)
    crowd = crowding(r)
    group = np.minimum(density * r.poll_step * np.where(is_chunked, 1.0, crowd), others)
    group = np.where(in_step & is_chunked, np.minimum(r.n_together - 1, others), group)
    prompt_step = prompt_step + r.n_chunk * np.maximum(group - 1, 0.0) / 2
    queued = np.where(is_chunked, prompt_step / np.maximum(r.n_chunk, _TINY) - 1, group / 2)
    later = np.minimum(queued + np.minimum(group, r.n_together - 1) / 2, others)
    first = (others + np.minimum(others, r.n_together - 1)) / 2
    density = run / (z + prompt_step + rounding + look)
    return _Company(prompt_step, look, rounding, density, crowd, queued, later, first)


def _prompt_step(run: FloatArray, z: FloatArray, r: Requests) -> FloatArray:
    """Return the steps that a chunked prompt waits for and takes.

    Notes
    -----
    The prefill serves one prompt after the other, n_chunk steps each, to clients that are away for z steps: the
    machine repairman. With half a service left of the prompt under way, Schweitzer's mean value equation is
    quadratic in the wait. Answers of equal length never meet again once they have met: that term then vanishes.

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
