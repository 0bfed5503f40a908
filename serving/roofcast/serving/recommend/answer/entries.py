"""Entries of a recommendation: predictions, probabilities and costs of deployments at their share of the load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from roofcast.data.measurements.cells import object_column
from roofcast.data.units import H_PER_MONTH, S_PER_H, TOKEN_PER_MTOKEN
from roofcast.features.analysis.breakdown import BOUNDS, OperatorTime, Phase, bottleneck, bound_seconds, break_down
from roofcast.features.analysis.power import replica_power_w
from roofcast.features.descriptors.assumptions import assumed_values
from roofcast.features.engine.estimate import Estimate
from roofcast.features.queries import FloatArray, IndexArray, take_rows
from roofcast.features.validity.engine_support import support_remark
from roofcast.serving.predict.question_rows import rows_from_columns
from roofcast.serving.predict.row_answers import outside_columns
from roofcast.serving.recommend.answer.cautions import copy_warnings, offer_warnings, tpot_warnings
from roofcast.serving.recommend.answer.parts import (
    LEAST_CORRELATION,
    CalibrationEffect,
    Entry,
    FleetPart,
    OtherOffer,
    PredictedMetric,
    deployment_fields,
)
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.confidence import ROUNDING, LimitModel, replica_floor
from roofcast.serving.recommend.search.problem import REPORTED, reported_limits
from roofcast.serving.recommend.search.search import Deployment, Search
from roofcast.training.explain.contributions import WORKLOAD
from roofcast.training.explain.measured_points import MeasuredPoints
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.errors.group_keys import build_group_keys
from roofcast.training.learner.out_of_memory import memory_columns, memory_of
from roofcast.training.learner.predictor import RoofcastPredictor

N_NEAREST: Final = 1


class PredictedDeployments:
    """Predictions of deployments at their load and at their capacity.

    Deployments of equal replicas and loads are predicted once. Row k of each statistic is the k-th of them at its own
    load, row n + k at its capacity. What meets the limits at the capacity meets them at a lower load.
    """

    def __init__(self, deployments: Sequence[Deployment], search: Search) -> None:
        unique = {(one.row, one.load): one for one in deployments}
        self._index = {key: k for k, key in enumerate(unique)}
        deployments = [*unique.values()]
        self.search, self.problem, self.demand = search, search.problem, search.demand
        self.limits = reported_limits(self.demand)
        n, evaluator = len(deployments), search.evaluator
        row = np.tile(np.array([one.row for one in deployments], dtype=np.intp), 2)
        load = np.array([*(one.load for one in deployments), *(one.capacity for one in deployments)])
        self.means, quantities = evaluator.estimate_means(row, load), [(THROUGHPUT, "mean"), *self.limits]
        self.predicted = evaluator.predict_table(row, load, quantities, self.means)
        prediction, limits = self.predicted.prediction, search.grid.limits
        self.value, (self.low, self.high) = prediction.medians, prediction.bounds(self.problem.level)
        baseline = self.problem.baseline
        usual = baseline and evaluator.predict_table(row, load, quantities, self.means, baseline)
        self.baseline = usual.prediction.medians if usual else {}
        p_met = limits.p_met({one.quantity: self.predicted.medians(one.quantity) for one in limits.limits}, load)
        means = self.predicted.rows_of["mean"]
        e2e_s = self.value["e2e_s"][means]
        in_flight = load * e2e_s if evaluator.is_open else load
        rate = load if evaluator.is_open else self.value[THROUGHPUT][means] / self.demand.n_output_token
        self.highest_in_flight, self.rate_per_s = np.maximum(in_flight[n:], in_flight[:n]), rate[n:]
        self.p_met, self.load, self.in_flight = p_met / limits.p_deadline, load, in_flight[:n]
        if self.demand.think_time_s:
            users = np.array([one.share for one in deployments])
            self.in_flight = self.demand.requests_in_flight(load[:n], users, e2e_s[:n])
        self._explain(row[:n], load[:n])

    def _explain(self, row: IndexArray, load: FloatArray) -> None:
        evaluator, problem, bundle = self.search.evaluator, self.problem, self.problem.bundle
        d, means = evaluator.descriptors(row, load, "mean"), take_rows(self.means, np.arange(len(row)))
        table = {name: cells[row] for name, cells in problem.table.items()}
        parts = break_down(d, evaluator.coefficients, means)
        self.power_w, self.prefill_share = replica_power_w(d, means, parts), prefill_share(d, means, parts)
        self.bottleneck = bottleneck(parts, d["workload.n_output_token"])
        self.p_runs: FloatArray | None = None
        if bundle.feasibility is not None:
            memory = memory_of(d, evaluator.coefficients)
            self.p_runs = bundle.feasibility.predict_second_proba(memory_columns(d, memory))
        metric = next((limit.metric for limit in problem.demand.limits), REPORTED[1][0])
        self.nearest = nearest(problem.unconditioned, bundle.anchors, d, metric, N_NEAREST)
        self.support = bundle.anchors.match(d, build_group_keys(d)).support
        self.outside_columns = outside_columns(
            self.predicted.prediction.features[: len(row)], table, bundle, problem.market.accelerators
        )
        is_given = np.zeros(len(row), dtype=bool)
        self.assumed = assumed_values(table, d, {problem.model.id: problem.model}, is_given)

    def fleet_part(self, deployment: Deployment) -> FleetPart:
        """Return a deployment as a part of a mixed fleet."""
        k = self._index[deployment.row, deployment.load]
        memory, replica = self.means.memory, self.problem.replicas[deployment.row]
        offer, predictions = self.problem.offers[deployment.offer], self._metrics(k, deployment.load)
        warnings = copy_warnings(replica) if self.problem.needs_copy(replica) else []
        warnings += filter(None, [support_remark(self.problem.stack(replica)) if replica.engine else ""])
        warnings += [*offer_warnings(offer, deployment.n_instance), *tpot_warnings(predictions, self.demand)]
        return FleetPart(
            **deployment_fields(replica, offer, deployment.n_replica, deployment.n_instance, deployment.cost),
            in_flight_per_replica=float(self.highest_in_flight[k]),
            load_per_replica=float(self.in_flight[k]),
            p_limits_met=self._p_met(k, deployment.share),
            predictions=predictions,
            power_w=float(self.power_w[k]) * deployment.n_replica,
            memory_used_byte=float(memory.weight_byte[k] + self.means.batch[k] * memory.kv_byte_per_sequence[k]),
            memory_usable_byte=float(memory.usable_byte[k]),
            bottleneck=str(self.bottleneck[k]),
            outside=bool(self.outside_columns[k]),
            outside_columns=self.outside_columns[k],
            support=self.support[k],
            assumed=tuple(self.assumed[k].split()),
            warnings=tuple(warnings),
        )

    def entry(self, deployment: Deployment, rank: int = 1, also_at: tuple[OtherOffer, ...] = ()) -> Entry:
        """Return a deployment as an entry."""
        k = self._index[deployment.row, deployment.load]
        highest, highest_rate = float(self.highest_in_flight[k]), float(self.rate_per_s[k])
        users = self.demand.served_load(highest, highest_rate) if self.demand.unit == "users" else None
        rate = float(self.value[THROUGHPUT][k]) / self.demand.n_output_token
        usd_per_h = deployment.cost / deployment.n_replica if self.demand.is_endless else deployment.cost
        costs = token_costs(self.demand, usd_per_h, deployment.load, rate, float(self.prefill_share[k]))
        part = self.fleet_part(deployment)
        n_request = self.demand.n_batch_request
        batch_h = None if n_request is None else n_request / (rate * deployment.n_replica) / S_PER_H
        return Entry(
            **dict(part),
            rank=rank,
            users_per_replica=users,
            request_rate_per_replica=highest_rate,
            cost_usd_per_month=deployment.cost * H_PER_MONTH,
            batch_h=batch_h,
            batch_usd=None if batch_h is None else batch_h * deployment.cost,
            cost_usd_per_million_input_token=costs.input,
            cost_usd_per_million_output_token=costs.output,
            cost_usd_per_million_token=costs.total,
            p_runs=None if self.p_runs is None else float(self.p_runs[k]),
            needs_quantised_copy=self.problem.needs_copy(part.replica),
            also_at=also_at,
            nearest=self.nearest[k],
        )

    def _p_met(self, k: int, share: float) -> float:
        rows = slice(k, None, len(self.in_flight))  # at its own load and its capacity
        throughput = self.predicted.medians((THROUGHPUT, "mean")).take(rows)
        p_in_time = self.search.grid.limits.p_in_time(throughput, self.load[rows], np.full(2, share))
        return float((self.p_met[rows] * p_in_time).max())

    def _metrics(self, k: int, load: float) -> tuple[PredictedMetric, ...]:
        metrics = []
        for (metric, statistic), limit in self.limits.items():
            row = self.predicted.rows_of[statistic].start + k
            value, low, high = (float(part[metric][row]) for part in (self.value, self.low, self.high))
            uncalibrated = float(self.baseline[metric][row]) if self.baseline else None
            floors = [one for one in self.search.grid.limits.limits if one.is_floor and one.metric == metric]
            replica_floors = [float(replica_floor(floor, self.demand, np.array(load))) for floor in floors]
            bound = limit if limit is not None else max(replica_floors, default=None)
            metrics.append(
                PredictedMetric(
                    metric=metric,
                    statistic=statistic,
                    value=value,
                    low=low,
                    high=high,
                    limit=bound,
                    uncalibrated=uncalibrated,
                )
            )
        return tuple(metrics)


def find_calibration_effect(search: Search, baseline: RoofcastPredictor) -> CalibrationEffect | None:
    """Return the cheapest deployment by the baseline, and what the search's own predictor says of it.

    The second search has the candidates of the first and decides one deployment alone.

    `search`: with the references and the stack. `baseline`: predictor without either.

    Returns
    -------
    None if the baseline cannot guarantee the confidence.
    """
    problem = search.problem
    limits = LimitModel(problem.demand, baseline, problem.confidence)
    if problem.confidence > limits.highest_confidence + ROUNDING:
        return None
    bundle = replace(problem.bundle, predictor=baseline)
    without = Search(replace(problem, bundle=bundle, baseline=None), limits)
    target = without.cheapest(problem.confidence)
    without.run([target])
    winners = without.winners(target)
    without.pin_capacities(winners, problem.confidence)
    deployments = without.deployments(winners, problem.confidence)
    if not deployments:
        return CalibrationEffect(without=None, calibrated=None)
    before, after = (PredictedDeployments(deployments, one).entry(deployments[0]) for one in (without, search))
    return CalibrationEffect(without=before, calibrated=after)


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """US dollars per million input tokens, output tokens, and tokens of both kinds."""

    input: float
    output: float
    total: float


def token_costs(
    demand: Demand, usd_per_h: float, in_flight: float, request_rate_per_s: float, input_ratio: float
) -> TokenCosts:
    """Return the token costs at the load given; instances are also paid for off the peak.

    - `usd_per_h`: Of the whole deployment; without a load of one replica.
    - `in_flight`, `request_rate_per_s`: Requests in flight on a replica at its share of the peak, and those completed
      per second. They give the rate of one user, which is taken to be the same off the peak.
    - `input_ratio`: The prompt's share of a request's cost, from `prefill_share`.

    Notes
    -----
    The cost of a request is the cost over the request rate. Input tokens at the input price and output tokens at the
    output price add up to it.

    Examples
    --------
    3.6 dollars an hour for one request per second, a quarter of its cost for the prompt:

    >>> demand = Demand(500, 100, None, 1.0, ())
    >>> costs = token_costs(demand, 3.6, 2.0, 1.0, 0.25)
    >>> round(costs.input, 6), round(costs.output, 6)
    (0.5, 7.5)
    >>> round((500 * costs.input + 100 * costs.output) / 1e6, 6)
    0.001
    """
    load = demand.peak_load / demand.peak_factor
    served = demand.served_load(in_flight, request_rate_per_s)
    rate = load if demand.users is None else request_rate_per_s * (1.0 if demand.is_endless else load / served)
    usd = usd_per_h / (rate * S_PER_H) * TOKEN_PER_MTOKEN
    return TokenCosts(
        input=usd * input_ratio / demand.n_input_token,
        output=usd * (1 - input_ratio) / demand.n_output_token,
        total=usd / (demand.n_input_token + demand.n_output_token),
    )


def prefill_share(d: Mapping[str, FloatArray], e: Estimate, parts: list[OperatorTime]) -> FloatArray:
    """Return the prompt's share of the accelerator time of a request: shape (n_row,), from 0 to 1.

    `d`: descriptors, none of a static batch. `e` and `parts`: their estimate and breakdown.

    Notes
    -----
    A prefill occupies one data-parallel rank, and one stage of a pipeline at a time, as others follow it; a decode
    step is shared by the requests on the rank. Waiting does not count,
    and prefills that interrupt decoding count as prefills, as in `roofcast.features.analysis.power`.

    References
    ----------
    R. S. Kaplan and S. R. Anderson, "Time-Driven Activity-Based Costing", Harvard Business Review 82(11), 2004:
    cost is allocated by the time that each activity takes of the resource.

    Examples
    --------
    >>> from roofcast.features.engine.estimate import estimate
    >>> from roofcast.features.analysis.breakdown import break_down
    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> d = {name: np.repeat(values, 2) for name, values in example_descriptors().items()}
    >>> d["workload.n_output_token"] = np.array([1000.0, 10.0])
    >>> e = estimate(d, DEFAULT_COEFFICIENTS)
    >>> long, short = prefill_share(d, e, break_down(d, DEFAULT_COEFFICIENTS, e))
    >>> bool(0 < long < short < 1)
    True
    """
    prompt = _work_s(parts, "prefill") / (d["config.dp"] * d["config.pp"])
    response = _work_s(parts, "decode") * d["workload.n_output_token"] / np.maximum(e.batch, 1.0)
    return np.asarray(prompt / (prompt + response), dtype=np.float64)


def _work_s(parts: list[OperatorTime], phase: Phase) -> FloatArray:
    seconds = bound_seconds(parts, (phase,))
    return np.asarray(sum(seconds[bound] for bound in BOUNDS if bound != "queue"), dtype=np.float64)


SHOWN: Final = (
    "model", "accelerator", "n_accelerator", "engine", "weight_precision", "n_input_token", "n_output_token",
    "concurrency", "request_rate", "statistic", "campaign", "date",
)  # fmt: skip


def nearest(
    predictor: RoofcastPredictor, points: MeasuredPoints, d: dict[str, FloatArray], metric: str, n: int
) -> list[tuple[dict[str, Any], ...]]:
    """Return up to `n` measurements of each query whose errors correlate most with its own, as JSON values.

    Among equal correlations the nearest workload comes first. Measurements below `LEAST_CORRELATION` are left out.

    `predictor` and `points`: of one bundle, not conditioned on reference measurements. `metric`: measured
    metric.
    """
    n_query, indices = len(d["config.engine"]), points.place.get(metric)
    if indices is None or not len(indices) or not n_query:
        return [()] * n_query
    effects = predictor.error_distributions_[metric].effects
    correlations = effects.correlation(build_group_keys(d), points.group_keys.take(indices))
    workload = np.stack([d[f"workload.{name}"] for name in (*WORKLOAD[:3], "request_rate_per_s")], axis=1)
    measured = np.stack([points.rows[name].to_numpy(dtype=float)[indices] for name in WORKLOAD], axis=1)
    best_of_row = []
    for own, correlation in zip(workload, correlations, strict=True):
        rounded = correlation.round(6)
        nth = np.sort(rounded)[-n:][0]
        candidates = np.flatnonzero((rounded >= nth) & (correlation >= LEAST_CORRELATION))
        distance = np.nansum(np.abs(np.log(measured[candidates] / own)), axis=1)
        order = np.lexsort((-correlation[candidates], distance, -rounded[candidates]))
        best_of_row.append(candidates[order[:n]])
    selected = np.concatenate(best_of_row)
    rows, back = np.unique(indices[selected], return_inverse=True)
    values = {name: points.rows[name].array.take(rows).to_numpy() for name in (*SHOWN, metric)}
    columns = {name: np.asarray(values[name]) for name in SHOWN}
    columns |= {"metric": object_column(len(rows), metric), "measured": np.asarray(values[metric])}
    json_rows = rows_from_columns(columns)
    row_of_point = iter(back.tolist())
    return [
        tuple({**json_rows[next(row_of_point)], "correlation": float(correlation[k])} for k in best)
        for best, correlation in zip(best_of_row, correlations, strict=True)
    ]
