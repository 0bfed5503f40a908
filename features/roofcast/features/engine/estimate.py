"""The loop: what a running engine makes of a concurrency, a request rate, a batch or an endless queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roofcast.features.arrays import RowIndex, take_rows
from roofcast.features.engine.coefficients import Coefficients, RowCoefficients
from roofcast.features.engine.kernels.row_kernels import kernels_by_row
from roofcast.features.engine.loop.root_finding import Function, find_roots
from roofcast.features.engine.loop.startup_burst import startup_burst_ratio
from roofcast.features.engine.memo import Memo
from roofcast.features.engine.memory import Memory, estimate_memory
from roofcast.features.engine.messages import EngineInputs, prefill_descriptors, transfer_s
from roofcast.features.engine.operators import PassTime, alone_s, estimate_prefill, estimate_step, new_token

FloatArray = npt.NDArray[np.float64]
Descriptors = Mapping[str, FloatArray]

_MIN_CONCURRENCY = 1e-12
_BEYOND_CAPACITY = 16.0
_LONGEST_LINE = 4.5
_CHUNK_TOKEN = 8192.0
"""Prompt tokens after which the stages of a pipeline begin on the rest; vLLM's and SGLang's default chunk."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Analytic estimate of each question, of mean requests; arrays have shape (n_question,).

    Parameters
    ----------
    memory
        What fits.
    step, prefill
        Parts of a decode step and of the prefill of one request.
    concurrency
        Of the question, or for a request rate the one that Little's law gives.
    batch
        Requests that run together.
    prefill_s
        The prefill of one request while the other ranks prefill nothing.
    transfer_s
        What the way of the cache from prefill to decode adds to the first token, where they run apart.
    interference_s
        What the prefills of others add to each token.
    crowd_s, queue_s
        What a request waits for the prefills of others, and for a place in the batch.
    ttft_s, itl_s, tpot_s, e2e_s, output_throughput_token_per_s
        The metrics. TPOT includes the prefills of other requests, ITL is the plain gap between them.
    is_saturated
        Marks rates above what the replica can serve: their queue grows for as long as they last, and the estimate
        is that of 16 times as many requests as fit.
    """

    memory: Memory
    step: PassTime
    prefill: PassTime
    concurrency: FloatArray
    batch: FloatArray
    prefill_s: FloatArray
    transfer_s: FloatArray
    interference_s: FloatArray
    crowd_s: FloatArray
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


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What does not depend on the load."""

    setting: EngineInputs
    memory: Memory
    prefill: PassTime
    alone_s: FloatArray
    transfer_s: FloatArray


def estimate(d: Descriptors, c: Coefficients, memo: Memo | None = None) -> Estimate:
    """Return the estimate of each question.

    With neither a concurrency nor a rate the queue never ends: as many requests run as fit. A memo makes further
    estimates of the same descriptors object, by other coefficients, many times faster; it serves closed loops only.

    Notes
    -----
    A request that comes at a rate meets the mean number of others, as one more client of a closed loop would (random
    arrivals see averages); their number is the one that Little's law makes of the rate and of the time they stay.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961; R. W. Wolff,
    "Poisson Arrivals See Time Averages", Operations Research 30(2), 1982.

    Examples
    --------
    Throughput is concurrency times output tokens over the time of one request:

    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> e = estimate(example_descriptors(), DEFAULT_COEFFICIENTS)
    >>> bool(abs(e.output_throughput_token_per_s[0] - 8 * 200 / e.e2e_s[0]) < 1e-9)
    True
    """
    rate = d["workload.request_rate_per_s"]
    is_open = np.isnan(d["workload.concurrency"]) & ~np.isnan(rate)
    fixed = _fixed(d, c, None if is_open.any() else memo)
    full = np.maximum(fixed.memory.capacity, 1.0)
    concurrency = np.where(np.isnan(d["workload.concurrency"]), full, d["workload.concurrency"])
    if not is_open.any():
        return _closed_loop(fixed, concurrency)
    limit = np.full_like(rate, np.inf)
    others, limit[is_open] = _others_at(fixed if is_open.all() else take_rows(fixed, np.flatnonzero(is_open)))
    concurrency[is_open] = others + d["config.dp"][is_open]
    return _at_random(_closed_loop(fixed, concurrency), d, np.where(is_open, rate, np.nan), limit)


