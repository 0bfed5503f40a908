"""Answer of a training search: entries, Pareto front, other offers."""

from typing import Any, Final

import numpy as np

from roofcast.data.units import W_PER_KW
from roofcast.features.jobs.step.job_memory import correct_memory
from roofcast.features.jobs.step.step import mfu_ratio, throughput_token_per_s
from roofcast.features.queries import FloatArray, RowIndex
from roofcast.serving.jobs.conventions import design_power_w, power_share
from roofcast.serving.jobs.job_answer_parts import (
    JobEntryResponse,
    JobInterval,
    JobPlanResponse,
    JobRunResponse,
)
from roofcast.serving.jobs.launch.launch import launch_commands
from roofcast.serving.jobs.memory_parts import memory_parts
from roofcast.serving.jobs.search.job_search import JobSearch
from roofcast.serving.recommend.answer.other_offers import offers_elsewhere
from roofcast.serving.recommend.answer.pareto_front import non_dominated
from roofcast.serving.recommend.answer.parts import OtherOffer, offer_fields
from roofcast.serving.recommend.demand.inventory import OwnedNodes

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
    for rank, k in enumerate(rows.tolist(), start=1):
        fields = _run_fields(found, k) | _entry_fields(found, k)
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


def _entry_fields(found: JobSearch, run: int) -> dict[str, Any]:
    job, jobs, prediction = int(found.runs.job[run]), found.jobs, found.prediction
    one = found.hardware[jobs.hardware[job]]
    spec = found.catalog.accelerators[one.accelerator]
    launch = launch_commands(plan_response(found, job), one, found.demand, spec.vendor)
    rates = [
        values[job] * one.n_accelerator
        for values in (
            prediction.token_per_s_per_accelerator,
            prediction.token_per_s_per_accelerator_low,
            prediction.token_per_s_per_accelerator_high,
        )
    ]
    rate = np.array(rates)
    hours = found.runs.hours[run] * rate[0] / rate[[0, 2, 1]]
    share = _at(power_share(jobs.time), job)
    power_w = design_power_w(spec) * share * one.n_accelerator
    mfu = _at(mfu_ratio(jobs.runs, jobs.time) / throughput_token_per_s(jobs.runs, jobs.time), job)
    memory = (prediction.peak_memory_byte, prediction.peak_memory_byte_low, prediction.peak_memory_byte_high)
    parts = memory_parts(correct_memory(jobs.memory, prediction.peak_memory_byte))
    return {
        "hours_interval": _interval(hours),
        "cost_usd_interval": _interval(hours * found.runs.usd_per_h[run]),
        "energy_kwh": _interval(hours * power_w / W_PER_KW),
        "power_w": power_w,
        "power_share": float(share),
        "step_time_s": _interval(found.demand.n_token * found.demand.n_batch / rate[[0, 2, 1]]),
        "throughput_token_per_s": _interval(rate),
        "mfu_ratio": _interval(rate * mfu),
        "peak_memory_byte": _interval(np.array([values[job] for values in memory])),
        "memory_byte": {name: float(_at(values, job)) for name, values in parts.items()},
        "memory_capacity_byte": spec.memory_byte,
        "outside": bool(prediction.outside[job]),
        "launch": launch.commands,
        "launch_problems": launch.problems,
        "also_at": _other_offers(found, run),
    }


def _at(values: FloatArray, job: int) -> float:
    return float(values[job] if len(values) > 1 else values[0])


def _interval(values: FloatArray) -> JobInterval:
    value, low, high = values.tolist()
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
