"""Near misses: why accelerators have no entry, the cheapest first."""

import math
from collections.abc import Collection

import numpy as np

from roofcast.data.units import BYTE_PER_GB
from roofcast.features.queries import RowIndex
from roofcast.serving.jobs.job_answer_parts import JobMissResponse
from roofcast.serving.jobs.search.job_search import JobSearch


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