def _at_random(e: Estimate, d: Descriptors, rate: FloatArray, limit: FloatArray) -> Estimate:
    """Return the estimate where requests come at random at a rate, NaN for closed loops, below the replica's limit.

    Notes
    -----
    The wait for a place is that of a queue with as many servers as places, half as long as with random lengths.

    References
    ----------
    H. Sakasegawa, "An Approximation Formula L = alpha rho^beta / (1 - rho)", Ann. Inst. Stat. Math. 29, 1977;
    A. O. Allen, "Probability, Statistics, and Queueing Theory", Academic Press, 1990 (Allen and Cunneen's half).
    """
    is_served = rate < limit
    rate = np.where(is_served, rate, 0.0)
    full = np.maximum(e.memory.capacity, 1.0)
    stay = e.e2e_s - e.queue_s
    waits = np.minimum(rate * stay / full, 1.0) ** (np.sqrt(2 * (full + 1)) - 1)
    longest = (_BEYOND_CAPACITY - 1) * stay
    queue = np.where(is_served, np.minimum(waits / (limit - rate) / 2, longest), e.queue_s)
    ttft = e.ttft_s - e.queue_s + queue
    concurrency = np.where(is_served, rate * (stay + queue), e.concurrency)
    return replace(
        e,
        concurrency=concurrency,
        queue_s=queue,
        ttft_s=ttft,
        e2e_s=stay + queue,
        output_throughput_token_per_s=concurrency * d["workload.n_output_token"] / (stay + queue),
        is_saturated=~is_served & np.isfinite(limit),
    )


def _others_at(fixed: _Fixed) -> tuple[FloatArray, FloatArray]:
    """Return the mean number of requests that a new one meets at a rate, and the highest rate that can be served.

    The number is found in logarithms; beyond the highest rate it is 16 times what fits.
    """
    rate = np.log(fixed.setting.d["workload.request_rate_per_s"])
    n_rank = fixed.setting.d["config.dp"]

    def excess_of(rows: RowIndex) -> Function:
        some = fixed if len(rows) == len(rate) else take_rows(fixed, rows)
        return lambda x: x - np.log(_closed_loop(some, np.exp(x) + n_rank[rows]).e2e_s) - rate[rows]

    high = np.log(_BEYOND_CAPACITY * np.clip(fixed.memory.capacity, 1.0, 1e6))
    low = np.full_like(high, np.log(_MIN_CONCURRENCY))
    every = np.arange(len(rate))
    f_low, f_high = (excess_of(every)(x) for x in (low, high))
    limit = np.exp(f_high + rate) * (1 + n_rank / np.exp(high))
    return np.exp(find_roots(excess_of, low, high, f_low, f_high)), limit


def _fixed(d: Descriptors, c: Coefficients, memo: Memo | None) -> _Fixed:
    kernels = kernels_by_row(d) if memo is None else memo("kernels", lambda: kernels_by_row(d), d)
    setting = EngineInputs(d, c.by_row(d["config.engine"]), kernels, memo)
    n_static = np.maximum(d["workload.concurrency"] / d["config.dp"], 1.0)
    n_prompt = np.where(d["workload.is_static"] > 0, n_static, 1.0)
    prefill = estimate_prefill(setting, n_prompt)
    alone = alone_s(setting, prefill, n_prompt)
    if ((d["config.pp"] > 1) & (n_prompt * new_token(d) > _CHUNK_TOKEN)).any():
        alone = pipelined_s(alone, _last_chunk_s(setting, n_prompt), stage_ratio(d))
    is_apart = d["config.n_prefill_accelerator"] > 0
    transfer = np.zeros_like(alone)
    if is_apart.any():
        transfer = np.where(is_apart, transfer_s(setting, n_prompt, alone), 0.0)
    return _Fixed(setting, estimate_memory(d, setting.c), prefill, alone, transfer)


def stage_ratio(d: Descriptors) -> FloatArray:
    """Return the share of a pass that the longest stage of a pipeline takes: layers are whole.

    Examples
    --------
    Four stages of 32 layers have eight each; of 30 layers, two have eight:

    >>> stage_ratio({"model.n_layer": np.array([32.0, 30.0]), "config.pp": np.array([4.0, 4.0])}).round(3)
    array([0.25 , 0.267])
    """
    n_layer, pp = d["model.n_layer"], d["config.pp"]
    return np.where(pp > 1, np.ceil(n_layer / pp) / n_layer, 1.0)


