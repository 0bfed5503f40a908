"""Analytic estimate of latency and throughput: a mean-value model of a serving engine under load."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.engine.coefficients import CoefficientSource, RowCoefficients
from roofcast.features.engine.finite_run import (
    achieved_rate,
    arrival_queue_s,
    mean_queue_s,
    n_request,
    prompt_wait_s,
    requests_per_slot,
    startup_burst_ratio,
)
from roofcast.features.engine.kernels.row_kernels import kernels_by_row
from roofcast.features.engine.loop.root_finding import Function, find_roots
from roofcast.features.engine.memo import Memo
from roofcast.features.engine.memory import Memory, estimate_memory, n_slot
from roofcast.features.engine.operators import (
    PassTime,
    alone_s,
    estimate_prefill,
    estimate_step,
    new_token,
    prompt_in_step,
)
from roofcast.features.engine.pass_communication import EngineInputs, prefill_descriptors, transfer_s
from roofcast.features.engine.pass_cost import pipelined_s, stage_ratio, token_cost
from roofcast.features.queries import BoolArray, FloatArray, Queries, RowIndex, take_rows

_MIN_CONCURRENCY = 1e-12
_BEYOND_CAPACITY = 16.0
_MIN_DECODING_RATIO = 1e-3

_IS_GATHERING = np.array([float(engine in ("tgi", "tgis")) for engine in ENGINES])
"""Engines that prefill once the waiting requests outnumber the running ones 1.2 times.

