"""Search problem: what is searched for, in what, and at which confidence."""

import math
from dataclasses import dataclass, replace
from typing import Final

from roofcast.data.specs import ModelSpec, Offer
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.features.queries import Queries
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.confidence import Quantity
from roofcast.serving.recommend.search.configurations import Replica, describe_replicas, replica_table
from roofcast.serving.recommend.search.deployment_sizes import Market
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

REPORTED: Final = (("ttft_s", "p50"), ("tpot_s", "p50"), ("e2e_s", "p50"), (THROUGHPUT, "mean"))
"""Quantities of every entry, besides those limited."""


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """Demand, constraints and the search space.

    - `bundle`: In service, its predictor conditioned on the reference measurements.
    - `unconditioned`: The predictor without reference measurements; None if there are none.
    - `baseline`: The predictor without reference measurements and without the stack, for comparison; None without
      either.
    - `references`: Reference measurements; None if there are none.
    - `offers`: Those within the constraints.
    - `replicas`, `table`, `descriptors`: Configurations of a replica, and their prediction input and descriptors, in
      one order.
    - `confidence`: Least probability of meeting all limits.
    - `level`: Of the intervals reported.
    """

    bundle: ModelBundle
    unconditioned: RoofcastPredictor | None
    baseline: RoofcastPredictor | None
    references: CalibrationPoints | None
    model: ModelSpec
    demand: Demand
    constraints: Constraints
    market: Market
    offers: list[Offer]
    replicas: list[Replica]
    table: dict[str, ColumnArray]
    descriptors: Queries
    confidence: float
    level: float


def with_replicas(problem: SearchProblem, constraints: Constraints, replicas: list[Replica]) -> SearchProblem:
    """Return the problem with other replicas, under other constraints; their offers stay."""
    table = replica_table(replicas, problem.model, problem.demand, constraints)
    return replace(
        problem,
        constraints=constraints,
        replicas=replicas,
        table=table,
        descriptors=describe_replicas(table, problem.model, problem.market.accelerators),
    )


PER_TOKEN: Final = ("tpot_s", "itl_s")
"""Metrics that an answer of one token has not."""


def reported_limits(demand: Demand) -> dict[Quantity, float | None]:
    """Return each quantity of an entry with the tightest limit on it; None without a limit of one replica.

    TPOT is reported beside a limited ITL: it has the rare long gaps that a percentile of ITL misses. Neither is of
    answers of one token, which have no time per output token.
    """
    limits: dict[Quantity, float] = {}
    for limit in demand.limits:
        if not limit.is_floor:
            limits[limit.quantity] = min(limit.value, limits.get(limit.quantity, math.inf))
    limited = dict.fromkeys(limit.quantity for limit in demand.limits)
    limited |= {("tpot_s", limit.statistic): None for limit in demand.limits if limit.metric == "itl_s"}
    reported = {**limited, **dict.fromkeys(REPORTED), **limits}
    return {one: limit for one, limit in reported.items() if demand.n_output_token > 1 or one[0] not in PER_TOKEN}
