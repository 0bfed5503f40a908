"""Analytic estimate of latency and throughput: a mean-value model of a serving engine under load."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roofcast.features.arrays import Descriptors, FloatArray, RowIndex, take_rows
from roofcast.features.engine.coefficients import Coefficients, RowCoefficients
from roofcast.features.engine.kernels.row_kernels import kernels_by_row
from roofcast.features.engine.loop.root_finding import Function, find_roots
from roofcast.features.engine.loop.startup_burst import startup_burst_ratio
from roofcast.features.engine.memo import Memo
from roofcast.features.engine.memory import Memory, estimate_memory
from roofcast.features.engine.messages import EngineInputs, prefill_descriptors, transfer_s
from roofcast.features.engine.operators import PassTime, alone_s, estimate_prefill, estimate_step, new_token

_MIN_CONCURRENCY = 1e-12
_BEYOND_CAPACITY = 16.0
_MAX_QUEUED_PROMPT = 4.5
_CHUNK_TOKEN = 8192.0
"""Tokens of one prefill chunk, the unit of pipelining over stages; default chunk size of vLLM and SGLang."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Analytic estimate of each row, as means over requests; arrays have shape (n_row,).

    Parameters
    ----------
    step, prefill
        Operator times of one decode step and of the prefill of one request.
    concurrency
        Of the query; for a request rate by Little's law.
    batch
        Running requests.
    prefill_s
        Prefill of one request while the other ranks prefill nothing.
    transfer_s
        Delay of the first token by the transfer of the KV cache, with disaggregated prefill.
    interference_s
        Time that prefills of other requests add to each token.
    crowd_s, queue_s
        Wait for prefills of other requests, and queueing time for a slot in the batch.
    ttft_s, itl_s, tpot_s, e2e_s, output_throughput_token_per_s
        The metrics. TPOT includes prefills of other requests; ITL is the gap between tokens without them.
    is_saturated
        Whether the request rate exceeds the saturation rate. The queue then grows without bound, and the estimate is
        that of 16 times the capacity.
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
        """Completed requests per second."""
        return self.concurrency / self.e2e_s


@dataclass(frozen=True, slots=True)
class _LoadIndependent:
    """Quantities that do not depend on the load."""

    inputs: EngineInputs
    memory: Memory
    prefill: PassTime
    alone_s: FloatArray
    transfer_s: FloatArray


def estimate(d: Descriptors, c: Coefficients, memo: Memo | None = None) -> Estimate:
    """Return the estimate of each row.

    Without concurrency and rate the load is offline: the batch is full. A memo accelerates further estimates of the
    same descriptors object with other coefficients; it is used for closed loops only.

    Notes
    -----
    Random arrivals see time averages (PASTA): a request that arrives at a rate meets the mean number of other
    requests, as an additional client of a closed loop does. Their number follows from rate and residence time by
    Little's law.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961; R. W. Wolff,
    "Poisson Arrivals See Time Averages", Operations Research 30(2), 1982.

    Examples
    --------
    Throughput is concurrency times output tokens over the end-to-end latency:

    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> e = estimate(example_descriptors(), DEFAULT_COEFFICIENTS)
    >>> bool(abs(e.output_throughput_token_per_s[0] - 8 * 200 / e.e2e_s[0]) < 1e-9)
    True
    """
    rate = d["workload.request_rate_per_s"]
    is_open = np.isnan(d["workload.concurrency"]) & ~np.isnan(rate)
    fixed = _load_independent(d, c, None if is_open.any() else memo)
    full = np.maximum(fixed.memory.capacity, 1.0)
    concurrency = np.where(np.isnan(d["workload.concurrency"]), full, d["workload.concurrency"])
    if not is_open.any():
        return _closed_loop(fixed, concurrency)
    limit = np.full_like(rate, np.inf)
    others, limit[is_open] = _solve_open_loop(fixed if is_open.all() else take_rows(fixed, np.flatnonzero(is_open)))
    concurrency[is_open] = others + d["config.dp"][is_open]
    return _with_random_arrivals(_closed_loop(fixed, concurrency), d, np.where(is_open, rate, np.nan), limit)


