"""Answer of a training search: entries, Pareto front, other offers."""

import math
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from roofcast.data.units import BYTE_PER_GB, W_PER_KW
from roofcast.features.jobs.step.job_memory import correct_memory
from roofcast.features.queries import FloatArray, RowIndex
from roofcast.serving.jobs.job_messages import (
    JobEntryResponse,
    JobInterval,
    JobMissResponse,
    JobPlanResponse,
    JobRunResponse,
)
from roofcast.serving.jobs.job_predictions import INTERVAL_METRICS, MEMORY_PARTS, Columns, design_power_w, job_numbers
from roofcast.serving.jobs.launch.launch import launch_commands
from roofcast.serving.jobs.search.job_search import JobSearch
from roofcast.serving.recommend.answer.other_offers import offers_elsewhere
from roofcast.serving.recommend.answer.pareto_front import non_dominated
from roofcast.serving.recommend.answer.parts import OtherOffer, offer_fields
from roofcast.serving.recommend.demand.constraints import OwnedNodes

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


def list_misses(found: JobSearch, entries: RowIndex, confidence: float) -> list[JobMissResponse]:
    """Return the nearest miss of each accelerator without an entry: those that run by cost, then the others.

    `entries`: runs of the entries.
    """
    shown = {found.offers[found.runs.offer[k]].accelerator for k in entries.tolist()}
    names = dict.fromkeys(one.accelerator for one in found.hardware)
    cheapest = float(found.runs.cost[entries].min(initial=math.inf))
    misses = [_miss(found, name, confidence, cheapest) for name in names if name not in shown]
    misses += [_plain(name, "excluded", reason) for name, reason in found.excluded.items()]
    return sorted(
        misses, key=lambda miss: (miss.cost_usd is None, miss.cost_usd or 0.0, miss.reason, miss.accelerator)
    )


def _plain(accelerator: str, reason: str, detail: str, n_accelerator: int | None = None) -> JobMissResponse:
    fields = {"accelerator": accelerator, "reason": reason, "detail": detail, "n_accelerator": n_accelerator}
    return JobMissResponse.model_validate(fields | dict.fromkeys(("cost_usd", "hours", "p_limits_met")))


def _miss(found: JobSearch, accelerator: str, confidence: float, cheapest: float) -> JobMissResponse:
    runs = found.runs
    of_run = np.array([found.offers[k].accelerator == accelerator for k in runs.offer.tolist()], dtype=bool)
    rows = np.flatnonzero(of_run)
    indices = [i for i, one in enumerate(found.hardware) if one.accelerator == accelerator]
    if not len(rows):
        return _without_run(found, accelerator, indices)
    may_fit = found.prediction.p_fits[runs.job[rows]] >= confidence
    excess = np.maximum(runs.hours / found.demand.deadline_h, runs.cost / found.demand.budget_usd)[rows]
    order = np.lexsort((runs.cost[rows], np.maximum(excess, 1.0), ~may_fit, -runs.p_met[rows].round(3)))
    nearest = rows[order[0]]
    met = rows[runs.p_met[rows] >= confidence]
    if len(met):
        nearest = met[runs.cost[met].argmin()]
    reason, detail = _reason(found, int(nearest), confidence, cheapest)
    return JobMissResponse.model_validate({
        "accelerator": accelerator,
        "n_accelerator": found.hardware[found.jobs.hardware[runs.job[nearest]]].n_accelerator,
        "reason": reason,
        "detail": detail,
        "cost_usd": float(runs.cost[nearest]),
        "hours": float(runs.hours[nearest]),
        "p_limits_met": float(runs.p_met[nearest]),
    })  # fmt: skip


def _reason(found: JobSearch, run: int, confidence: float, cheapest: float) -> tuple[str, str]:
    runs, demand = found.runs, found.demand
    hours, cost = runs.hours[run], runs.cost[run]
    if runs.p_met[run] >= confidence:
        return "dearer", f"costs {cost:.2f} USD; the cheapest costs {cheapest:.2f}"
    p_fits = found.prediction.p_fits[runs.job[run]]
    weakest = min(p_fits, runs.p_deadline[run], runs.p_budget[run])
    required = f"{confidence:g} is required"
    if weakest == p_fits:
        return "may_not_fit", f"fits with probability {p_fits:.2f}; {required}"
    n = found.hardware[found.jobs.hardware[runs.job[run]]].n_accelerator
    if weakest == runs.p_deadline[run]:
        text = f"{_verb(n, 'take')} {hours:.3g} h: the deadline of {demand.deadline_h:g} h is met with probability"
        return "too_slow", f"{text} {weakest:.2f}; {required}"
    text = f"{_verb(n, 'cost')} {cost:.2f} USD: the budget of {demand.budget_usd:g} is met with probability"
    return "over_budget", f"{text} {weakest:.2f}; {required}"


def _verb(n: int, verb: str) -> str:
    return f"{n} {verb}{'s' if n == 1 else ''}"


def _without_run(found: JobSearch, accelerator: str, indices: Collection[int]) -> JobMissResponse:
    leanest = found.jobs.leanest_byte
    best = min(indices, key=lambda i: (float(leanest[i]), found.hardware[i].n_accelerator))
    capacity = found.catalog.accelerators[accelerator].memory_byte / BYTE_PER_GB
    n = found.hardware[best].n_accelerator
    if not np.isfinite(leanest[best]):
        return _plain(accelerator, "does_not_fit", "no plan divides the model, batch and accelerators evenly", n)
    if set(indices) & set(found.jobs.hardware.tolist()):
        return _plain(accelerator, "over_budget", "the instances cost more an hour than max_usd_per_h")
    detail = f"the leanest plan of {n} needs {leanest[best] / BYTE_PER_GB:.1f} GB on each, of {capacity:.1f} GB"
    return _plain(accelerator, "does_not_fit", detail, n)
