"""Search of plans: splits, micro-batches and recomputation that a job may use, and the fastest that fits.

Blanks of sharding, loss and offload follow the framework. Where no such plan fits, its leaner settings are searched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache, cached

from roofcast.features.jobs.run_columns import Job, JobHardware, JobRuns, ModelShape, Plan
from roofcast.features.jobs.step.job_coefficients import DEFAULT_TRAINING_COEFFICIENTS, StepCoefficients
from roofcast.features.jobs.step.job_memory import JobMemory, estimate_memory
from roofcast.features.jobs.step.step import JobTime, estimate_training, throughput_token_per_s
from roofcast.features.queries import FloatArray, RowIndex, take_rows

MAX_TENSOR: Final = 16.0
MAX_STAGE: Final = 16.0
MAX_EXPERT: Final = 64.0
MAX_MICRO_BATCH: Final = 64.0
MAX_CHUNK: Final = 8.0
MAX_MISSING_LAYER: Final = 3.0
"""Layers that a pipeline's last stage may have less than the others: embedding, head and prediction layers take their
place (Llama 3.1 405B has 126 layers on 16 stages, DeepSeek-V3 61)."""

LEAST_CONTEXT_TOKEN: Final = 8192.0
"""Tokens of a sequence on a context-parallel rank, at least, in an enumerated plan."""

TYPICAL_MICRO_BATCHES: Final = 4.0
"""Micro-batches for each pipeline stage where the global batch is unknown."""

CHUNK: Final = 8192
"""Plans evaluated together: their arrays stay in the processor's cache."""

GRID_CACHE_BYTE: Final = 256e6
"""Size of the cache of enumerated plans: those of some 3,000 jobs with all parallelism free."""

USABLE_RATIO: Final = 0.95
"""Share of the memory that a plan may fill: fragments and other processes need the rest."""


@dataclass(frozen=True, slots=True)
class StatedPlan:
    """Known part of a run's plan, with the names of `Plan`; NaN where unknown.

    - `n_replica_shard`: Ranks over which states are sharded if they are fewer than ``cp dp`` (HSDP); NaN for all.
    - `has_tensor_parallel`: 1 if an unknown split may hold tensor, pipeline or expert parallelism, 0 if it is
      data-parallel.
    - `zero_stage`, `logit_share`, `offload_optimizer`, `offload_parameter`, `offload_activation`: Never NaN: the
      framework's where they are blank.
    """

    tp: FloatArray
    pp: FloatArray
    vp: FloatArray
    cp: FloatArray
    ep: FloatArray
    zero_stage: FloatArray
    n_replica_shard: FloatArray
    recomputation: FloatArray
    is_sequence_parallel: FloatArray
    micro_batch: FloatArray
    n_micro_batch: FloatArray
    has_tensor_parallel: FloatArray
    logit_share: FloatArray
    offload_optimizer: FloatArray
    offload_parameter: FloatArray
    offload_activation: FloatArray