def _with_random_arrivals(e: Estimate, d: Descriptors, rate: FloatArray, limit: FloatArray) -> Estimate:
    """Return the estimate with the queue of random arrivals at a rate below `limit`; NaN rates are closed loops.

    Notes
    -----
    The queueing time is that of a queue with as many servers as slots, halved because lengths are not exponential.

    References
    ----------
    H. Sakasegawa, "An Approximation Formula L = alpha rho^beta / (1 - rho)", Ann. Inst. Stat. Math. 29, 1977;
    A. O. Allen, "Probability, Statistics, and Queueing Theory", Academic Press, 1990 (Allen and Cunneen's half).
    """
    is_served = rate < limit
    rate = np.where(is_served, rate, 0.0)
    full = np.maximum(e.memory.capacity, 1.0)
    stay = e.e2e_s - e.queue_s
    p_wait = np.minimum(rate * stay / full, 1.0) ** (np.sqrt(2 * (full + 1)) - 1)
    max_queue = (_BEYOND_CAPACITY - 1) * stay
    queue = np.where(is_served, np.minimum(p_wait / (limit - rate) / 2, max_queue), e.queue_s)
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


def _solve_open_loop(fixed: _LoadIndependent) -> tuple[FloatArray, FloatArray]:
    """Return the mean number of requests that an arrival meets, and the saturation rate, in requests per second.

    The number is solved for in logarithms; beyond saturation it is 16 times the capacity.
    """
    rate = np.log(fixed.inputs.d["workload.request_rate_per_s"])
    n_rank = fixed.inputs.d["config.dp"]

    def excess_of(rows: RowIndex) -> Function:
        subset = fixed if len(rows) == len(rate) else take_rows(fixed, rows)
        return lambda x: x - np.log(_closed_loop(subset, np.exp(x) + n_rank[rows]).e2e_s) - rate[rows]

    high = np.log(_BEYOND_CAPACITY * np.clip(fixed.memory.capacity, 1.0, 1e6))
    low = np.full_like(high, np.log(_MIN_CONCURRENCY))
    all_rows = np.arange(len(rate))
    f_low, f_high = (excess_of(all_rows)(x) for x in (low, high))
    limit = np.exp(f_high + rate) * (1 + n_rank / np.exp(high))
    return np.exp(find_roots(excess_of, low, high, f_low, f_high)), limit


def _load_independent(d: Descriptors, c: Coefficients, memo: Memo | None) -> _LoadIndependent:
    kernels = kernels_by_row(d) if memo is None else memo("kernels", lambda: kernels_by_row(d), d)
    inputs = EngineInputs(d, c.by_row(d["config.engine"]), kernels, memo)
    n_static = np.maximum(d["workload.concurrency"] / d["config.dp"], 1.0)
    n_prompt = np.where(d["workload.is_static"] > 0, n_static, 1.0)
    prefill = estimate_prefill(inputs, n_prompt)
    alone = alone_s(inputs, prefill, n_prompt)
    if ((d["config.pp"] > 1) & (n_prompt * new_token(d) > _CHUNK_TOKEN)).any():
        alone = pipelined_s(alone, _last_chunk_s(inputs, n_prompt), stage_ratio(d))
    is_apart = d["config.n_prefill_accelerator"] > 0
    transfer = np.zeros_like(alone)
    if is_apart.any():
        transfer = np.where(is_apart, transfer_s(inputs, n_prompt, alone), 0.0)
    return _LoadIndependent(inputs, estimate_memory(d, inputs.c), prefill, alone, transfer)


def stage_ratio(d: Descriptors) -> FloatArray:
    """Return the share of a pass spent in the longest pipeline stage; layers are not divided.

    Examples
    --------
    Four stages of 32 layers have eight each; of 30 layers, two have eight:

    >>> stage_ratio({"model.n_layer": np.array([32.0, 30.0]), "config.pp": np.array([4.0, 4.0])}).round(3)
    array([0.25 , 0.267])
    """
    n_layer, pp = d["model.n_layer"], d["config.pp"]
    return np.where(pp > 1, np.ceil(n_layer / pp) / n_layer, 1.0)