def pipelined_s(whole_s: FloatArray, last_s: FloatArray, stage: FloatArray) -> FloatArray:
    """Return the time of a prefill whose chunks follow each other through the stages of a pipeline.

    Parameters
    ----------
    whole_s, last_s
        All chunks, and the last one, through all stages one after the other.
    stage
        Share of the longest stage.

    Notes
    -----
    The longest stage takes all chunks in turn, the last one has the other stages before and after it: with m equal
    chunks and p equal stages ``(m + p - 1) / (m p)`` of the whole.

    References
    ----------
    Y. Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS 2019,
    section 2.3.

    Examples
    --------
    Eight chunks of a second in four stages take eleven quarters:

    >>> pipelined_s(np.array([8.0]), np.array([1.0]), np.array([0.25]))
    array([2.75])
    """
    return np.asarray(stage * whole_s + (1 - stage) * last_s)


def _last_chunk_s(s: EngineInputs, n_prompt: FloatArray) -> FloatArray:
    """Return the time of the last chunk of some prompts through the whole model, alone."""
    n_new = new_token(s.d) / s.d["config.cp"]
    share = 1 - np.minimum(n_new, _CHUNK_TOKEN) * s.d["config.cp"] / s.d["workload.n_input_token"]
    last = replace(s, d=s.recall("last chunk", lambda: {**s.d, "workload.prefix_cache_ratio": share}))
    n_last = np.clip(_CHUNK_TOKEN / n_new, 1.0, n_prompt)
    return alone_s(last, estimate_prefill(last, n_last), n_last)


def _closed_loop(fixed: _Fixed, concurrency: FloatArray) -> Estimate:
    """Return the estimate at a concurrency.

    Notes
    -----
    In the time of one answer each other running request is prefilled once. A share of these prefills interrupts
    decoding; requests that meet others' prefills wait for them, at random or in one wave, and for each other request
    once at most. Requests of one fixed length that start together end together, and so do a share of them ever after.
    Where prefill runs apart, it interrupts nothing, and the wave is shared by the prefilling ranks. The stages of a
    pipeline work on micro-batches in turn, at the pace of the longest one when all are busy.
    """
    d, c = fixed.setting.d, fixed.setting.c
    n_output, n_rank = d["workload.n_output_token"], d["config.dp"]
    per_rank = running_batch(concurrency / n_rank, fixed.memory.capacity / n_rank, d["workload.length_variation"])
    batch = per_rank * n_rank
    step = estimate_step(fixed.setting, np.maximum(per_rank / d["config.pp"], 1.0))
    stage = stage_ratio(d)
    gap = step.total_s * np.maximum(np.minimum(per_rank, d["config.pp"]) * stage, 1.0) * token_cost(d, c)
    is_apart = d["config.n_prefill_accelerator"] > 0
    others = np.where(d["workload.is_static"] > 0, 0.0, np.maximum(per_rank - 1, 0.0))
    in_step = c["lockstep"] * (d["workload.length_variation"] <= 0)
    stage_s = fixed.prefill.total_s * stage
    interference = np.where(is_apart, 0.0, c["prefill_interference"] * (1 - in_step)) * others * stage_s / n_output
    tpot = gap + interference
    own = _own_s(fixed, step.total_s, others)
    rivals = np.where(is_apart, np.maximum(batch - 1, 0.0) / _n_prefill_rank(d), others)
    undisturbed = own + (n_output - 1) * tpot
    wave = np.maximum(startup_burst_ratio(d, c["burst"]), in_step) * rivals * stage_s / 2
    met = prompt_wait_s(rivals, stage_s, undisturbed, c["collision"])
    crowd = np.minimum(met + wave, rivals * stage_s)
    stay = undisturbed + crowd
    queue = np.maximum(concurrency / batch - 1, 0.0) * stay
    e2e = queue + stay
    return Estimate(
        memory=fixed.memory,
        step=step,
        prefill=fixed.prefill,
        concurrency=concurrency,
        batch=batch,
        prefill_s=fixed.alone_s,
        transfer_s=fixed.transfer_s,
        interference_s=interference,
        crowd_s=crowd,
        queue_s=queue,
        ttft_s=own + crowd + queue,
        itl_s=gap,
        tpot_s=tpot,
        e2e_s=e2e,
        output_throughput_token_per_s=concurrency * n_output / e2e,
        is_saturated=np.zeros(len(concurrency), dtype=bool),
    )


