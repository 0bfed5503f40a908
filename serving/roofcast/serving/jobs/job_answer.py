"""Answer of a training search: entries, Pareto front, other offers."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from roofcast.data.units import W_PER_KW
from roofcast.features.jobs.step.job_memory import correct_memory
from roofcast.features.queries import FloatArray, RowIndex
from roofcast.serving.jobs.job_answer_parts import (
    JobEntryResponse,
    JobInterval,
    JobPlanResponse,
    JobRunResponse,
)
from roofcast.serving.jobs.job_numbers import INTERVAL_METRICS, MEMORY_PARTS, Columns, design_power_w, job_numbers
from roofcast.serving.jobs.launch.launch import launch_commands
from roofcast.serving.jobs.search.job_search import JobSearch
from roofcast.serving.recommend.answer.other_offers import offers_elsewhere
from roofcast.serving.recommend.answer.pareto_front import non_dominated
from roofcast.serving.recommend.answer.parts import OtherOffer, offer_fields
from roofcast.serving.recommend.demand.inventory import OwnedNodes

ENDS: Final = ("", "_lo", "_hi")
_PLAN_TEXTS: Final = ("framework", "compute_precision", "sharding", "recomputation", "loss", "offload")


def best_runs(found: JobSearch, confidence: float) -> RowIndex:
    """Return the cheapest run of each alternative that meets the limits, the cheapest first.

    Runs of one alternative have the accelerator, the kind of price and the market in common; each kind of owned nodes
    is an alternative of its own.
    """
    runs = found.runs
    met = np.flatnonzero(runs.p_met >= confidence)
    first: dict[tuple[str, ...], int] = {}
    for k in _by_cost(found, met).tolist():
        first.setdefault(alternative(found, k), k)
    return np.array([*first.values()], dtype=np.intp)


def _by_cost(found: JobSearch, rows: RowIndex) -> RowIndex:
    runs = found.runs
    size = found.jobs.table["n_accelerator"].to_numpy(dtype=float)[runs.job[rows]]
    return rows[np.lexsort((size, -runs.p_met[rows].round(2), runs.hours[rows].round(9), runs.cost[rows].round(9)))]


def alternative(found: JobSearch, run: int) -> tuple[str, ...]:
    """Return what a run has in common with others of its alternative."""
    offer = found.offers[found.runs.offer[run]]
    return (offer.accelerator, offer.pricing, offer.market, offer.id if isinstance(offer, OwnedNodes) else "")


def build_front(found: JobSearch, confidence: float) -> list[JobRunResponse]:
    """Return the runs that meet the limits and of which none is both faster and cheaper, the cheapest first."""
    runs = found.runs
    met = np.flatnonzero(runs.p_met >= confidence)
    front = met[non_dominated(runs.cost[met], runs.hours[met])]
    return [JobRunResponse(**_run_fields(found, k)) for k in front.tolist()]


def build_entries(found: JobSearch, rows: RowIndex) -> list[JobEntryResponse]:
    """Return runs as entries, with intervals, memory, energy, launch commands and other offers."""
    entries: list[JobEntryResponse] = []
    jobs, prediction = found.jobs, found.prediction
    numbers = job_numbers(jobs.runs, jobs.time, correct_memory(jobs.memory, prediction.peak_memory_byte), prediction)
    for rank, k in enumerate(rows.tolist(), start=1):
        fields = _run_fields(found, k) | _entry_fields(found, k, numbers)
        own = fields["cost_usd_interval"]
        pair = own, entries[0].cost_usd_interval if entries else own
        ties_first = all(a.low <= b.value <= a.high for a, b in (pair, pair[::-1]))
        entries.append(JobEntryResponse(rank=rank, ties_first=ties_first, **fields))
    return entries


def plan_response(found: JobSearch, job: int) -> JobPlanResponse:
    """Return the plan of a job."""
    row = found.jobs.table.iloc[job]
    whole = {name: int(row[name]) for name in ("tp", "pp", "vp", "cp", "dp", "ep")}
    texts = {name: str(row[name]) for name in _PLAN_TEXTS}
    names = ("n_micro_batch_sequence", "n_gradient_accumulation", "n_global_batch_sequence")
    numbers = {name: float(row[name]) for name in names}
    return JobPlanResponse(**whole, **texts, **numbers, sequence_parallel=row["sequence_parallel"] == "on")


def _run_fields(found: JobSearch, run: int) -> dict[str, Any]:
    runs, job = found.runs, int(found.runs.job[run])
    one = found.hardware[found.jobs.hardware[job]]
    has_deadline, has_budget = np.isfinite(found.demand.deadline_h), np.isfinite(found.demand.budget_usd)
    return offer_fields(found.offers[runs.offer[run]]) | {
        "accelerator": one.accelerator,
        "n_accelerator": one.n_accelerator,
        "n_instance": one.n_node,
        "usd_per_h": float(runs.usd_per_h[run]),
        "plan": plan_response(found, job),
        "hours": float(runs.hours[run]),
        "cost_usd": float(runs.cost[run]),
        "p_fits": float(found.prediction.p_fits[job]),
        "p_deadline_met": float(runs.p_deadline[run]) if has_deadline else None,
        "p_budget_met": float(runs.p_budget[run]) if has_budget else None,
        "p_limits_met": float(runs.p_met[run]),
    }


def _entry_fields(found: JobSearch, run: int, numbers: Columns) -> dict[str, Any]:
    job, jobs = int(found.runs.job[run]), found.jobs
    one = found.hardware[jobs.hardware[job]]
    spec = found.catalog.accelerators[one.accelerator]
    launch = launch_commands(plan_response(found, job), one, found.demand, spec.vendor)
    of_metric = {name: _interval([numbers[f"{name}{end}"][job] for end in ENDS]) for name in INTERVAL_METRICS}
    step = np.array([numbers[f"step_time_s{end}"][job] for end in ENDS])
    hours, share = found.runs.hours[run] * (step / step[0]), float(numbers["power_share"][job])
    power_w = design_power_w(spec) * share * one.n_accelerator
    return of_metric | {
        "hours_interval": _interval(hours),
        "cost_usd_interval": _interval(hours * found.runs.usd_per_h[run]),
        "energy_kwh": _interval(hours * power_w / W_PER_KW),
        "power_w": power_w,
        "power_share": share,
        "memory_byte": {name: float(numbers[f"memory_{name}_byte"][job]) for name in MEMORY_PARTS},
        "memory_capacity_byte": spec.memory_byte,
        "outside": bool(found.prediction.outside[job]),
        "launch": launch.commands,
        "launch_problems": launch.problems,
        "also_at": _other_offers(found, run),
    }


def _interval(values: Sequence[float] | FloatArray) -> JobInterval:
    value, low, high = map(float, values)
    return JobInterval(value=value, low=low, high=high)


def _other_offers(found: JobSearch, run: int) -> tuple[OtherOffer, ...]:
    runs = found.runs
    same = np.flatnonzero(runs.job == runs.job[run])
    same = same[np.argsort(runs.usd_per_h[same], kind="stable")]
    n_node = found.hardware[found.jobs.hardware[runs.job[run]]].n_node
    others = (
        (found.offers[runs.offer[k]], n_node, float(runs.usd_per_h[k]))
        for k in same.tolist()
        if alternative(found, k) == alternative(found, run)
    )
    return offers_elsewhere(found.offers[runs.offer[run]], others)
