"""From plans to entries: what is predicted of each under its load, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.units import H_PER_MONTH
from roofcast.features.analysis.breakdown import break_down
from roofcast.features.analysis.power import replica_power_w
from roofcast.features.arrays import take_rows
from roofcast.features.engine.estimate import Estimate, estimate
from roofcast.serving.predict.extrapolation import outside_columns
from roofcast.serving.recommend.answer.nearest import nearest
from roofcast.serving.recommend.answer.recommendation import Entry, PredictedMetric
from roofcast.serving.recommend.answer.token_costs import input_share, token_costs
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.confidence import chance_of_all
from roofcast.serving.recommend.search.evaluation import THROUGHPUT, Evaluator
from roofcast.serving.recommend.search.load_grid import floor_per_replica, limits_of_replicas
from roofcast.serving.recommend.search.problem import Plan, SearchProblem, reported
from roofcast.training.learner.out_of_memory import memory_columns, memory_of
from roofcast.training.learner.predictor import Prediction

FloatArray = npt.NDArray[np.float64]

N_NEAREST: Final = 1


@dataclass(frozen=True, slots=True)
class _Most:
    """The most that a replica of each plan serves within the limits; arrays have shape (n_plan,).

    Parameters
    ----------
    in_flight, request_rate_per_s
        Requests in it, and those that it finishes.
    users
        Those who wait and those who think; None at a rate.
    """

    in_flight: FloatArray
    request_rate_per_s: FloatArray
    users: FloatArray | None


@dataclass(frozen=True, slots=True)
class _Forecast:
    """Predictions of plans under their loads.

    Parameters
    ----------
    estimate, features
        As many rows as points for each statistic, means first, and the plans' own loads first among them.
    value, low, high
        By metric, rows likewise.
    uncalibrated
        The medians without reference measurements, empty if there are none.
    start
        By statistic, the first of its rows.
    chance, in_flight, power_w, input_share : shape (n_plan,)
        That all limits are met, the requests in flight on a replica, its watts, and what share of its work is
        prompts'.
    most
        What a replica serves at most.
    p_runs
        Probability that each plan's memory does; None if the bundle cannot tell.
    nearest
        Measurements that tell most about each plan.
    outside_columns
        Of each plan.
    """

    estimate: Estimate
    features: pd.DataFrame
    value: dict[str, FloatArray]
    low: dict[str, FloatArray]
    high: dict[str, FloatArray]
    uncalibrated: dict[str, FloatArray]
    start: dict[str, int]
    chance: FloatArray
    in_flight: FloatArray
    power_w: FloatArray
    input_share: FloatArray
    most: _Most
    p_runs: FloatArray | None
    nearest: list[tuple[dict[str, object], ...]]
    outside_columns: list[tuple[str, ...]]


def build_entries(plans: Sequence[Plan], case: SearchProblem, forecaster: Evaluator) -> tuple[Entry, ...]:
    """Return what is predicted of each plan under its load, and what it costs.

    Parameters
    ----------
    plans
        Deployments.
    case
        What was asked.
    forecaster
        Of the replicas.
    """
    if not plans:
        return ()
    alike = {(plan.row, plan.load): plan for plan in plans}
    forecast = _forecast(list(alike.values()), case, forecaster)
    place = {key: k for k, key in enumerate(alike)}
    return tuple(_entry(place[plan.row, plan.load], plan, case, forecast) for plan in plans)


def _forecast(plans: Sequence[Plan], case: SearchProblem, forecaster: Evaluator) -> _Forecast:
    """Return the forecast from one call of the predictor: under the loads, and under those that may be added."""
    n, (rows, load) = len(plans), _points(plans)
    wanted = reported(case.demand)
    start = {name: len(rows) * i for i, name in enumerate(dict.fromkeys(["mean", *(s for _, s in wanted)]))}
    asked = pd.concat([forecaster.table(rows, load, statistic) for statistic in start], ignore_index=True)
    metrics = {metric for metric, _ in wanted}
    once = estimate(forecaster.at(rows, load, "mean"), case.bundle.predictor.coefficients_)
    every = take_rows(once, np.tile(np.arange(len(rows)), len(start)))
    prediction = case.bundle.predictor.predict_distribution(asked, metrics=metrics, estimate=every)
    plain = case.plain.predict_distribution(asked, metrics=metrics, estimate=every).median if case.plain else None
    low, high = prediction.interval(case.level)
    forecaster.n_predicted += len(asked)
    chance = _chance(load, case, prediction, start)
    value = _columns(prediction.median)
    in_flight = load * value["e2e_s"][: len(load)] if forecaster.is_open else load
    request_rate = load if forecaster.is_open else value[THROUGHPUT][: len(load)] / case.demand.n_output_token
    own = in_flight[:n]
    if case.demand.think_time_s:  # a request alone is the least that can be predicted, and more than few users send
        own = np.where(own > 1.0, own, np.minimum(own, _waiting(plans, case, value["e2e_s"][:n])))
    first = case.demand.limits[0]
    told = forecaster.table(rows[:n], load[:n], first.statistic)
    return _Forecast(
        prediction.estimate,
        prediction.features,
        value,
        _columns(low),
        _columns(high),
        {} if plain is None else _columns(plain),
        start,
        chance,
        own,
        *_work(forecaster.at(rows[:n], load[:n], "mean"), take_rows(once, np.arange(n)), case),
        _most(plans, case.demand, chance >= case.confidence, in_flight, request_rate),
        _p_runs(told, case),
        nearest(case.plain or case.bundle.predictor, case.bundle.anchors, told, first.metric, N_NEAREST),
        outside_columns(
            replace(prediction, features=prediction.features.head(n)),
            {name: cells[rows[:n]] for name, cells in case.table.items()},
            case.bundle,
            case.market.accelerators,
        ),
    )


def _points(plans: Sequence[Plan]) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return replicas and loads: those of the plans, and then their capacities and what is beyond, plan by plan."""
    rows, load = [plan.row for plan in plans], [plan.load for plan in plans]
    for plan in plans:
        rows += [plan.row] * (1 + len(plan.more))
        load += [plan.capacity, *plan.more]
    return np.array(rows, dtype=np.intp), np.array(load)