References
----------
Hugging Face text-generation-inference, option ``--waiting-served-ratio``; IBM's fork (tgis) has the same scheduler.
"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Analytic estimate of each row, as means over requests; arrays have shape (n_row,).

    - `step`, `prefill`: Operator times of one decode step and of the prefill of one request.
    - `concurrency`: Requests in flight: the query's, or by Little's law at a request rate.
    - `batch`: Running requests.
    - `n_wave`: Requests of the run for each slot of concurrency: `finite_run.requests_per_slot`.
    - `served_ratio`: Running requests over those that run or wait for a slot.
    - `overhead_s`, `startup_s`, `wait_s`, `prefill_s`, `transfer_s`, `prompts_ahead_s`, `queue_s`: Parts of TTFT:
      network and tokenizer, the mean over the run of what its first requests lose to a cold server, steps under way
      and the decoding in the request's own mixed steps, prefill of the request while the other ranks prefill nothing,
      transfer of the KV cache with disaggregated prefill, prefills of other requests, and queueing time for a slot in
      the batch.
    - `prompt_s`: Time that one prompt adds to the decode steps of others: `operators.prompt_in_step` in the longest
      stage.
    - `other_prompts_s`, `together_ratio`: Prefills of all requests that one may wait for, and the share of requests
      that meet these at once: at the start, or in lockstep.
    - `interference_s`: Time that prefills of other requests add to each token.
    - `ttft_s`, `itl_s`, `tpot_s`, `e2e_s`, `output_throughput_token_per_s`: The metrics. TPOT includes prefills of
      other requests; ITL is the gap between tokens without them.
    - `request_throughput_per_s`: Completed requests per second.
    - `rate_ratio`: Request rate over the saturation rate; 0 without a rate.
    """

    memory: Memory
    step: PassTime
    prefill: PassTime
    concurrency: FloatArray
    batch: FloatArray
    n_wave: FloatArray
    served_ratio: FloatArray
    overhead_s: FloatArray
    startup_s: FloatArray
    wait_s: FloatArray
    prompt_s: FloatArray
    prefill_s: FloatArray
    transfer_s: FloatArray
    prompts_ahead_s: FloatArray
    other_prompts_s: FloatArray
    together_ratio: FloatArray
    queue_s: FloatArray
    interference_s: FloatArray
    ttft_s: FloatArray
    itl_s: FloatArray
    tpot_s: FloatArray
    e2e_s: FloatArray
    output_throughput_token_per_s: FloatArray
    request_throughput_per_s: FloatArray
    rate_ratio: FloatArray

    @property
    def is_saturated(self) -> BoolArray:
        """Whether the queue grows until the run ends; the queue of an endless run is cut at 16 times the capacity."""
        return self.rate_ratio >= 1


@dataclass(frozen=True, slots=True)
class LoadIndependent:
    """Quantities that depend on the load only if batches are static; arrays have shape (n_row,).

    `full_s`: prefill of one prompt; with disaggregated prefill its share of a full pass, of `config.chunk_token`
    tokens.
    """

    inputs: EngineInputs
    memory: Memory
    prefill: PassTime
    alone_s: FloatArray
    transfer_s: FloatArray
    full_s: FloatArray

    @property
    def is_apart(self) -> BoolArray:
        """Whether prefill is disaggregated."""
        return self.inputs.d["config.n_prefill_accelerator"] > 0

    def take(self, rows: RowIndex, d: Queries) -> LoadIndependent:
        """Return some rows, whose descriptors are now `d`, with other loads."""
        others: LoadIndependent = take_rows(replace(self, inputs=replace(self.inputs, d={})), rows)
        return replace(others, inputs=replace(others.inputs, d=d))


def estimate(d: Queries, c: CoefficientSource, memo: Memo | None = None) -> Estimate:
    """Return the estimate of each row.

    Without concurrency and rate the load is offline: all requests are in flight, or if their number is unknown the
    batch is full. A memo accelerates further estimates of the same descriptors object with other coefficients; it is
    used for closed loops only.

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
    >>> bool(abs(e.output_throughput_token_per_s[0] - 8 * 200 / e.e2e_s[0]) < 1e-2)
    True
    """
    is_open = np.isnan(d["workload.concurrency"]) & ~np.isnan(d["workload.request_rate_per_s"])
    return estimate_at_loads(load_independent(d, c, None if is_open.any() else memo))


def estimate_at_loads(fixed: LoadIndependent) -> Estimate:
    """Return the estimate of each row at the load in its descriptors: see `estimate`."""
    d, rate = fixed.inputs.d, fixed.inputs.d["workload.request_rate_per_s"]
    is_open = np.isnan(d["workload.concurrency"]) & ~np.isnan(rate)
    full = n_slot(d, fixed.memory)
    offline = np.where(np.isnan(d["workload.n_request"]), full, d["workload.n_request"])
    concurrency = np.where(np.isnan(d["workload.concurrency"]), offline, d["workload.concurrency"])
    if not is_open.any():
        return _closed_loop(fixed, concurrency)
    limit = np.full_like(rate, np.inf)
    others, limit[is_open] = _solve_open_loop(fixed if is_open.all() else take_rows(fixed, np.flatnonzero(is_open)))
    concurrency[is_open] = others + d["config.dp"][is_open]
    return _with_random_arrivals(_closed_loop(fixed, concurrency), d, np.where(is_open, rate, np.nan), limit)


def _with_random_arrivals(e: Estimate, d: Queries, rate: FloatArray, limit: FloatArray) -> Estimate:
    is_open, is_saturated = ~np.isnan(rate), rate >= limit
    full, residence = n_slot(d, e.memory), e.e2e_s - e.queue_s
    n_sent = n_request(d)
    used = np.where(is_open, achieved_rate(rate, e.e2e_s, e.queue_s, n_sent) * residence / full, 0.0)
    random = np.minimum(arrival_queue_s(used, full, limit - rate, limit, n_sent), (_BEYOND_CAPACITY - 1) * residence)
    queue = np.where(is_open, np.where(is_saturated, e.queue_s, 0.0) + random, e.queue_s)
    e2e = residence + queue
    achieved = np.minimum(achieved_rate(rate, e2e, queue, n_sent), limit)
    served = np.where(is_open, achieved, e.request_throughput_per_s)
    return replace(
        e,
        concurrency=np.where(is_open, served * e2e, e.concurrency),
        queue_s=queue,
        ttft_s=e.ttft_s - e.queue_s + queue,
        e2e_s=e2e,
        output_throughput_token_per_s=served * d["workload.n_output_token"],
        request_throughput_per_s=served,
        rate_ratio=np.where(is_open, rate / limit, 0.0),
    )


def _solve_open_loop(fixed: LoadIndependent) -> tuple[FloatArray, FloatArray]:
    # The number is solved in logarithms. Its bound is 16 times the capacity, or the requests of the run if more.
    d = fixed.inputs.d
    rate, n_rank = d["workload.request_rate_per_s"], d["config.dp"]
    high = np.log(_BEYOND_CAPACITY * np.minimum(n_slot(d, fixed.memory), 1e6))
    low = np.full_like(high, np.log(_MIN_CONCURRENCY))
    at_high, at_low = (_closed_loop(fixed, np.exp(x) + n_rank) for x in (high, low))
    limit = at_high.request_throughput_per_s
    n_sent = n_request(d)
    is_long = np.isfinite(n_sent) & (np.log(n_sent) > high)
    if is_long.any():
        high = np.where(is_long, np.log(n_sent), high)
        at_high = _closed_loop(fixed, np.exp(high) + n_rank)

    def excess(x: FloatArray, e: Estimate, rows: RowIndex | slice) -> FloatArray:
        return x - np.log(achieved_rate(rate[rows], e.e2e_s, e.queue_s, n_sent[rows]) * e.e2e_s)

    def excess_of(rows: RowIndex) -> Function:
        subset = fixed if len(rows) == len(rate) else take_rows(fixed, rows)
        return lambda x: excess(x, _closed_loop(subset, np.exp(x) + n_rank[rows]), rows)

    everywhere = slice(None)
    f_low, f_high = excess(low, at_low, everywhere), excess(high, at_high, everywhere)
    return np.exp(find_roots(excess_of, low, high, f_low, f_high)), limit


def load_independent(d: Queries, c: CoefficientSource, memo: Memo | None = None) -> LoadIndependent:
    """Return the quantities of each row that `estimate_at_loads` starts from."""
    kernels = kernels_by_row(d) if memo is None else memo("kernels", lambda: kernels_by_row(d), d)
    inputs = EngineInputs(d, c.by_row(d["config.engine"]), kernels, memo)
    n_static = np.maximum(d["workload.concurrency"] / d["config.dp"], 1.0)
    n_prompt = np.where(d["workload.is_static"] > 0, n_static, 1.0)
    prefill = estimate_prefill(inputs, n_prompt)
    alone = alone_s(inputs, prefill, n_prompt)
    if ((d["config.pp"] > 1) & (n_prompt * new_token(d) > d["config.chunk_token"])).any():
        alone = pipelined_s(alone, _last_chunk_s(inputs, n_prompt), stage_ratio(d))
    is_apart = d["config.n_prefill_accelerator"] > 0
    transfer, full = np.zeros_like(alone), prefill.total_s
    if is_apart.any():
        transfer = np.where(is_apart, transfer_s(inputs, n_prompt, alone), 0.0)
        rows = np.flatnonzero(is_apart)
        apart = take_rows(replace(inputs, memo=None), rows)
        n_full = np.maximum(apart.d["config.chunk_token"] / new_token(apart.d), 1.0)
        full = full.copy()
        full[rows] = estimate_prefill(apart, n_full).total_s / n_full
    return LoadIndependent(inputs, estimate_memory(d, inputs.c), prefill, alone, transfer, full)


def _last_chunk_s(s: EngineInputs, n_prompt: FloatArray) -> FloatArray:
    n_new = new_token(s.d) / s.d["config.cp"]
    chunk = s.d["config.chunk_token"]
    share = 1 - np.minimum(n_new, chunk) * s.d["config.cp"] / s.d["workload.n_input_token"]
    last = replace(s, d=s.recall("last chunk", lambda: {**s.d, "workload.prefix_cache_ratio": share}))
    n_last = np.clip(chunk / n_new, 1.0, n_prompt)
    return alone_s(last, estimate_prefill(last, n_last), n_last)


def _closed_loop(fixed: LoadIndependent, concurrency: FloatArray) -> Estimate:
    ratio = np.ones_like(concurrency)
    is_apart = fixed.is_apart
    if is_apart.any():
        subset = take_rows(replace(fixed, inputs=replace(fixed.inputs, memo=None)), np.flatnonzero(is_apart))
        ratio[is_apart] = _decoding_ratio(subset, concurrency[is_apart])
    return _loop_at_ratio(fixed, concurrency, ratio)


def _decoding_ratio(fixed: LoadIndependent, concurrency: FloatArray) -> FloatArray:
    """Return the share of the requests in flight that decode or wait for a slot while the others are prefilled apart.

    Returns
    -------
    shape (n_row,), from `_MIN_DECODING_RATIO` to 1

    Notes
    -----
    By Little's law it is the mean time that a request decodes or waits for a slot over the mean time that it is in
    flight, which depends on the ratio by the batch. Repetition is slow where a decode step grows nearly as fast as
    the batch (64 times and more where prefill limits thousands of requests), so the root is found.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961.
    """

    def excess_of(rows: RowIndex) -> Function:
        subset = fixed if len(rows) == len(concurrency) else take_rows(fixed, rows)
        n_decode_step = subset.inputs.d["workload.n_output_token"] - 1

        def excess(x: FloatArray) -> FloatArray:
            e = _loop_at_ratio(subset, concurrency[rows], np.exp(x))
            decode_s = n_decode_step * e.tpot_s + e.queue_s
            ratio = decode_s / (decode_s + e.ttft_s - e.queue_s)
            return x - np.log(np.maximum(ratio, _MIN_DECODING_RATIO))

        return excess

    low, high = np.full_like(concurrency, np.log(_MIN_DECODING_RATIO)), np.zeros_like(concurrency)
    excess = excess_of(np.arange(len(concurrency)))
    return np.exp(find_roots(excess_of, low, high, excess(low), excess(high)))


def _loop_at_ratio(fixed: LoadIndependent, concurrency: FloatArray, decoding_ratio: FloatArray) -> Estimate:
    """Return the estimate at a concurrency of which a share decodes or waits for a slot, and the rest is prefilled.

    `decoding_ratio`: shape (n_row,): the share; 1 unless prefill is disaggregated.

    Notes
    -----
    While one request is answered, each other running request is prefilled once. A share of these prefills interrupts
    decoding. A share of requests of one fixed length stays synchronised. A static batch enters the engine in its own
    process, without a server. Disaggregated prefill interrupts nothing, and its requests hold no decode slot.
    """
    d, c, is_apart = fixed.inputs.d, fixed.inputs.c, fixed.is_apart
    n_output, n_rank = d["workload.n_output_token"], d["config.dp"]
    decoding = concurrency * decoding_ratio
    admitted = np.minimum(decoding / n_rank, d["config.max_num_seqs"])
    per_rank = running_batch(admitted, fixed.memory.capacity / n_rank, d["workload.length_variation"])
    batch = per_rank * n_rank
    step = estimate_step(fixed.inputs, np.maximum(per_rank / d["config.pp"], 1.0))
    stage = stage_ratio(d)
    gap = step.total_s * np.maximum(np.minimum(per_rank, d["config.pp"]) * stage, 1.0) * token_cost(d, c)
    others = np.where(d["workload.is_static"] > 0, 0.0, np.maximum(per_rank - 1, 0.0))
    in_step = c["lockstep"] * (d["workload.length_variation"] <= 0)
    is_mixed = np.where(is_apart, 0.0, d["config.is_mixed"])
    prompt_s = prompt_in_step(fixed.prefill, step, is_mixed)
    stage_s = prompt_s * stage
    interference = np.where(is_apart, 0.0, c["prefill_interference"] * (1 - in_step)) * others * stage_s / n_output
    shared = is_mixed * np.minimum(others, 1.0)
    overhead = np.where(d["workload.is_static"] > 0, c["batch_overhead_s"], c["request_overhead_s"])
    wait = _wait_step(d, c, others, shared) * step.total_s
    prefill_s = fixed.alone_s * (1 - shared * (1 - prompt_s / fixed.prefill.total_s))
    decode_s = (n_output - 1) * (gap + interference)
    excess = np.maximum(decoding / batch - 1, 0.0)
    warm = overhead + wait + prefill_s + fixed.transfer_s
    n_wave = requests_per_slot(d, (warm + decode_s) * (1 + excess))
    startup = np.where(d["workload.is_static"] > 0, 0.0, c["startup_s"] / n_wave)
    own = warm + startup
    cycle_s = own + decode_s + np.where(is_apart, excess * decode_s, 0.0)
    together = np.maximum(np.maximum(in_step, _gathering(d)), startup_burst_ratio(n_wave, c["burst"]))
    other_prompts = np.where(is_apart, np.maximum(concurrency - 1, 0.0) / _n_prefill_rank(d), others)
    ahead = _prompts_ahead_s(fixed, concurrency, other_prompts, stage_s, cycle_s, together=together)
    residence = own + decode_s + ahead
    steady_queue = excess * np.where(is_apart, decode_s, residence)
    queue = mean_queue_s(steady_queue, n_wave, batch / decoding)
    request_per_s = concurrency / (steady_queue + residence)
    return Estimate(
        memory=fixed.memory,
        step=step,
        prefill=fixed.prefill,
        concurrency=concurrency,
        batch=batch,
        n_wave=n_wave,
        served_ratio=batch / decoding,
        overhead_s=overhead,
        wait_s=wait,
        startup_s=startup,
        prompt_s=stage_s,
        prefill_s=prefill_s,
        transfer_s=fixed.transfer_s,
        prompts_ahead_s=ahead,
        other_prompts_s=other_prompts * stage_s,
        together_ratio=together,
        queue_s=queue,
        interference_s=interference,
        ttft_s=own + ahead + queue,
        itl_s=gap,
        tpot_s=gap + interference,
        e2e_s=queue + residence,
        output_throughput_token_per_s=request_per_s * n_output,
        request_throughput_per_s=request_per_s,
        rate_ratio=np.zeros_like(concurrency),
    )


def _prompts_ahead_s(
    fixed: LoadIndependent,
    concurrency: FloatArray,
    other_prompts: FloatArray,
    stage_s: FloatArray,
    cycle_s: FloatArray,
    *,
    together: FloatArray,
) -> FloatArray:
    """Return the mean time that a request waits for the prefills that it meets: shape (n_row,).

    It meets those of other requests at random or in the startup burst, each at most once. Where disaggregated prefill
    is the bottleneck, the time in flight is that of full prefill passes for all requests of a rank.

    References
    ----------
    P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3),
    1978, section on bottleneck analysis.
    """
    d, longest_s = fixed.inputs.d, other_prompts * stage_s
    at_random = prompt_wait_s(other_prompts, stage_s, cycle_s, fixed.inputs.c["collision"])
    ahead = np.minimum(at_random + together * longest_s / 2, longest_s)
    full_passes_s = concurrency / _n_prefill_rank(d) * fixed.full_s * stage_ratio(d)
    return np.where(fixed.is_apart, np.maximum(ahead, full_passes_s - cycle_s), ahead)


def _gathering(d: Queries) -> FloatArray:
    return np.asarray(_IS_GATHERING[d["config.engine"].astype(np.intp)])


def _n_prefill_rank(d: Queries) -> FloatArray:
    width = prefill_descriptors(d)["config.tp"] * d["config.pp"]
    return np.maximum(d["config.n_prefill_accelerator"] / width, 1.0)


def _wait_step(d: Queries, c: RowCoefficients, others: FloatArray, shared: FloatArray) -> FloatArray:
    # Those that take the prompt along included where steps are `shared`. An idle engine starts at once.
    waited = np.where(d["workload.is_static"] > 0, 0.0, d["config.batching_wait_step"])
    own = shared * np.maximum(new_token(d) / d["config.chunk_token"], 1.0)
    return scheduling_step(d, c) * np.minimum(others, 1.0) + waited + own


def scheduling_step(d: Queries, c: RowCoefficients) -> FloatArray:
    """Return the mean number of decode steps until a busy engine schedules a request.

    Notes
    -----
    The rest of the step under way is half of one on average; the step after it counts if it is scheduled already.

    References
    ----------
    NVIDIA, "TensorRT-LLM", documentation, "Overlap Scheduler": one additional step.
    """
    step = c["wait_step"] * (0.5 + d["config.is_overlapped"])
    return np.asarray(step + c["poll_ratio"] * (d["config.poll_interval_step"] - 1))


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