@dataclass(frozen=True, slots=True)
class Jobs:
    """Runs whose plans may be unknown in part: those of a table, and the same with leaner settings.

    - `origin`: Index of each job's row in the table.
    - `step`: 0 for the jobs of the table, which come first, and more the leaner the settings are.
    """

    model: ModelShape
    hardware: JobHardware
    job: Job
    stated: StatedPlan
    origin: RowIndex
    step: RowIndex

    @property
    def of_table(self) -> Jobs:
        """The jobs of the table's rows, with the framework's conventions."""
        jobs: Jobs = take_rows(self, np.flatnonzero(self.step == 0))
        return jobs


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The fastest plan that fits for each row of a table of jobs.

    - `runs`, `time`, `memory`: With these plans.
    - `fits`: Whether the plan's memory is within `USABLE_RATIO`, on the host too; otherwise it is the plan of least
      memory.
    - `n_plan`: Plans that were compared, of each job.
    """

    runs: JobRuns
    time: JobTime
    memory: JobMemory
    fits: npt.NDArray[np.bool_]
    n_plan: FloatArray


@dataclass(frozen=True, slots=True)
class PlanSearch:
    """Plans of jobs, by row of the table: arrays of shape (n_plan,).

    - `index`: Of the job of each plan.
    - `filled`, `on_host`: Share of the memory in use on the device, and on the host.
    - `rate`: Tokens per second; 0 of plans that exceed `USABLE_RATIO`.
    """

    index: RowIndex
    plan: Plan
    filled: FloatArray
    on_host: FloatArray
    rate: FloatArray


Admission = Callable[[RowIndex, Plan], npt.NDArray[np.bool_]]
"""Which plans of jobs count."""


def search_plans(
    jobs: Jobs,
    c: StepCoefficients = DEFAULT_TRAINING_COEFFICIENTS,
    *,
    enough: float = USABLE_RATIO,
    admit: Admission | None = None,
    pause: Callable[[], None] = lambda: None,
) -> PlanSearch:
    """Return the plans of the framework's conventions, and with leaner settings for rows that these do not fit.

    - `enough`: Share of the memory that one plan has to stay below, so that no leaner ones are searched.
    - `pause`: Called from time to time; it may raise.
    """
    least, parts = np.full(jobs.origin.max() + 1, np.inf), []
    for step in range(jobs.step.max() + 1):
        rows = np.flatnonzero((jobs.step == step) & (least[jobs.origin] > enough))
        if not len(rows):
            break
        index, plan = enumerate_plans(jobs, rows)
        if admit is not None:
            admitted = np.flatnonzero(admit(index, plan))
            index, plan = index[admitted], take_rows(plan, admitted)
        filled, on_host, rate = _score(jobs, index, plan, c, pause)
        parts.append((index, plan, filled, on_host, rate))
        np.minimum.at(least, jobs.origin[index], np.where(on_host <= USABLE_RATIO, filled, np.inf))
    index, filled, on_host, rate = (np.concatenate([part[i] for part in parts]) for i in (0, 2, 3, 4))
    names = [f.name for f in fields(Plan)]
    plan = Plan(*(np.concatenate([getattr(part[1], name) for part in parts]) for name in names))
    order = np.argsort(jobs.origin[index], kind="stable")
    return PlanSearch(index[order], take_rows(plan, order), filled[order], on_host[order], rate[order])


def _score(
    jobs: Jobs, index: RowIndex, plan: Plan, c: StepCoefficients, pause: Callable[[], None]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    filled, on_host, rate = np.empty(len(index)), np.empty(len(index)), np.zeros(len(index))
    for start in range(0, len(index), CHUNK):
        pause()
        rows = np.arange(start, min(start + CHUNK, len(index)))
        runs = join_plans(jobs, index[rows], take_rows(plan, rows))
        memory = estimate_memory(runs, c)
        filled[rows], on_host[rows] = memory.device / runs.hardware.memory_byte, host_ratio(runs, memory)
        fits = rows[np.maximum(filled[rows], on_host[rows]) <= USABLE_RATIO]
        if len(fits):
            runs = join_plans(jobs, index[fits], take_rows(plan, fits))
            rate[fits] = throughput_token_per_s(runs, estimate_training(runs, c))
    return filled, on_host, rate


def host_ratio(runs: JobRuns, memory: JobMemory) -> FloatArray:
    """Return the share of the host's memory in use, infinite where it has none to lend: shape (n_run,)."""
    n_byte, capacity = np.broadcast_arrays(memory.host, runs.job.host_memory_byte)
    none = np.where(n_byte > 0, np.inf, 0.0)
    return np.asarray(np.divide(n_byte, capacity, out=none, where=capacity > 0), dtype=np.float64)


def enumerate_plans(jobs: Jobs, rows: RowIndex | None = None) -> tuple[RowIndex, Plan]:
    """Return the plans that agree with what their job states, and the index of that job: shape (n_plan,) each.

    Degrees of tensor, context, expert and pipeline parallelism are powers of two that divide the query and key heads,
    the experts and the layers; data parallelism takes the other accelerators. Stages hold several chunks where the
    micro-batches are a multiple of the stages. A stated degree need not divide the layers or the key heads. A job
    without such a plan gets one of data parallelism alone.

    `rows`: jobs whose plans are wanted; None for all.
    """
    s, m, j = jobs.stated, jobs.model, jobs.job
    columns = (
        j.n_accelerator, j.n_global_batch, j.n_token, m.n_layer, m.n_head, m.n_kv_head, m.n_expert,
        jobs.hardware.domain_size, *(getattr(s, f.name) for f in fields(StatedPlan)),
    )  # fmt: skip
    table = np.nan_to_num(np.array(np.broadcast_arrays(*columns), dtype=float).T, nan=-1.0)
    rows = np.arange(len(table)) if rows is None else rows
    grids = [_grid(_JobKey(*row)) for row in table[rows].tolist()]
    index = np.repeat(rows, [grid.shape[1] for grid in grids])
    return index, Plan(*np.concatenate(grids, axis=1))


def choose_plans(jobs: Jobs, c: StepCoefficients = DEFAULT_TRAINING_COEFFICIENTS) -> PlanChoice:
    """Return the plan of each row with the most tokens per second that fits, or else with the least memory.

    Where some fit on the device alone, it is that with the least memory on the host.
    """
    found = search_plans(jobs, c)
    fits, origin = np.maximum(found.filled, found.on_host) <= USABLE_RATIO, jobs.origin[found.index]
    on_device = -np.maximum(found.filled, USABLE_RATIO)
    order = np.lexsort((-found.on_host, np.where(fits, found.rate, on_device), fits, origin))
    count = np.bincount(origin)
    best = order[np.cumsum(count) - 1]
    runs = join_plans(jobs, found.index[best], take_rows(found.plan, best))
    time, memory = estimate_training(runs, c), estimate_memory(runs, c)
    return PlanChoice(runs, time, memory, fits[best], count.astype(float))