def _waiting(plans: Sequence[Plan], case: SearchProblem, e2e_s: FloatArray) -> FloatArray:
    """Return how many users of each plan's replica wait for an answer, by the interactive response-time law."""
    users = case.demand.peak_load / np.array([plan.n_replica for plan in plans])
    return np.asarray(users * e2e_s / (e2e_s + case.demand.think_time_s))


def _most(
    plans: Sequence[Plan],
    demand: Demand,
    is_met: npt.NDArray[np.bool_],
    in_flight: FloatArray,
    request_rate: FloatArray,
) -> _Most:
    """Return what a replica of each plan serves up to where the limits are met; arrays are over `_points`."""
    last, start = [], len(plans)
    for plan in plans:
        met = is_met[start + 1 : start + 1 + len(plan.more)]
        last.append(start + (len(met) if met.all() else int(met.argmin())))
        start += 1 + len(plan.more)
    most = np.maximum(in_flight[last], in_flight[: len(plans)])
    rate = request_rate[last]
    return _Most(most, rate, None if demand.users is None else demand.served_load(most, rate))


def _columns(table: pd.DataFrame) -> dict[str, FloatArray]:
    return {str(name): table[name].to_numpy(dtype=float) for name in table}


def _chance(load: FloatArray, case: SearchProblem, prediction: Prediction, start: dict[str, int]) -> FloatArray:
    chances, metrics = [np.ones(len(load))], [""]
    for limit in limits_of_replicas(case.demand):
        rows = slice(start[limit.statistic], start[limit.statistic] + len(load))
        bound = floor_per_replica(limit, case.demand, load) if limit.is_floor else np.full(len(load), limit.value)
        p_below = prediction.p_below(limit.metric, bound, rows)
        chances.append(1.0 - p_below if limit.is_floor else p_below)
        metrics.append(limit.metric)
    return chance_of_all(chances, metrics)


