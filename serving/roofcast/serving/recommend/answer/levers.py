"""Levers: changes of the question that lower the cost, each with the cheapest deployment that is found with it.

Each is searched, exactly among its candidates, so that it is a property of the question and not of the entries shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import Offer
from roofcast.features.descriptors.precisions import WEIGHT_BYTE
from roofcast.features.validity.engine_support import needs_copy
from roofcast.serving.app_state.catalog.user_files import OWNED
from roofcast.serving.recommend.answer.cautions import offer_warnings
from roofcast.serving.recommend.answer.parts import Entry, Lever, LeverKind, offer_fields, replica_fields
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import floor_to_three_digits, loosen_limit
from roofcast.serving.recommend.search.confidence import LimitModel
from roofcast.serving.recommend.search.configurations import assume_acceptance, enumerate_replicas
from roofcast.serving.recommend.search.problem import with_replicas
from roofcast.serving.recommend.search.search import Deployment, Search, SearchTarget

IndexArray = npt.NDArray[np.intp]

MAX_LEVERS: Final = 6
MIN_SAVING: Final = 0.05
"""Share of the cost below which a lever does not matter."""

QUANTISED: Final = ("fp8", "fp4", "int4")
"""Precisions of levers, most bits first; one with fewer bits has to save more than those before it."""

LOAD_SHARES: Final = (0.9, 0.75, 0.5)
RATE_STEP: Final = 1.01
"""Factor by which the search for the largest request rate goes on; a lever names three digits of the rate."""
LOOSER: Final = 1.5
"""Factor by which the limit that binds is raised."""

_PRICING: Final = {
    "spot": "spot instances, which the provider may take back",
    "reserved_1y": "a commitment of one year",
    "reserved_3y": "a commitment of three years",
    "on_demand": "on demand",
}


def find_levers(search: Search, first: Entry | None) -> tuple[Lever, ...]:
    """Return the levers that matter, by rising cost: one of each pricing, precision, and kind of change.

    Parameters
    ----------
    first
        Cheapest entry, which levers are compared with; None if there is none.
    """
    cost = first.cost_usd_per_h if first else math.inf
    levers = [*_price_levers(search, cost), *_load_levers(search, cost), *_precision_levers(search, cost)]
    if first:
        levers += _limit_levers(search, first)
    matters = [lever for lever in levers if lever.cost_usd_per_h < (1 - MIN_SAVING) * cost]
    if math.isfinite(cost):
        matters = [lever.model_copy(update={"saving_ratio": 1 - lever.cost_usd_per_h / cost}) for lever in matters]
    return tuple(sorted(matters, key=lambda lever: lever.cost_usd_per_h)[:MAX_LEVERS])


def _price_levers(search: Search, cost: float) -> Iterator[Lever]:
    constraints = replace(search.problem.constraints, inventory=())
    if constraints.providers and constraints.providers <= {OWNED}:
        return
    for pricing, text in _PRICING.items():
        if constraints.pricing and pricing not in constraints.pricing:
            other = replace(constraints, pricing=frozenset({pricing}))
            if offers := _cheaper(other.admissible_offers(search.problem.market.offers), cost):
                yield from _search(search.with_offers(offers), "pricing", text)
    anywhere = replace(constraints, regions=frozenset())
    if constraints.regions:
        yield from _elsewhere(search, "region", "any region", anywhere, cost)
    if constraints.providers:
        any_provider = replace(anywhere, providers=frozenset())
        yield from _elsewhere(search, "provider", "any provider and region", any_provider, cost)


def _elsewhere(
    search: Search, kind: LeverKind, change: str, constraints: Constraints, cost: float
) -> Iterator[Lever]:
    offers = _cheaper(constraints.admissible_offers(search.problem.market.offers), cost)
    if wider := _search_of(search, constraints, offers):
        yield from _search(wider, kind, change)


def _cheaper(offers: list[Offer], cost: float) -> list[Offer]:
    return [offer for offer in offers if float(offer.price_usd_per_h) < (1 - MIN_SAVING) * cost]


def _search_of(
    search: Search, constraints: Constraints, offers: list[Offer], *, has_pipelines: bool = True
) -> Search | None:
    problem = search.problem
    replicas, _ = enumerate_replicas(problem.model, problem.market.accelerators, offers, constraints)
    replicas = [replica for replica in replicas if has_pipelines or replica.pp == 1]
    if not replicas:
        return None
    replicas = assume_acceptance(replicas, search.evaluator.coefficients)
    other = with_replicas(replace(problem, offers=offers), constraints, replicas)
    return Search(other, search.grid.limits)


@dataclass(frozen=True, slots=True)
class _AtLoad:
    search: Search
    deployment: Deployment
    served: float


def _load_levers(search: Search, cost: float) -> Iterator[Lever]:
    demand = search.demand
    floors = [limit.value for limit in demand.limits if limit.is_floor and demand.users is None]
    least = max(floors, default=0.0) / demand.n_output_token
    for share in LOAD_SHARES:
        less = _cheapest_at(search, demand.peak_load * share) if demand.peak_load * share >= least else None
        if less is None or not less.deployment.cost < (1 - MIN_SAVING) * cost:
            continue
        most = _most_load(search, less)
        fewer = _fewer(demand, most.served)
        if 0 < fewer < demand.peak_load:
            unit = "users" if demand.users is not None else "requests a second"
            change = f"{fewer:,.10g} instead of {demand.peak_load:,.10g} {unit}"
            yield _lever_of(most.search, most.deployment, "users", change)
        return


def _cheapest_at(search: Search, peak_load: float) -> _AtLoad | None:
    inner = search.with_demand(search.demand.at_peak(peak_load))
    target = SearchTarget(inner.problem.confidence, np.zeros_like(inner.pairs.offer), 1)
    inner.run([target])
    for one in inner.deployments(inner.winners(target), target.confidence):
        capacity = inner.state(target.confidence).capacity[one.row]
        served = one.n_replica * float(inner.grid.served[one.row, capacity]) * (1 - inner.demand.headroom)
        return _AtLoad(inner, one, max(served, peak_load))
    return None


def _most_load(search: Search, less: _AtLoad) -> _AtLoad:
    while True:
        demand = search.demand
        step = math.floor(less.served + 1e-9) + 1.0 if demand.users is not None else less.served * RATE_STEP
        more = _cheapest_at(search, step) if step < demand.peak_load else None
        if more is None or more.deployment.cost > less.deployment.cost + 1e-9:
            return less
        less = more


def _fewer(demand: Demand, load: float) -> float:
    if demand.users is not None:
        return float(math.floor(load + 1e-9))
    return floor_to_three_digits(load) if load > 0 else 0.0


def _limit_levers(search: Search, first: Entry) -> Iterator[Lever]:
    demand = search.demand
    used = {(one.metric, one.statistic): one.high for one in first.predictions}
    latencies = [limit for limit in demand.limits if not limit.is_floor]
    if not latencies:
        return
    binding = max(latencies, key=lambda limit: used[limit.quantity] / limit.value)
    looser, change = loosen_limit(binding, LOOSER)
    limits = tuple(looser if limit == binding else limit for limit in demand.limits)
    model = LimitModel(replace(demand, limits=limits), search.problem.bundle.predictor)
    yield from _search(search.with_limits(model), "limit", change)


def _precision_levers(search: Search, cost: float) -> Iterator[Lever]:
    problem = search.problem
    stored, constraints = problem.model.weight_precision, problem.constraints
    least = min(WEIGHT_BYTE.get(one, 2.0) for one in constraints.weight_precisions or {stored})
    precisions = [one for one in QUANTISED if WEIGHT_BYTE[one] < least]
    if not precisions:
        return
    bounds = replace(constraints, weight_precisions=frozenset(precisions), speculations=(None,))
    inner = _search_of(search, bounds, _cheaper(problem.offers, cost), has_pipelines=False)
    found = _by_precision(inner, precisions) if inner else {}
    least_usd_per_h = math.inf
    for precision in precisions:
        lever = found.get(precision)
        if lever is not None and lever.cost_usd_per_h < (1 - MIN_SAVING) * least_usd_per_h:
            least_usd_per_h = lever.cost_usd_per_h
            yield lever.model_copy(update={"change": f"weights in {precision.upper()}"})


def _by_precision(search: Search, precisions: list[str]) -> dict[str, Lever]:
    index = np.array(
        [precisions.index(replica.weight_precision) for replica in search.problem.replicas], dtype=np.intp
    )
    levers = _search(search, "precision", "", index[search.pairs.row], len(precisions))
    return {lever.weight_precision: lever for lever in levers}


def _search(
    search: Search, kind: LeverKind, change: str, group: IndexArray | None = None, n: int = 1
) -> Iterator[Lever]:
    problem = search.problem
    group = np.zeros_like(search.pairs.offer) if group is None else group
    target = SearchTarget(problem.confidence, group, n)
    search.run([target])
    for one in search.deployments(search.winners(target), problem.confidence):
        yield _lever_of(search, one, kind, change)


def _lever_of(search: Search, deployment: Deployment, kind: LeverKind, change: str) -> Lever:
    problem = search.problem
    replica, offer = problem.replicas[deployment.row], problem.offers[deployment.offer]
    accelerator = problem.market.accelerators[replica.accelerator]
    return Lever(
        **offer_fields(offer),
        **replica_fields(replica),
        kind=kind,
        change=change,
        n_replica=deployment.n_replica,
        n_instance=deployment.n_instance,
        cost_usd_per_h=deployment.cost,
        saving_ratio=None,
        needs_quantised_copy=needs_copy(
            replica.engine, problem.model.weight_precision, replica.weight_precision, accelerator
        ),
        warnings=tuple(offer_warnings(offer, deployment.n_instance)),
    )
