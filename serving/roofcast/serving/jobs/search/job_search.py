"""Search for the cheapest hardware and plan of a training job within its limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from roofcast.data.catalog import Catalog
from roofcast.data.specs import Offer
from roofcast.data.units import S_PER_H
from roofcast.features.queries import FloatArray, RowIndex, take_rows
from roofcast.serving.jobs.search.candidates import (
    Hardware,
    JobDemand,
    candidate_table,
    exclusion,
    list_hardware,
    used_per_node,
)
from roofcast.serving.jobs.search.plans import JUDGE_LEVEL, LEAST_P_FITS, PlannedJobs, predict_jobs, shortlist_plans
from roofcast.serving.recommend.demand.constraints import OwnedNodes
from roofcast.training.jobs.job_predictor import JobPrediction, JobPredictor
from roofcast.training.learner.errors.lazy_scipy import special

_BOUNDS: Final = tuple(
    f"{name}_{end}" for name in ("token_per_s_per_accelerator", "peak_memory_byte") for end in ("low", "high")
)


@dataclass(frozen=True, slots=True)
class Runs:
    """Planned jobs on offers, with their predictions; arrays have shape (n_run,).

    - `job`, `offer`: Indices of the planned job and of the offer.
    - `hours`, `cost`: Median time, and US dollars.
    - `usd_per_h`: Of all instances.
    - `p_deadline`, `p_budget`: Probability that time and cost are within their limits; 1 without a limit.
    - `p_met`: Probability that the job fits, and meets both.
    """

    job: RowIndex
    offer: RowIndex
    hours: FloatArray
    usd_per_h: FloatArray
    p_deadline: FloatArray
    p_budget: FloatArray
    p_met: FloatArray

    @property
    def cost(self) -> FloatArray:
        """Median cost in US dollars."""
        return self.hours * self.usd_per_h


@dataclass(frozen=True)
class JobSearch:
    """Everything that was compared.

    `excluded`: why accelerators do not train the job whatever their memory, by id.
    """

    demand: JobDemand
    catalog: Catalog
    offers: Sequence[Offer]
    hardware: list[Hardware]
    excluded: dict[str, str]
    jobs: PlannedJobs
    prediction: JobPrediction
    runs: Runs


def search(
    demand: JobDemand,
    catalog: Catalog,
    offers: Sequence[Offer],
    predictor: JobPredictor,
    *,
    max_nodes: int,
    max_usd_per_h: float,
    confidence: float,
) -> JobSearch | dict[str, str]:
    """Return what the search compared; if no offer has an accelerator that trains the job, the reason of each.

    Memory of the host is used only on hardware where no plan without it fits with probability `confidence`.

    `catalog`: holds the model and the accelerators of the offers.
    """
    names = dict.fromkeys(offer.accelerator for offer in offers)
    reasons = {name: exclusion(catalog.accelerators[name], demand) for name in names}
    admitted = [offer for offer in offers if not reasons[offer.accelerator]]
    if not admitted:
        return reasons
    hardware = list_hardware(admitted, catalog.accelerators, max_nodes)
    candidates = candidate_table(hardware, demand, catalog)
    jobs = shortlist_plans(candidates, catalog, len(hardware), has_offload=True)
    prediction = predict_jobs(jobs.table, catalog, predictor) if len(jobs.table) else _no_prediction()
    rows = _needed(jobs, prediction.p_fits, confidence)
    jobs, prediction = jobs.take(rows), take_rows(prediction, rows)
    excluded = {name: reason for name, reason in reasons.items() if reason}
    job, offer = _pair(hardware, admitted, jobs, max_usd_per_h)
    n_node = np.array([one.n_node for one in hardware], dtype=float)[jobs.hardware[job]]
    usd_per_h = n_node * np.array([float(one.price_usd_per_h) for one in admitted])[offer]
    hours = run_hours(demand, jobs, prediction.token_per_s_per_accelerator)[job]
    sd = log_sd(prediction)[job]
    p_deadline = _p_below(hours, demand.deadline_h, sd)
    p_budget = _p_below(hours * usd_per_h, demand.budget_usd, sd)
    p_met = prediction.p_fits[job] * np.minimum(p_deadline, p_budget)
    runs = Runs(job, offer, hours, usd_per_h, p_deadline, p_budget, p_met)
    return JobSearch(demand, catalog, admitted, hardware, excluded, jobs, prediction, runs)


def at_level(found: JobSearch, rows: RowIndex, predictor: JobPredictor, level: float) -> JobSearch:
    """Return the search with intervals of another level for the jobs of some runs.

    Raises `OutOfRangeError` if the measurements cannot support the level.
    """
    jobs = np.unique(found.runs.job[rows])
    if level == JUDGE_LEVEL or not len(jobs):
        return found
    own = predict_jobs(found.jobs.table.iloc[jobs], found.catalog, predictor, level)
    bounds = {name: getattr(found.prediction, name).copy() for name in _BOUNDS}
    for name, values in bounds.items():
        values[jobs] = getattr(own, name)
    return replace(found, prediction=replace(found.prediction, **bounds))


def _needed(jobs: PlannedJobs, p_fits: FloatArray, confidence: float) -> RowIndex:
    is_on_host = (jobs.table["offload"] != "none").to_numpy(dtype=bool)
    fitting = jobs.hardware[~is_on_host & (p_fits >= confidence)]
    return np.flatnonzero((p_fits >= LEAST_P_FITS) & (~is_on_host | ~np.isin(jobs.hardware, fitting)))


def _no_prediction() -> JobPrediction:
    none = np.zeros(0)
    return JobPrediction(none, none, none, none, none, none, none, np.zeros(0, dtype=bool))


def _pair(
    hardware: Sequence[Hardware], offers: Sequence[Offer], jobs: PlannedJobs, max_usd_per_h: float
) -> tuple[RowIndex, RowIndex]:
    of_hardware: dict[int, list[int]] = {}
    for row, index in enumerate(jobs.hardware.tolist()):
        of_hardware.setdefault(index, []).append(row)
    by_node: dict[tuple[str, int], list[int]] = {}
    for index, one in enumerate(hardware):
        by_node.setdefault((one.accelerator, one.n_per_node), []).append(index)
    pairs: list[tuple[int, int]] = []
    for k, offer in enumerate(offers):
        for index in by_node[offer.accelerator, used_per_node(offer)]:
            n_node = hardware[index].n_node
            is_available = not isinstance(offer, OwnedNodes) or n_node <= offer.n_node
            if is_available and n_node * float(offer.price_usd_per_h) <= max_usd_per_h:
                pairs += [(row, k) for row in of_hardware.get(index, [])]
    job, offer_index = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return job, offer_index


def run_hours(demand: JobDemand, jobs: PlannedJobs, token_per_s_per_accelerator: FloatArray) -> FloatArray:
    """Return the hours of all steps of the run: shape (n_job,)."""
    rate = token_per_s_per_accelerator * jobs.table["n_accelerator"].to_numpy(dtype=float)
    return np.asarray(demand.n_step * demand.n_step_token / rate / S_PER_H, dtype=np.float64)


def log_sd(prediction: JobPrediction) -> FloatArray:
    """Return the standard deviation of log throughput of a lognormal distribution with the intervals of `search`."""
    width = np.log(prediction.token_per_s_per_accelerator_high / prediction.token_per_s_per_accelerator_low)
    return np.asarray(width / (2.0 * special.ndtri(0.5 + JUDGE_LEVEL / 2.0)), dtype=np.float64)


def _p_below(median: FloatArray, limit: float, sd: FloatArray) -> FloatArray:
    if not np.isfinite(limit):
        return np.ones_like(median)
    with np.errstate(divide="ignore"):  # owned nodes may cost nothing
        return np.asarray(special.ndtr((np.log(limit) - np.log(median)) / sd), dtype=np.float64)
