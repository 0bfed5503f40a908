"""Levers: changes of the question that lower the cost, each with the cheapest deployment that is found with it.

Each is searched, exactly among its candidates, so that it is a property of the question and not of the entries shown.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from roofcast.data.specs import Offer
from roofcast.features.descriptors.precisions import WEIGHT_BYTE
from roofcast.serving.app_state.catalog.user_files import OWNED
from roofcast.serving.recommend.answer.cautions import offer_warnings
from roofcast.serving.recommend.answer.parts import Entry, Lever, LeverKind, deployment_fields
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import floor_to_three_digits, loosen_limit
from roofcast.serving.recommend.search.confidence import LimitModel
from roofcast.serving.recommend.search.problem import find_replicas
from roofcast.serving.recommend.search.search import Deployment, Search, SearchTarget, run_together

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

_ORDER: Final[tuple[LeverKind, ...]] = ("pricing", "region", "provider", "users", "precision", "limit")
"""Of levers of one cost."""

_PRICING: Final = {
    "spot": "spot instances, which the provider may take back",
    "capacity_block": "a capacity block, reserved and paid ahead for days",
    "reserved_1y": "a commitment of one year",
    "reserved_3y": "a commitment of three years",
    "on_demand": "on demand",
}


@dataclass(frozen=True, slots=True)
class _Change:
    kind: LeverKind
    text: str
    search: Search
    target: SearchTarget

    def deployments(self) -> list[Deployment]:
        return self.search.deployments(self.search.winners(self.target), self.target.confidence)


def find_levers(search: Search, first: Entry | None) -> tuple[Lever, ...]:
    """Return the levers that matter, by rising cost: one of each pricing, precision, and kind of change.

    Without a load, or where another objective decides, there are none.

    `first`: cheapest entry, which levers are compared with; None if there is none.
    """
    if search.demand.is_endless or search.pairs.objective != "cost":
        return ()
    max_cost = (1 - MIN_SAVING) * first.cost_usd_per_h if first else math.inf
    same_replicas = [*_other_pricing(search, max_cost), *(_looser_limit(search, first) if first else ())]
    loads = [*_lower_loads(search)]
    run_together([(one.search, one.target) for one in (*same_replicas, *loads)])
    other_replicas = [*_other_places(search, max_cost), *_fewer_bits(search, max_cost)]
    for one in other_replicas:
        one.search.run([one.target])
    levers = [_lever(one, deployment) for one in same_replicas for deployment in one.deployments()]
    levers += [*_load_levers(loads, search, max_cost), *_replica_levers(other_replicas)]
    matters = [lever for lever in levers if lever.cost_usd_per_h < max_cost]
    if first:
        cost = first.cost_usd_per_h
        matters = [lever.model_copy(update={"saving_ratio": 1 - lever.cost_usd_per_h / cost}) for lever in matters]
    return tuple(sorted(matters, key=lambda lever: (lever.cost_usd_per_h, _ORDER.index(lever.kind)))[:MAX_LEVERS])


def _change(kind: LeverKind, text: str, search: Search) -> _Change:
    return _Change(kind, text, search, search.cheapest(search.problem.confidence))


def _rentable(search: Search) -> Constraints | None:
    constraints = replace(search.problem.constraints, inventory=())
    return None if constraints.providers and constraints.providers <= {OWNED} else constraints


def _other_pricing(search: Search, max_cost: float) -> Iterator[_Change]:
    constraints = _rentable(search)
    if constraints is None or not constraints.pricing:
        return
    for pricing, text in _PRICING.items():
        if pricing not in constraints.pricing:
            other = replace(constraints, pricing=frozenset({pricing}))
            if offers := _cheaper(other.admissible_offers(search.problem.market.offers), max_cost):
                yield _change("pricing", text, search.with_offers(offers))


def _other_places(search: Search, max_cost: float) -> Iterator[_Change]:
    constraints = _rentable(search)
    if constraints is None:
        return
    anywhere = replace(constraints, regions=frozenset())
    places: list[tuple[LeverKind, str, Constraints]] = []
    if constraints.regions:
        places.append(("region", "any region", anywhere))
    if constraints.providers:
        places.append(("provider", "any provider and region", replace(anywhere, providers=frozenset())))
    for kind, text, other in places:
        offers = _cheaper(other.admissible_offers(search.problem.market.offers), max_cost)
        if wider := _search_of(search, other, offers):
            yield _change(kind, text, wider)


def _cheaper(offers: list[Offer], max_cost: float) -> list[Offer]:
    return [offer for offer in offers if float(offer.price_usd_per_h) < max_cost]


def _search_of(
    search: Search, constraints: Constraints, offers: list[Offer], *, has_pipelines: bool = True
) -> Search | None:
    problem = search.problem
    found, _ = find_replicas(problem.model, problem.market, offers, constraints, search.evaluator.coefficients)
    replicas = [replica for replica in found if has_pipelines or replica.pp == 1]
    other = replace(problem, constraints=constraints, offers=offers, replicas=replicas)
    return Search(other, search.grid.limits) if replicas else None


def _lower_loads(search: Search) -> Iterator[_Change]:
    demand = search.demand
    floors = [limit.value for limit in demand.limits if limit.is_floor and demand.users is None]
    least = max(floors, default=0.0) / demand.n_output_token
    for share in LOAD_SHARES:
        if demand.peak_load * share >= least:
            yield _at_load(search, demand.peak_load * share)


def _at_load(search: Search, peak_load: float) -> _Change:
    return _change("users", "", search.with_demand(search.demand.at_peak(peak_load)))


def _load_levers(loads: list[_Change], search: Search, max_cost: float) -> list[Lever]:
    for less in loads:
        for deployment in less.deployments():
            if deployment.cost < max_cost:
                return _most_load(less, deployment, search)
    return []


def _most_load(less: _Change, deployment: Deployment, search: Search) -> list[Lever]:
    demand = search.demand
    while True:
        served = _served(less.search, deployment)
        step = math.floor(served + 1e-9) + 1.0 if demand.users is not None else served * RATE_STEP
        if step >= demand.peak_load:
            break
        more = _at_load(search, step)
        more.search.run([more.target])
        found = more.deployments()
        if not found or found[0].cost > deployment.cost + 1e-9:
            break
        less, (deployment,) = more, found
    fewer = _fewer(demand, served)
    if not 0 < fewer < demand.peak_load:
        return []
    text = f"{fewer:,.10g} instead of {demand.peak_load:,.10g} {demand.unit}"
    return [_lever(replace(less, text=text), deployment)]


def _served(search: Search, deployment: Deployment) -> float:
    row, demand = deployment.row, search.demand
    capacity = float(search.state(search.problem.confidence).capacities.served[row])
    served = deployment.n_replica * capacity * (1 - demand.headroom)
    return max(served, demand.peak_load)


def _fewer(demand: Demand, load: float) -> float:
    if demand.users is not None:
        return float(math.floor(load + 1e-9))
    return floor_to_three_digits(load) if load > 0 else 0.0


def _looser_limit(search: Search, first: Entry) -> Iterator[_Change]:
    demand = search.demand
    used = {(one.metric, one.statistic): one.high for one in first.predictions}
    latencies = [limit for limit in demand.limits if not limit.is_floor]
    if not latencies:
        return
    binding = max(latencies, key=lambda limit: used[limit.quantity] / limit.value)
    looser, text = loosen_limit(binding, LOOSER)
    limits = tuple(looser if limit == binding else limit for limit in demand.limits)
    model = LimitModel(replace(demand, limits=limits), search.problem.bundle.predictor, search.problem.confidence)
    yield _change("limit", text, search.with_limits(model))


def _fewer_bits(search: Search, max_cost: float) -> Iterator[_Change]:
    problem = search.problem
    stored, constraints = problem.model.weight_precision, problem.constraints
    searched = constraints.weight_precisions or {stored, *constraints.published}
    bits = {one: constraints.weight_bits.get(one, (None,)) for one in searched}
    least = min(bit / 8 if bit else WEIGHT_BYTE.get(one, 2.0) for one, own in bits.items() for bit in own)
    precisions = [one for one in QUANTISED if WEIGHT_BYTE[one] < least]
    if not precisions:
        return
    bounds = replace(constraints, weight_precisions=frozenset(precisions), weight_bits={}, speculations=(None,))
    if inner := _search_of(search, bounds, _cheaper(problem.offers, max_cost), has_pipelines=False):
        index = np.array([precisions.index(one.weight_precision) for one in inner.problem.replicas], dtype=np.intp)
        group = index[inner.pairs.row]
        yield _Change("precision", "", inner, SearchTarget(problem.confidence, group, len(precisions)))


def _replica_levers(changes: list[_Change]) -> Iterator[Lever]:
    for one in changes:
        levers = [_lever(one, deployment) for deployment in one.deployments()]
        if one.kind != "precision":
            yield from levers
            continue
        least_usd_per_h = math.inf
        for lever in sorted(levers, key=lambda lever: QUANTISED.index(lever.weight_precision)):
            if lever.cost_usd_per_h < (1 - MIN_SAVING) * least_usd_per_h:
                least_usd_per_h = lever.cost_usd_per_h
                of = f" of {lever.checkpoint}" if lever.checkpoint else ""
                yield lever.model_copy(update={"change": f"weights in {lever.weight_precision.upper()}{of}"})


def _lever(change: _Change, deployment: Deployment) -> Lever:
    problem = change.search.problem
    replica, offer = problem.replicas[deployment.row], problem.offers[deployment.offer]
    return Lever(
        **deployment_fields(replica, offer, deployment.n_replica, deployment.n_instance, deployment.cost),
        kind=change.kind,
        change=change.text,
        saving_ratio=None,
        needs_quantised_copy=problem.needs_copy(replica),
        warnings=tuple(offer_warnings(offer, deployment.n_instance)),
    )