def _p_runs(descriptors: pd.DataFrame, case: SearchProblem) -> FloatArray | None:
    """Return the probability that each question's memory suffices; None if the bundle cannot tell."""
    classifier = case.bundle.feasibility
    if classifier is None:
        return None
    memory = memory_of(descriptors, case.bundle.predictor.coefficients_)
    return classifier.predict_proba(memory_columns(descriptors, memory))[:, 1]


def _work(d: dict[str, FloatArray], e: Estimate, case: SearchProblem) -> tuple[FloatArray, FloatArray]:
    """Return the watts of each replica, and what share of its work is prompts'."""
    parts = break_down(d, case.bundle.predictor.coefficients_, e)
    return replica_power_w(d, e, parts), input_share(d, e, parts)


def _entry(k: int, plan: Plan, case: SearchProblem, forecast: _Forecast) -> Entry:
    memory = forecast.estimate.memory
    metrics = _metrics(k, plan.load, case, forecast)
    offer, replica = case.offers[plan.offer], case.replicas[plan.row]
    rate = float(forecast.value[THROUGHPUT][k]) / case.demand.n_output_token
    costs = token_costs(case.demand, plan.cost, plan.load, rate, float(forecast.input_share[k]))
    most = forecast.most
    return Entry(
        offer=offer,
        replica=replica,
        users_per_replica=None if most.users is None else float(most.users[k]),
        in_flight_per_replica=float(most.in_flight[k]),
        request_rate_per_replica=float(most.request_rate_per_s[k]),
        capacity_per_replica=float(memory.capacity[k]),
        n_replica=plan.n_replica,
        n_instance=plan.n_instance,
        cost_usd_per_h=plan.cost,
        cost_usd_per_month=plan.cost * H_PER_MONTH,
        cost_usd_per_million_input_token=costs.input,
        cost_usd_per_million_output_token=costs.output,
        cost_usd_per_million_token=costs.every,
        load_per_replica=float(forecast.in_flight[k]),
        predictions=metrics,
        p_limits_met=float(forecast.chance[k]),
        p_runs=None if forecast.p_runs is None else float(forecast.p_runs[k]),
        power_w=float(forecast.power_w[k]) * plan.n_replica,
        memory_used_byte=float(memory.weight_byte[k] + forecast.estimate.batch[k] * memory.kv_byte_per_sequence[k]),
        memory_usable_byte=float(memory.usable_byte[k]),
        bottleneck=bottleneck(forecast.features.iloc[k]),
        nearest=forecast.nearest[k],
        outside=bool(forecast.outside_columns[k]),
        outside_columns=forecast.outside_columns[k],
    )


def _metrics(k: int, users: float, case: SearchProblem, forecast: _Forecast) -> tuple[PredictedMetric, ...]:
    metrics = []
    for (metric, statistic), limit in reported(case.demand).items():
        row = forecast.start[statistic] + k
        value, low, high = (float(part[metric][row]) for part in (forecast.value, forecast.low, forecast.high))
        plain = float(forecast.uncalibrated[metric][row]) if forecast.uncalibrated else None
        bound = limit if limit is not None else _floor(metric, users, case.demand)
        metrics.append(PredictedMetric(metric, statistic, value, low, high, bound, plain))
    return tuple(metrics)


def _floor(metric: str, users: float, demand: Demand) -> float | None:
    """Return what a replica with so many requests in flight must make for the floors on the deployment."""
    floors = [limit for limit in demand.limits if limit.is_floor and metric == limit.metric]
    if demand.users is None or not floors:
        return None
    return max(float(floor_per_replica(limit, demand, np.array(users))) for limit in floors)


def bottleneck(features: pd.Series) -> str:
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
