"""What is asked, and what it is searched in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import pandas as pd

from roofcast.data.specs import ModelSpec, Offer
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.recommend.answer.recommendation import Replica
from roofcast.serving.recommend.demand.demand import Constraints, Demand
from roofcast.serving.recommend.search.evaluation import THROUGHPUT
from roofcast.serving.recommend.search.market import Market
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundle import ModelBundle

REPORTED: Final = (("ttft_s", "p50"), ("tpot_s", "p50"), ("e2e_s", "p50"), (THROUGHPUT, "mean"))
"""Reported of every entry, besides what the limits ask for."""


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """What is asked, and all that it is searched in.

    Parameters
    ----------
    bundle
        In service; its predictor knows the reference measurements.
    plain
        The predictor without them, None if there are none.
    model, demand, bounds
        What is to be served, and within what bounds.
    market, offers
        What there is, and what of it is within the bounds.
    replicas, table, descriptors
        Ways to run the model, in one order.
    confidence, level
        Of the limits, and of the intervals that are shown.
    """

    bundle: ModelBundle
    plain: RoofcastPredictor | None
    model: ModelSpec
    demand: Demand
    bounds: Constraints
    market: Market
    offers: list[Offer]
    replicas: list[Replica]
    table: dict[str, ColumnArray]
    descriptors: pd.DataFrame
    confidence: float
    level: float

    @property
    def budget(self) -> float:
        """Most that a deployment may cost, in US dollars an hour."""
        return math.inf if self.bounds.max_usd_per_h is None else self.bounds.max_usd_per_h


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment: replicas of one kind on instances of one kind.

    Parameters
    ----------
    row, offer
        Indices of the replica and of the offer.
    load
        Of a replica under its share of the peak: requests in flight, or requests a second if the demand is a rate.
    capacity, more
        Load up to which the limits are known to be met, and greater ones at which they may be, rising.
    n_replica, n_instance
        How many there are.
    cost
        In US dollars an hour.
    """

    row: int
    offer: int
    load: float
    capacity: float
    more: tuple[float, ...]
    n_replica: int
    n_instance: int
    cost: float


def reported(demand: Demand) -> dict[tuple[str, str], float | None]:
    """Return each metric and statistic of an entry, with the tightest limit on it.

    A floor on the throughput of the whole deployment is no limit of a replica's.
    """
    limits: dict[tuple[str, str], float] = {}
    for limit in demand.limits:
        if not limit.is_floor:
            key = limit.metric, limit.statistic
            limits[key] = min(limit.value, limits.get(key, math.inf))
    asked = dict.fromkeys((limit.metric, limit.statistic) for limit in demand.limits)
    return {**asked, **dict.fromkeys(REPORTED), **limits}