def join_plans(jobs: Jobs, index: RowIndex, plan: Plan) -> JobRuns:
    """Return runs of the jobs at `index` with these plans: shape (n_plan,) each."""
    return JobRuns(take_rows(jobs.model, index), take_rows(jobs.hardware, index), take_rows(jobs.job, index), plan)


class _JobKey(NamedTuple):
    n: float
    batch: float
    n_token: float
    n_layer: float
    n_head: float
    n_kv_head: float
    n_expert: float
    domain: float
    tp: float
    pp: float
    vp: float
    cp: float
    ep: float
    zero_stage: float
    n_shard: float
    recomputation: float
    is_sequence_parallel: float
    micro_batch: float
    n_micro_batch: float
    has_tensor_parallel: float
    logit_share: float
    offload_optimizer: float
    offload_parameter: float
    offload_activation: float


@cached(LRUCache(GRID_CACHE_BYTE, getsizeof=lambda grid: grid.nbytes), lock=threading.Lock())
def _grid(j: _JobKey) -> FloatArray:
    is_free = j.has_tensor_parallel > 0
    axes = (
        [j.tp] if j.tp > 0 else _powers(min(j.domain, j.n, MAX_TENSOR) if is_free else 1.0),
        [j.pp] if j.pp > 0 else _powers(min(j.n, j.n_layer, MAX_STAGE) if is_free else 1.0),
        [j.cp] if j.cp > 0 else _powers(min(j.n, j.n_token / LEAST_CONTEXT_TOKEN) if is_free else 1.0),
        [j.ep] if j.ep > 0 else _powers(min(j.n, j.n_expert, MAX_EXPERT) if j.n_expert > 0 else 1.0),
        [j.recomputation] if j.recomputation >= 0 else [0.0, 1.0, 2.0],
        [j.micro_batch] if j.micro_batch > 0 else _powers(MAX_MICRO_BATCH),
        [j.vp] if j.vp > 0 else _chunks(j, is_free=is_free),
    )
    mesh = np.array(np.meshgrid(*axes, indexing="ij")).reshape(len(axes), -1)
    t, p, k, e, r, b, v = mesh
    split = t * p * k
    dp = np.maximum(np.floor(j.n / split), 1.0)
    per_replica = j.batch / dp if j.batch > 0 else b * np.where(p > 1, TYPICAL_MICRO_BATCHES * p, 1.0)
    m = per_replica / b if j.n_micro_batch <= 0 or j.batch > 0 else np.full_like(b, j.n_micro_batch)
    is_whole = (
        (split <= j.n)
        & (j.n % split == 0)
        & (j.n_head % t == 0)
        & ((j.tp > 0) | (j.n_kv_head % t == 0))
        & ((j.pp > 0) | (_missing_layer(j, p) <= MAX_MISSING_LAYER))
        & (e <= t * k * dp)
        & ((j.n_expert % e == 0) | (e == 1))
    )
    is_batch = (m >= 1.0) & ((j.micro_batch > 0) | (m % 1.0 == 0))
    is_even = _missing_layer(j, p * v) <= MAX_MISSING_LAYER
    is_chunk = (v == 1) | ((p > 1) & is_even & ((j.vp > 0) | ((m >= p) & (m % p == 0))))
    valid = is_whole & is_batch & is_chunk
    if not valid.any():
        valid = (split == split.min()) & (b == b.min()) & (e == e.min()) & (v == v.min())
        valid &= (t == t.min()) & (p == p.min())
    t, p, k, e, r, b, v, dp, m = (values[valid] for values in (t, p, k, e, r, b, v, dp, m))
    shard = np.minimum(j.n_shard, dp * k) if j.n_shard > 0 else dp * k
    sequence = np.where(t > 1, j.is_sequence_parallel if j.is_sequence_parallel >= 0 else 1.0, 0.0)
    shared = (j.logit_share, j.offload_optimizer, j.offload_parameter, j.offload_activation)
    zero, *rest = (np.full_like(t, value) for value in (max(j.zero_stage, 0.0), *shared))
    return np.array([t, p, v, k, dp, e, zero, shard, r, sequence, b, np.maximum(m, 1.0), *rest])


def _chunks(j: _JobKey, *, is_free: bool) -> list[float]:
    if j.pp > 0:
        chunks = np.arange(1.0, MAX_CHUNK + 1.0)
        return [v for v in chunks if v == 1.0 or _missing_layer(j, j.pp * v) <= MAX_MISSING_LAYER]
    return _powers(MAX_CHUNK) if is_free else [1.0]


def _missing_layer(j: _JobKey, n_part: FloatArray | float) -> FloatArray:
    return np.asarray(np.ceil(j.n_layer / n_part) * n_part - j.n_layer)


def _powers(highest: float) -> list[float]:
    return [2.0**i for i in range(int(np.log2(max(highest, 1.0))) + 1)]
