"""Search problem: what is searched for, in what, and at which confidence."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from roofcast.data.specs import ModelSpec, Offer
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.features.engine.coefficients import Coefficients
from roofcast.features.queries import Queries
from roofcast.features.validity.engine_choice import needs_copy
from roofcast.features.validity.engine_support import Stack
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.search.confidence import Quantity
from roofcast.serving.recommend.search.configurations import (
    Replica,
    assume_acceptance,
    describe_replicas,
    enumerate_replicas,
    replica_table,
)
from roofcast.serving.recommend.search.deployment_sizes import Market
from roofcast.training.learner.derived_metrics import THROUGHPUT
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

REPORTED: Final = (("ttft_s", "p50"), ("tpot_s", "p50"), ("e2e_s", "p50"), (THROUGHPUT, "mean"))
"""Quantities of every entry, besides those limited."""


@dataclass(frozen=True)
class SearchProblem:
    """Demand, constraints and the search space.

    - `bundle`: In service, its predictor conditioned on the reference measurements.
    - `unconditioned`: The predictor without reference measurements.
    - `baseline`: The predictor without reference measurements and without the stack, for comparison; None without
      either.
    - `offers`: Those within the constraints.
    - `replicas`: Configurations of a replica.
    - `confidence`: Least probability of meeting all limits.
    - `level`: Of the intervals reported.
    """

    bundle: ModelBundle
    unconditioned: RoofcastPredictor
    baseline: RoofcastPredictor | None
    model: ModelSpec
    demand: Demand
    constraints: Constraints
    market: Market
    offers: list[Offer]
    replicas: list[Replica]
    confidence: float
    level: float

    @cached_property
    def table(self) -> dict[str, ColumnArray]:
        """Prediction input of the replicas."""
        return replica_table(self.replicas, self.model, self.demand, self.constraints)

    @cached_property
    def descriptors(self) -> Queries:
        """Descriptors of the replicas."""
        return describe_replicas(self.table, self.model, self.market.accelerators)

    def stack(self, replica: Replica) -> Stack:
        """Return what a replica runs on what."""
        accelerator, measured = self.market.accelerators[replica.accelerator], self.market.measured
        return Stack(replica.engine, accelerator, replica.weight_precision, self.model, measured=measured)

    def needs_copy(self, replica: Replica) -> bool:
        """Return whether the engine needs a copy of the checkpoint published in the weight precision."""
        return not replica.checkpoint and needs_copy(self.stack(replica), self.model.weight_precision)


def find_replicas(
    model: ModelSpec, market: Market, offers: list[Offer], constraints: Constraints, coefficients: Coefficients
) -> tuple[list[Replica], dict[str, str]]:
    """Return the configurations on offers, with the usual acceptance where it is not given: `enumerate_replicas`."""
    replicas, reasons = enumerate_replicas(model, market.accelerators, offers, constraints, market.measured)
    return assume_acceptance(replicas, coefficients), reasons


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
