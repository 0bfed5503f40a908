"""The main job: the hardware that meets a demand at the least cost, and why the rest does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.data.units import BYTE_PER_GB, H_PER_MONTH, S_PER_H, TOKEN_PER_MTOKEN
from roofcast.serving.answering import context_problem, longest_context
from roofcast.serving.candidates import (
    THROUGHPUT,
    Candidate,
    Capacities,
    FloatArray,
    at_load,
    describe_candidates,
    enumerate_candidates,
    load_at_rate,
    measure_capacities,
    predict_medians,
    question_table,
)
from roofcast.serving.demand import Constraints, Demand
from roofcast.serving.extrapolation import outside_columns
from roofcast.training.bundle import ModelBundle
from roofcast.training.conditioning import conditioned, narrowed
from roofcast.training.predictor import Prediction, References, RoofcastPredictor

REPORTED = (("ttft_s", "p50"), ("tpot_s", "p50"), ("e2e_s", "p50"), (THROUGHPUT, "mean"))
"""Reported of every entry, besides what the limits ask for."""


class Market(Protocol):
    """What there is to choose from; a catalogue is one."""

    @property
    def accelerators(self) -> Mapping[str, AcceleratorSpec]:
        """Accelerators by id."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Priced instances."""


@dataclass(frozen=True, slots=True)
class PredictedMetric:
    """A prediction for one replica under its share of the load, with its interval; in the metric's SI unit.

    `uncalibrated` is the value without the reference measurements, None if there are none.
    """

    metric: str
    statistic: str
    value: float
    low: float
    high: float
    limit: float | None
    uncalibrated: float | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One way to meet the demand; names say the units, costs are of the whole deployment."""

    offer: Offer
    candidate: Candidate
    users_per_replica: float
    n_replica: int
    n_instance: int
    cost_usd_per_h: float
    cost_usd_per_month: float
    cost_usd_per_million_output_token: float
    cost_usd_per_million_token: float
    load_per_replica: float
    predictions: tuple[PredictedMetric, ...]
    surely_meets_limits: bool
    memory_used_byte: float
    memory_usable_byte: float
    bottleneck: str
    outside: bool
    outside_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that does not do, and why; `excess` is what it needs over what it may, 1 being just enough."""

    candidate: Candidate
    reason: str
    detail: str
    excess: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Entries by rising cost, and rejections with the nearest miss first."""

    entries: tuple[Entry, ...]
    rejections: tuple[Rejection, ...]
    n_candidate: int
    n_offer: int


@dataclass(frozen=True, slots=True)
class _Plan:
    cost: float
    row: int
    offer: Offer
    n_replica: int
    n_instance: int


def recommend(
    bundle: ModelBundle,
    model: ModelSpec,
    market: Market,
    demand: Demand,
    constraints: Constraints | None = None,
    *,
    level: float = 0.8,
    n_entry: int = 10,
    references: References | None = None,
) -> Recommendation:
    """Return the cheapest deployments that meet the demand by the point prediction.

    Parameters
    ----------
    bundle
        In service.
    model
        Any model, measured or not.
    market
        What there is.
    demand, constraints
        What is asked, and within what bounds.
    level
        Of the intervals; `surely_meets_limits` says whether their upper ends meet the limits too.
    n_entry
        Most entries returned.
    references
        Measurements of the model, or of the user's own stack, which the predictions then know.

    Raises
    ------
    InputError
        If requests are longer than the model's context, or no offer is within the constraints.
    OutOfRangeError
        If `level` is more than the measurements can promise.
    """
    narrowed(bundle.predictor, [metric for metric, _ in _reported(demand)]).check_level(level)
    _check_context(model, demand)
    bounds = constraints or Constraints()
    admitted = [offer for offer in market.offers if bounds.admits(offer)]
    candidates = enumerate_candidates(model, market.accelerators, admitted)
    if not candidates:
        raise InputError("constraints", "admit no offer; relax providers, regions, accelerators or pricing")
    table = question_table(candidates, model, demand, bounds)
    descriptors = describe_candidates(table, model, market.accelerators)
    told = replace(bundle, predictor=conditioned(bundle.predictor, references))
    capacities = measure_capacities(descriptors, demand, told)
    fits = capacities.estimate.memory.fits
    plans = sorted(_plans(candidates, capacities, fits.tolist(), admitted, demand), key=lambda plan: plan.cost)
    budget = bounds.max_usd_per_h if bounds.max_usd_per_h is not None else math.inf
    chosen = [plan for plan in plans if plan.cost <= budget][:n_entry]
    plain = bundle.predictor if references else None
    search = _Search(candidates, table, descriptors, capacities, market.accelerators, plain)
    entries = _entries(chosen, search, demand, told, level)
    rejections = _rejections(candidates, capacities, demand, plans, budget)
    return Recommendation(entries, rejections, len(candidates), len(admitted))


def _check_context(model: ModelSpec, demand: Demand) -> None:
    longest = longest_context(model)
    if demand.n_input_token + demand.n_output_token > longest:
        problem = context_problem(demand.n_input_token, demand.n_output_token, longest)
        raise InputError("n_input_token", problem.partition(": ")[2])


def _plans(
    candidates: list[Candidate], capacities: Capacities, fits: list[bool], offers: list[Offer], demand: Demand
) -> Iterable[_Plan]:
    rows: dict[str, list[int]] = {}
    for i, candidate in enumerate(candidates):
        if fits[i] and capacities.users[i] >= 1:
            rows.setdefault(candidate.accelerator, []).append(i)
    for offer in offers:
        for i in rows.get(offer.accelerator, ()):
            tp = candidates[i].tp
            if tp <= offer.n_accelerator:
                n_replica = _replicas(demand, float(capacities.users[i]), float(capacities.request_rate_per_s[i]))
                n_instance = math.ceil(n_replica / (offer.n_accelerator // tp))
                yield _Plan(n_instance * float(offer.price_usd_per_h), i, offer, n_replica, n_instance)


def _replicas(demand: Demand, users: float, rate_per_s: float) -> int:
    if demand.users is not None:
        return math.ceil(demand.users / users)
    return max(math.ceil((demand.request_rate_per_s or 0.0) / rate_per_s), 1)


@dataclass(frozen=True, slots=True)
class _Search:
    """What was searched; arrays and frames have one row a candidate.

    `plain` is the predictor without reference measurements, None if there are none.
    """

    candidates: list[Candidate]
    table: pd.DataFrame
    descriptors: pd.DataFrame
    capacities: Capacities
    accelerators: Mapping[str, AcceleratorSpec]
    plain: RoofcastPredictor | None


@dataclass(frozen=True, slots=True)
class _Forecast:
    """Predictions of the chosen plans under their loads.

    Parameters
    ----------
    load : shape (n_plan,)
        Users of each replica.
    prediction
        As many rows as plans for each statistic, means first.
    uncalibrated
        The medians without reference measurements, None if there are none.
    start
        By statistic, the first of its rows.
    outside_columns
        Of each plan.
    """

    load: FloatArray
    prediction: Prediction
    uncalibrated: pd.DataFrame | None
    start: dict[str, int]
    outside_columns: list[tuple[str, ...]]


def _forecast(plans: list[_Plan], search: _Search, demand: Demand, bundle: ModelBundle, level: float) -> _Forecast:
    """Return the forecast of all statistics from one call of the predictor."""
    rows = [plan.row for plan in plans]
    chosen = search.descriptors.iloc[rows].reset_index(drop=True)
    load = _loads(plans, chosen, search.capacities.users[rows], demand, bundle)
    metrics = {metric for metric, _ in _reported(demand)}
    start = {
        name: len(rows) * i for i, name in enumerate(dict.fromkeys(["mean", *(s for _, s in _reported(demand))]))
    }
    asked = pd.concat([at_load(chosen, load, statistic) for statistic in start], ignore_index=True)
    prediction = narrowed(bundle.predictor, metrics).predict_interval(asked, level)
    uncalibrated = predict_medians(search.plain, asked, metrics) if search.plain else None
    table = search.table.iloc[rows].reset_index(drop=True)
    means = replace(prediction, features=prediction.features.head(len(rows)))
    beyond = outside_columns(means, table, bundle, search.accelerators)
    return _Forecast(load, prediction, uncalibrated, start, beyond)


def _loads(
    plans: list[_Plan], chosen: pd.DataFrame, most: FloatArray, demand: Demand, bundle: ModelBundle
) -> FloatArray:
    """Return the users in flight on each replica of a plan: its share of the demand, rounded up."""
    n_replica = np.array([float(plan.n_replica) for plan in plans])
    if demand.users is not None:
        return np.minimum(most, np.ceil(demand.users / n_replica))
    return load_at_rate(chosen, (demand.request_rate_per_s or 0.0) / n_replica, most, demand, bundle)


def _reported(demand: Demand) -> dict[tuple[str, str], float | None]:
    """Return each metric and statistic of an entry, with the tightest limit on it."""
    limits: dict[tuple[str, str], float] = {}
    for limit in demand.limits:
        key = limit.metric, limit.statistic
        limits[key] = min(limit.value_s, limits.get(key, math.inf))
    return {**dict.fromkeys(limits), **dict.fromkeys(REPORTED), **limits}


def _entries(
    plans: list[_Plan], search: _Search, demand: Demand, bundle: ModelBundle, level: float
) -> tuple[Entry, ...]:
    if not plans:
        return ()
    forecast = _forecast(plans, search, demand, bundle, level)
    return tuple(_entry(k, plan, search, forecast, demand) for k, plan in enumerate(plans))


def _entry(k: int, plan: _Plan, search: _Search, forecast: _Forecast, demand: Demand) -> Entry:
    estimate = forecast.prediction.estimate
    metrics = _metrics(k, forecast, demand)
    per_token = plan.cost / (_token_per_s(k, forecast, demand) * S_PER_H) * TOKEN_PER_MTOKEN
    output_share = demand.n_output_token / (demand.n_input_token + demand.n_output_token)
    used = estimate.memory.weight_byte[k] + estimate.batch[k] * estimate.memory.kv_byte_per_sequence[k]
    return Entry(
        offer=plan.offer,
        candidate=search.candidates[plan.row],
        users_per_replica=float(search.capacities.users[plan.row]),
        n_replica=plan.n_replica,
        n_instance=plan.n_instance,
        cost_usd_per_h=plan.cost,
        cost_usd_per_month=plan.cost * H_PER_MONTH,
        cost_usd_per_million_output_token=per_token,
        cost_usd_per_million_token=per_token * output_share,
        load_per_replica=float(forecast.load[k]),
        predictions=metrics,
        surely_meets_limits=all(m.limit is None or m.high <= m.limit for m in metrics),
        memory_used_byte=float(used),
        memory_usable_byte=float(estimate.memory.usable_byte[k]),
        bottleneck=_bottleneck(forecast.prediction.features.iloc[k]),
        outside=bool(forecast.outside_columns[k]),
        outside_columns=forecast.outside_columns[k],
    )


def _metrics(k: int, forecast: _Forecast, demand: Demand) -> tuple[PredictedMetric, ...]:
    metrics = []
    parts = forecast.prediction.value, forecast.prediction.low, forecast.prediction.high
    for (metric, statistic), limit in _reported(demand).items():
        row = forecast.start[statistic] + k
        value, low, high = (float(part[metric].iloc[row]) for part in parts)
        plain = None if forecast.uncalibrated is None else float(forecast.uncalibrated[metric].iloc[row])
        metrics.append(PredictedMetric(metric, statistic, value, low, high, limit, plain))
    return tuple(metrics)


def _token_per_s(k: int, forecast: _Forecast, demand: Demand) -> float:
    """Return the output tokens of the whole deployment: of the rate asked for, or of so many users at their load."""
    if demand.users is None:
        return (demand.request_rate_per_s or 0.0) * demand.n_output_token
    return float(forecast.prediction.value[THROUGHPUT].iloc[k]) * demand.users / float(forecast.load[k])


def _bottleneck(features: pd.Series) -> str:
    """Return what the estimate spends most of the time on."""
    if features["roofline.queue_ratio"] > 0.5:
        return "queue"
    parts = {
        "memory bandwidth": features["roofline.weight_time_ratio"] + features["roofline.kv_time_ratio"],
        "launches": features["roofline.overhead_ratio"],
        "links": features["roofline.link_time_ratio"],
    }
    if features["roofline.prefill_ratio"] > 0.5:
        return "prefill"
    return max(parts, key=lambda name: parts[name])


def _rejections(
    candidates: list[Candidate], capacities: Capacities, demand: Demand, plans: list[_Plan], budget: float
) -> tuple[Rejection, ...]:
    memory = capacities.estimate.memory
    cheapest: dict[int, float] = {}
    for plan in plans:
        cheapest.setdefault(plan.row, plan.cost)
    rejections = []
    for i, candidate in enumerate(candidates):
        if not memory.fits[i]:
            needed, usable = memory.needed_byte[i], memory.usable_byte[i]
            detail = (
                f"weights and one request need {needed / BYTE_PER_GB:.1f} GB of {usable / BYTE_PER_GB:.1f} GB usable"
            )
            rejections.append(Rejection(candidate, "does_not_fit", detail, float(needed / max(usable, 1.0))))
        elif capacities.users[i] < 1:
            j = int(capacities.excess[i].argmax())
            excess, limit = float(capacities.excess[i, j]), demand.limits[j]
            detail = f"{limit.text} is missed with a single user: {excess * limit.value_s:.4g} {limit.unit} predicted"
            rejections.append(Rejection(candidate, "misses_limit", detail, excess))
        elif i in cheapest and cheapest[i] > budget:
            detail = f"costs {cheapest[i]:.2f} USD/h at least, over the budget of {budget:.2f}"
            rejections.append(Rejection(candidate, "over_budget", detail, cheapest[i] / budget))
    return tuple(sorted(rejections, key=lambda r: (r.reason == "does_not_fit", r.excess)))