def pipelined_s(whole_s: FloatArray, last_s: FloatArray, stage: FloatArray) -> FloatArray:
    """Return the time of a prefill whose chunks are pipelined over the stages.

    Parameters
    ----------
    whole_s, last_s
        Time of all chunks, and of the last chunk, through all stages in sequence.
    stage
        Share of the longest stage, see `stage_ratio`.

    Notes
    -----
    The longest stage processes all chunks in turn, the last chunk also passes the other stages: with m equal chunks
    and p equal stages ``(m + p - 1) / (m p)`` of the sequential time.

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
    """Return the time of the last chunk of `n_prompt` prompts through the whole model, without other work."""
    n_new = new_token(s.d) / s.d["config.cp"]
    share = 1 - np.minimum(n_new, _CHUNK_TOKEN) * s.d["config.cp"] / s.d["workload.n_input_token"]
    last = replace(s, d=s.recall("last chunk", lambda: {**s.d, "workload.prefix_cache_ratio": share}))
    n_last = np.clip(_CHUNK_TOKEN / n_new, 1.0, n_prompt)
    return alone_s(last, estimate_prefill(last, n_last), n_last)


def _closed_loop(fixed: _LoadIndependent, concurrency: FloatArray) -> Estimate:
    """Return the estimate at a concurrency.

    Notes
    -----
    During one answer each other running request is prefilled once. A share of these prefills interrupts decoding. A
    request that meets other prefills waits for them, at random or in the startup burst, and for each other request at
    most once. Requests of one fixed length that start together also end together, and a share of them stays
    synchronised. Disaggregated prefill interrupts nothing, and the burst is shared by the prefill ranks. Pipeline
    stages work on micro-batches in turn, at the pace of the longest stage when all are busy.
    """
    d, c = fixed.inputs.d, fixed.inputs.c
    n_output, n_rank = d["workload.n_output_token"], d["config.dp"]
    per_rank = running_batch(concurrency / n_rank, fixed.memory.capacity / n_rank, d["workload.length_variation"])
    batch = per_rank * n_rank
    step = estimate_step(fixed.inputs, np.maximum(per_rank / d["config.pp"], 1.0))
    stage = stage_ratio(d)
    gap = step.total_s * np.maximum(np.minimum(per_rank, d["config.pp"]) * stage, 1.0) * token_cost(d, c)
    is_apart = d["config.n_prefill_accelerator"] > 0
    others = np.where(d["workload.is_static"] > 0, 0.0, np.maximum(per_rank - 1, 0.0))
    in_step = c["lockstep"] * (d["workload.length_variation"] <= 0)
    stage_s = fixed.prefill.total_s * stage
    interference = np.where(is_apart, 0.0, c["prefill_interference"] * (1 - in_step)) * others * stage_s / n_output
    tpot = gap + interference
    own = _unloaded_ttft_s(fixed, step.total_s, others)
    rivals = np.where(is_apart, np.maximum(batch - 1, 0.0) / _n_prefill_rank(d), others)
    undisturbed = own + (n_output - 1) * tpot
    burst_wait = np.maximum(startup_burst_ratio(d, c["burst"]), in_step) * rivals * stage_s / 2
    random_wait = prompt_wait_s(rivals, stage_s, undisturbed, c["collision"])
    crowd = np.minimum(random_wait + burst_wait, rivals * stage_s)
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
    """Return the number of disaggregated prefill ranks."""
    width = prefill_descriptors(d)["config.tp"] * d["config.pp"]
    return np.maximum(d["config.n_prefill_accelerator"] / width, 1.0)


def _unloaded_ttft_s(fixed: _LoadIndependent, step_s: FloatArray, others: FloatArray) -> FloatArray:
    """Return TTFT without other prompts; an idle engine polls at once."""
    d, c = fixed.inputs.d, fixed.inputs.c
    look = c["poll_ratio"] * d["config.poll_interval_step"] * np.minimum(others, 1.0)
    n_wait = np.where(d["workload.is_static"] > 0, 0.0, c["wait_step"] + look + d["config.batching_wait_step"])
    return np.asarray(c["request_overhead_s"] + fixed.alone_s + fixed.transfer_s + n_wait * step_s)


def prompt_wait_s(rivals: FloatArray, prompt_s: FloatArray, cycle_s: FloatArray, collision: FloatArray) -> FloatArray:
    """Return the wait for the prompts of other requests, which arrive at random, once per cycle each.

    Notes
    -----
    Machine-repairman model by mean-value analysis: each rival is in prefill for a share ``(prompt + wait) / (cycle +
    wait)`` of the time. At random arrival half of the rival's prompt remains; if prefill is always busy all of it
    does, because each prompt then begins when another ends. `collision` multiplies the remainder. The queue is at
    most 4.5 prompts: an engine that falls further behind prefills several in one pass.

    References
    ----------
    P. J. Schweitzer, "Approximate Analysis of Multiclass Closed Networks of Queues", Int. Conf. on Stochastic Control
    and Optimization, Amsterdam, 1979. The longest queue is judgement.

    Examples
    --------
    One rival whose prompt takes a hundredth of the cycle; then three rivals that only prefill:

    >>> import numpy as np
    >>> prompt_wait_s(np.array([1.0, 3.0]), np.ones(2), np.array([100.0, 1.0]), np.ones(2)).round(3)
    array([0.005, 3.   ])
    """
    demand = rivals * prompt_s
    remainder = collision * (1 + np.minimum(demand / cycle_s, 1.0)) / 2
    excess = demand - cycle_s
    wait = (excess + np.sqrt(excess**2 + 4 * remainder * demand * prompt_s)) / 2
    return np.asarray(np.minimum(wait, _MAX_QUEUED_PROMPT * collision * prompt_s))


def token_cost(d: Descriptors, c: RowCoefficients) -> FloatArray:
    """Return the decode steps per token of a sequence: 1, or less with accepted speculation.

    The acceptance probability is the query's, or the coefficient where it is unknown.
    """
    n_draft = d["config.n_draft_token"]
    given = d["config.acceptance_ratio"]
    chance = np.where(np.isnan(given), c["acceptance"], given)
    return (1 + n_draft * c["draft_ratio"]) / n_accepted(chance, n_draft)


def n_accepted(acceptance: FloatArray, n_draft: FloatArray) -> FloatArray:
    """Return the expected tokens per step and sequence: accepted drafts in a row, plus one.

    References
    ----------
    Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding", ICML 2023,
    equation 1.

    Examples
    --------
    Three drafts, each accepted with probability 0.7:

    >>> import numpy as np
    >>> n_accepted(np.array([0.7]), np.array([3.0])).round(3)
    array([2.533])
    """
    chance = np.minimum(acceptance, 0.999)
    return np.asarray((1 - chance ** (n_draft + 1)) / (1 - chance))


def running_batch(concurrency: FloatArray, capacity: FloatArray, variation: FloatArray) -> FloatArray:
    """Return the running requests: a soft minimum of concurrency and capacity.

    The power of the soft minimum is 2 over the coefficient of variation of the lengths, between 4 and 24: with
    varying lengths capacity binds before its mean is reached. At least one request runs.

    Examples
    --------
    >>> import numpy as np
    >>> running_batch(np.array([4.0, 64.0]), np.array([64.0, 4.0]), np.array([0.5, 0.5])).round(3)
    array([4., 4.])
    """
    slots = np.maximum(capacity, 1.0)
    requested = np.maximum(concurrency, 1.0)
    power = np.clip(2.0 / np.maximum(variation, 1e-3), 4.0, 24.0)
    excess = power * np.log(requested / slots)
    return np.asarray(np.maximum(requested * np.exp(-np.logaddexp(0.0, excess) / power), 1.0), dtype=np.float64)