def _n_prefill_rank(d: Descriptors) -> FloatArray:
    """Return the ranks that prefill, where they do so apart."""
    width = prefill_descriptors(d)["config.tp"] * d["config.pp"]
    return np.maximum(d["config.n_prefill_accelerator"] / width, 1.0)


def _own_s(fixed: _Fixed, step_s: FloatArray, others: FloatArray) -> FloatArray:
    """Return the time to the first token where no prompt is in the way; an idle engine looks for requests at once."""
    d, c = fixed.setting.d, fixed.setting.c
    look = c["poll_ratio"] * d["config.poll_interval_step"] * np.minimum(others, 1.0)
    n_wait = np.where(d["workload.is_static"] > 0, 0.0, c["wait_step"] + look + d["config.batching_wait_step"])
    return np.asarray(c["request_overhead_s"] + fixed.alone_s + fixed.transfer_s + n_wait * step_s)


def prompt_wait_s(rivals: FloatArray, prompt_s: FloatArray, cycle_s: FloatArray, collision: FloatArray) -> FloatArray:
    """Return what a request waits for the prompts of its rivals, which come at random, once in a cycle each.

    Notes
    -----
    The machine repairman by mean values: each rival is found at prefill for its share ``(prompt + wait) / (cycle +
    wait)`` of the time. Of a rival's prompt half is left at random, and all once prefill never rests, since one
    prompt then begins when another ends; `collision` multiplies that. The line is never longer than 4.5 prompts:
    an engine that falls further behind prefills several in one pass.

    References
    ----------
    P. J. Schweitzer, "Approximate Analysis of Multiclass Closed Networks of Queues", Int. Conf. on Stochastic
    Control and Optimization, Amsterdam, 1979; the longest line: judgement.

    Examples
    --------
    One rival whose prompt takes a hundredth of the cycle; then prompts alone, where each waits for all others:

    >>> import numpy as np
    >>> prompt_wait_s(np.array([1.0, 3.0]), np.ones(2), np.array([100.0, 1.0]), np.ones(2)).round(3)
    array([0.005, 3.   ])
    """
    asked = rivals * prompt_s
    left = collision * (1 + np.minimum(asked / cycle_s, 1.0)) / 2
    excess = asked - cycle_s
    wait = (excess + np.sqrt(excess**2 + 4 * left * asked * prompt_s)) / 2
    return np.asarray(np.minimum(wait, _LONGEST_LINE * collision * prompt_s))


def token_cost(d: Descriptors, c: RowCoefficients) -> FloatArray:
    """Return the decode steps that one token of a sequence takes: 1, less with speculation that is accepted.

    The chance of acceptance is the question's, and the coefficient where none is told.
    """
    n_draft = d["config.n_draft_token"]
    told = d["config.acceptance_ratio"]
    chance = np.where(np.isnan(told), c["acceptance"], told)
    return (1 + n_draft * c["draft_ratio"]) / n_accepted(chance, n_draft)


def n_accepted(acceptance: FloatArray, n_draft: FloatArray) -> FloatArray:
    """Return the tokens that one step yields per sequence: the drafts accepted in a row, and one more.

    References
    ----------
    Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding", ICML 2023,
    equation 1.

    Examples
    --------
    Three drafts at 70 %:

    >>> import numpy as np
    >>> n_accepted(np.array([0.7]), np.array([3.0])).round(3)
    array([2.533])
    """
    chance = np.minimum(acceptance, 0.999)
    return np.asarray((1 - chance ** (n_draft + 1)) / (1 - chance))


def running_batch(concurrency: FloatArray, capacity: FloatArray, variation: FloatArray) -> FloatArray:
    """Return the requests that run together: the smaller of those there are and those that fit, smoothly.

    Where lengths vary the limit is felt before the mean says so: the power of the soft minimum is 2 over the
    variation, between 4 and 24. At least one request runs: a lone one is no faster for being rare.

    Examples
    --------
    >>> import numpy as np
    >>> running_batch(np.array([4.0, 64.0]), np.array([64.0, 4.0]), np.array([0.5, 0.5])).round(3)
    array([4., 4.])
    """
    fits = np.maximum(capacity, 1.0)
    wanted = np.maximum(concurrency, 1.0)
    power = np.clip(2.0 / np.maximum(variation, 1e-3), 4.0, 24.0)
    excess = power * np.log(wanted / fits)
    return np.asarray(np.maximum(wanted * np.exp(-np.logaddexp(0.0, excess) / power), 1.0), dtype=np.float64)
