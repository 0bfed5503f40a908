"""Plans of jobs as columns of the training table, and the memory and energy that go with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.features.jobs.plan_enumeration import USABLE_RATIO, Jobs, join_plans, search_plans
from roofcast.features.jobs.run_columns import JobRuns, Plan
from roofcast.features.jobs.run_table import build_jobs, framework_code
from roofcast.features.jobs.step.job_memory import JobMemory, estimate_memory
from roofcast.features.jobs.step.step import JobTime, estimate_training
from roofcast.features.queries import FloatArray, RowIndex, take_rows
from roofcast.serving.abandonment import stop_if_abandoned
from roofcast.serving.defaults import DEFAULT_CONFIDENCE
from roofcast.serving.jobs.rows import ADAPTERS
from roofcast.training.jobs.job_predictor import JobPrediction, JobPredictor

PLAN_COLUMNS: Final = (
    "tp", "pp", "vp", "cp", "dp", "ep", "sharding", "recomputation", "sequence_parallel", "n_micro_batch_sequence",
    "n_gradient_accumulation", "n_global_batch_sequence", "loss", "offload",
)  # fmt: skip
"""Columns of the training table that state a plan wholly."""

RECOMPUTATIONS: Final = np.array(["none", "selective", "full"], dtype=object)
_SHARDING_OF_STAGE: Final = np.array(["ddp", "zero1", "zero2", "fsdp"], dtype=object)
_DEEPSPEED: Final = [framework_code(name) for name in ("deepspeed", "megatron-deepspeed")]
_OFFLOADS: Final = np.array(["none", "optimizer", "parameters", "optimizer+parameters", "activations"], dtype=object)
"""By the sum of 1 for the optimizer, 2 for the parameters and 4 for activations, which come alone."""


def plan_columns(runs: JobRuns, table: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """Return `PLAN_COLUMNS` of jobs with plans, whose sharding, loss and offload stay where they are stated."""
    plan = runs.plan
    is_zero = (plan.zero_stage > 2) & np.isin(runs.job.framework, _DEEPSPEED)
    held = (plan.offload_optimizer, plan.offload_parameter, plan.offload_activation)
    own = {
        "sharding": np.where(is_zero, "zero3", _SHARDING_OF_STAGE[plan.zero_stage.astype(int)]),
        "loss": np.where(plan.logit_share < 1.0, "chunked", "full"),
        "offload": _OFFLOADS[np.array(held, dtype=int).T @ np.array([1, 2, 4])],
    }
    stated = {name: table[name].to_numpy(dtype=object) for name in own}
    return {
        **{name: getattr(plan, name) for name in ("tp", "pp", "vp", "cp", "dp", "ep")},
        **{name: np.where(stated[name] == "", values, stated[name]) for name, values in own.items()},
        "recomputation": RECOMPUTATIONS[plan.recomputation.astype(int)],
        "sequence_parallel": np.where(plan.is_sequence_parallel > 0, "on", "off").astype(object),
        "n_micro_batch_sequence": plan.micro_batch,
        "n_gradient_accumulation": plan.n_micro_batch,
        "n_global_batch_sequence": plan.micro_batch * plan.n_micro_batch * plan.dp,
    }


def keeps_stated(table: pd.DataFrame, index: RowIndex, plan: Plan) -> npt.NDArray[np.bool_]:
    """Return whether each plan has the replicas and micro-batches that its job states: shape (n_plan,).

    `index`: shape (n_plan,): row of the job of each plan.

    Notes
    -----
    `roofcast.features.jobs.plan_enumeration.enumerate_plans` derives both from the split and the batch.
    """
    is_kept = np.ones(len(index), dtype=np.bool_)
    for name, values in (("dp", plan.dp), ("n_gradient_accumulation", plan.n_micro_batch)):
        if name in table:
            stated = table[name].to_numpy(dtype=float)[index]
            is_kept &= np.isnan(stated) | np.isclose(values, stated, rtol=1e-6)
    return is_kept


def is_sound(n_accelerator: FloatArray, n_batch: FloatArray, plan: Plan) -> npt.NDArray[np.bool_]:
    """Return whether each plan uses every accelerator and makes the global batch, NaN if any, of whole micro-batches.

    It has shape (n_plan,). Jobs without a sound plan get one all the same from
    `roofcast.features.jobs.plan_enumeration.enumerate_plans`.
    """
    batch = plan.micro_batch * plan.n_micro_batch * plan.dp
    makes_batch = np.isnan(n_batch) | np.isclose(batch, n_batch, rtol=1e-6)
    makes_batch &= np.isclose(plan.n_micro_batch, np.rint(plan.n_micro_batch), rtol=1e-6)
    return np.asarray((plan.tp * plan.pp * plan.cp * plan.dp == n_accelerator) & makes_batch, dtype=np.bool_)


FILLED: Final = (0.95, 0.8, 0.6, 0.4)
"""Shares of the memory that a plan may fill by the estimate; the predictor knows which of them is safe."""

ENOUGH: Final = FILLED[2]
"""Share within which one plan has to be, so that no leaner ones are searched."""

MODEST: Final = 1.5
"""Estimated memory over capacity up to which a plan is predicted where none fits."""


@dataclass(frozen=True, slots=True)
class PlannedJobs:
    """Jobs with their plans; arrays have shape (n_job,).

    - `table`: Training table with the plans stated, the index of the hardware, and how lean the settings are: 0 where
      they are the framework's conventions.
    - `leanest_byte`: Least memory in use on the device of any plan that the host can hold, by hardware; infinite
      without a plan: shape (n_hardware,).
    - `n_plan`: Plans that were compared.
    """

    table: pd.DataFrame
    runs: JobRuns
    time: JobTime
    memory: JobMemory
    leanest_byte: FloatArray
    n_plan: int

    def take(self, rows: RowIndex) -> PlannedJobs:
        """Return some of the jobs."""
        parts = {name: take_rows(getattr(self, name), rows) for name in ("runs", "time", "memory")}
        return replace(self, table=self.table.iloc[rows].reset_index(drop=True), **parts)

    @property
    def hardware(self) -> RowIndex:
        """Index of the hardware of each job."""
        return np.asarray(self.table["hardware"].to_numpy(), dtype=np.intp)


def shortlist_plans(
    table: pd.DataFrame, catalog: Catalog, n_hardware: int, *, has_offload: bool = False
) -> PlannedJobs:
    """Return the plans of each hardware and leaner setting that are fastest within the `FILLED` shares of its memory.

    Of those with which no plan stays within the least share, the leanest is returned if it needs at most `MODEST`
    times the memory.

    `has_offload`: whether the host may hold what the convention leaves on the device.
    """
    jobs = build_jobs(table, catalog.models, catalog.accelerators, has_offload=has_offload)
    admit = partial(_admit, table, jobs)
    found = search_plans(jobs, enough=ENOUGH, admit=admit, pause=stop_if_abandoned)
    index, plan, filled, rate = found.index, found.plan, found.filled, found.rate
    origin = jobs.origin[index]
    hardware = table["hardware"].to_numpy(dtype=np.intp)[origin]
    step = jobs.step[index]
    chosen = _choose(hardware * (jobs.step.max() + 1) + step, filled, rate)
    runs = join_plans(jobs, index[chosen], take_rows(plan, chosen))
    stated = table.iloc[origin[chosen]].reset_index(drop=True)
    stated = stated.assign(**plan_columns(runs, stated), step=step[chosen])
    leanest = np.full(n_hardware, np.inf)
    capacity = np.broadcast_to(jobs.hardware.memory_byte, len(jobs.origin))[index]
    np.minimum.at(leanest, hardware, np.where(found.on_host <= USABLE_RATIO, filled * capacity, np.inf))
    return PlannedJobs(stated, runs, estimate_training(runs), estimate_memory(runs), leanest, len(index))


def _admit(table: pd.DataFrame, jobs: Jobs, index: RowIndex, plan: Plan) -> npt.NDArray[np.bool_]:
    is_possible = is_sound(jobs.job.n_accelerator[index], jobs.job.n_global_batch[index], plan)
    is_possible &= keeps_stated(table, jobs.origin[index], plan)
    s = jobs.stated
    is_foreign = np.isnan(s.recomputation)[index] & (plan.recomputation == 1)
    is_foreign |= np.isnan(s.ep)[index] & (plan.ep > 1)
    is_peft = (table["framework"] == ADAPTERS).to_numpy()[jobs.origin[index]]
    return np.asarray(is_possible & ~(is_peft & is_foreign), dtype=np.bool_)


def _choose(group: RowIndex, filled: FloatArray, rate: FloatArray) -> RowIndex:
    chosen: list[npt.NDArray[np.intp]] = []
    for share in FILLED:
        rows = np.flatnonzero(filled <= share)
        order = rows[np.lexsort((-rate[rows], group[rows]))]
        chosen.append(order[np.unique(group[order], return_index=True)[1]])
    is_lean = np.isin(group, group[chosen[-1]])
    rows = np.flatnonzero(~is_lean & (filled <= MODEST))
    order = rows[np.lexsort((filled[rows], group[rows]))]
    chosen.append(order[np.unique(group[order], return_index=True)[1]])
    return np.asarray(np.unique(np.concatenate(chosen)), dtype=np.intp)


LEAST_P_FITS: Final = 0.1
"""Probability of fitting below which a job has no times."""

JUDGE_LEVEL: Final = 0.8
"""Level of the intervals that the probabilities of limits follow from, whatever level is reported."""


def predict_jobs(
    table: pd.DataFrame, catalog: Catalog, predictor: JobPredictor, level: float = JUDGE_LEVEL
) -> JobPrediction:
    """Return the prediction of jobs whose plans are stated, with memory in use on the device."""
    jobs = table.drop(columns=["hardware", "step"], errors="ignore").assign(memory_kind="device")
    return predictor.predict(jobs, coverage=level, catalog=catalog)


def with_fastest_plans(table: pd.DataFrame, catalog: Catalog, predictor: JobPredictor) -> pd.DataFrame:
    """Return the table of jobs with the fastest plan of each that fits with probability `DEFAULT_CONFIDENCE`.

    Leaner settings are used only where no others are so likely to fit. Where none is, the likeliest is stated; where
    none is near the memory, plans stay open.
    """
    indexed = table.assign(hardware=np.arange(len(table)))
    planned = shortlist_plans(indexed, catalog, len(table), has_offload=True)
    candidates = planned.table
    if not len(candidates):
        return table
    prediction = predict_jobs(candidates, catalog, predictor)
    best = _fastest(candidates, prediction.p_fits, prediction.token_per_s_per_accelerator)
    chosen = candidates.iloc[best]
    jobs = chosen["hardware"].to_numpy(dtype=np.intp)
    columns = {}
    for name in PLAN_COLUMNS:
        columns[name] = table[name].to_numpy().copy()
        columns[name][jobs] = chosen[name]
    return table.assign(**columns)


def _fastest(candidates: pd.DataFrame, p_fits: FloatArray, rate: FloatArray) -> RowIndex:
    job = candidates["hardware"].to_numpy()
    fits = p_fits >= DEFAULT_CONFIDENCE
    preferred = np.where(fits, rate, p_fits)
    step = np.where(fits, candidates["step"], 0)
    order = np.lexsort((-preferred, step, ~fits, job))
    return np.asarray(order[np.unique(job[order], return_index=True)[1]], dtype=np.intp)
