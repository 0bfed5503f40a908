"""Levers: changes of the question that lower the cost, each with the cheapest deployment that is found with it.

Levers of load combine what the search has evaluated, so they cost nothing and are bounds from above. Other prices, a
looser limit and other precisions are searched, exactly among their candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import Offer
from roofcast.features.descriptors.precisions import WEIGHT_BYTE
from roofcast.features.validity.engine_support import needs_copy
from roofcast.serving.app_state.catalog.user_files import OWNED
from roofcast.serving.recommend.answer.parts import Entry, Lever
from roofcast.serving.recommend.demand.constraints import Constraints
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.slo import floor_to_three_digits, loosen_limit
from roofcast.serving.recommend.search.confidence import LimitModel
from roofcast.serving.recommend.search.configurations import enumerate_replicas
from roofcast.serving.recommend.search.deployment_sizes import Pairs
from roofcast.serving.recommend.search.problem import SearchProblem, with_replicas
from roofcast.serving.recommend.search.search import Search, SearchTarget

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

MAX_LEVERS: Final = 6
MIN_SAVING: Final = 0.05
"""Share of the cost below which a lever does not matter."""

QUANTISED: Final = ("fp8", "fp4", "int4")
"""Precisions of levers, most bits first; one with fewer bits has to save more than those before it."""
MAX_ACCELERATORS: Final = 6
"""Accelerators on which other precisions are searched: those of the first entries."""

LOAD_SHARES: Final = (0.9, 0.75, 0.5)
LOOSER: Final = 1.5
"""Factor by which the limit that binds is raised."""

_PRICING: Final = {
    "spot": "spot instances, which the provider may take back",
    "reserved_1y": "a commitment of one year",
    "reserved_3y": "a commitment of three years",
    "on_demand": "on demand",
}


def find_levers(search: Search, entries: Sequence[Entry], accelerators: Sequence[str]) -> tuple[Lever, ...]:
    """Return the levers that matter, by rising cost: one of each pricing, precision, and kind of change.

    Parameters
    ----------
    entries
        Of the recommendation; levers are compared with the first.
    accelerators
        Those on which other precisions are searched, the first `MAX_ACCELERATORS`.
    """
    cost = entries[0].cost_usd_per_h if entries else math.inf
    levers = [*_price_levers(search), *_load_levers(search, cost), *_precision_levers(search, accelerators)]
    if entries:
        levers += _limit_levers(search, entries[0])
    matters = [lever for lever in levers if lever.cost_usd_per_h < (1 - MIN_SAVING) * cost]
    if math.isfinite(cost):
        matters = [replace(lever, saving_ratio=1 - lever.cost_usd_per_h / cost) for lever in matters]
    return tuple(sorted(matters, key=lambda lever: lever.cost_usd_per_h)[:MAX_LEVERS])


def _price_levers(search: Search) -> Iterator[Lever]:
    """Yield other pricings, and regions and providers beyond those named."""
    constraints = replace(search.problem.constraints, inventory=())
    if constraints.providers and constraints.providers <= {OWNED}:
        return
    for pricing, text in _PRICING.items():
        if constraints.pricing and pricing not in constraints.pricing:
            yield from _cheapest(search, "pricing", text, replace(constraints, pricing=frozenset({pricing})))
    if constraints.regions:
        yield from _cheapest(search, "region", "any region", replace(constraints, regions=frozenset()))
    if constraints.providers:
        any_provider = replace(constraints, providers=frozenset(), regions=frozenset())
        yield from _cheapest(search, "provider", "any provider and region", any_provider)


def _cheapest(search: Search, kind: str, change: str, constraints: Constraints) -> Iterator[Lever]:
    """Yield the cheapest deployment on other offers."""
    offers = constraints.admissible_offers(search.problem.market.offers)
    if offers:
        yield from _search(search.with_offers(offers), kind, change)


@dataclass(frozen=True, slots=True)
class _KnownReplicas:
    """Replicas of known capacity on offers.

    Parameters
    ----------
    rows : shape (n_replica,)
        Indices of the replicas in the problem; `pairs` has indices in it.
    served : shape (n_pair,)
        Load that one replica serves.
    """

    search: Search
    offers: list[Offer]
    rows: IndexArray
    pairs: Pairs
    served: FloatArray

    @classmethod
    def on(cls, search: Search, offers: list[Offer]) -> Self:
        """Return those of a search."""
        problem, state = search.problem, search.state(search.problem.confidence)
        rows = np.flatnonzero(state.is_known & (state.capacity >= 0))
        replicas = [problem.replicas[row] for row in rows]
        pairs = Pairs.build(replicas, offers, problem.market.accelerators, problem.constraints.max_nodes)
        return cls(search, offers, rows, pairs, search.grid.served[rows, state.capacity[rows]][pairs.row])

    def cheapest(self, required: float) -> Lever | None:
        """Return the cheapest deployment that serves a load within the budget; None if there is none."""
        sizes = self.pairs.size(slice(None), required, self.served)
        if not len(sizes.cost) or not sizes.cost.min() <= min(self.search.budget, np.finfo(float).max):
            return None
        k = int(sizes.cost.argmin())
        row, offer = int(self.rows[self.pairs.row[k]]), self.offers[self.pairs.offer[k]]
        return _lever(self.search.problem, row, offer, (sizes.n_replica[k], sizes.n_instance[k], sizes.cost[k]))

    def most_load(self, usd_per_h: float) -> float:
        """Return the largest load that one of them serves at this cost."""
        price = np.where(self.pairs.price > 0, self.pairs.price, np.nan)
        affordable = np.floor(np.nan_to_num(usd_per_h / price, nan=np.inf) + 1e-9)
        n_instance = np.minimum(affordable, self.pairs.n_node)
        is_bounded = np.isfinite(n_instance)
        n_replica = np.floor(np.where(is_bounded, n_instance, 0.0) * self.pairs.per_instance + 1e-9)
        return float((n_replica * self.served).max(initial=0.0))


def _load_levers(search: Search, cost: float) -> Iterator[Lever]:
    """Yield the largest load of the lower cost that the largest share of the load has."""
    demand, known = search.demand, _KnownReplicas.on(search, search.problem.offers)
    for share in LOAD_SHARES:
        lever = known.cheapest(demand.required_load * share)
        if lever is None or not lever.cost_usd_per_h < (1 - MIN_SAVING) * cost:
            continue
        load = demand.peak_load * known.most_load(lever.cost_usd_per_h) / demand.required_load
        fewer = _fewer(demand, load)
        at_most = known.cheapest(demand.required_load * fewer / demand.peak_load) if fewer else None
        if at_most is not None and fewer < demand.peak_load:
            unit = "users" if demand.users is not None else "requests a second"
            change = f"{fewer:,.10g} instead of {demand.peak_load:,.10g} {unit}"
            yield replace(at_most, kind="users", change=change)
        return


def _fewer(demand: Demand, load: float) -> float:
    """Return a load as a lever names it: whole users, or a rate of three digits that is not above it."""
    if demand.users is not None:
        return float(math.floor(load + 1e-9))
    return floor_to_three_digits(load) if load > 0 else 0.0


def _limit_levers(search: Search, first: Entry) -> Iterator[Lever]:
    """Yield the limit that binds, raised by `LOOSER`."""
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


def _precision_levers(search: Search, accelerators: Sequence[str]) -> Iterator[Lever]:
    """Yield the precisions of fewer bytes than the checkpoint's that cost less than those before them."""
    problem = search.problem
    stored, constraints = problem.model.weight_precision, problem.constraints
    least = min(WEIGHT_BYTE.get(one, 2.0) for one in constraints.weight_precisions or {stored})
    precisions = [one for one in QUANTISED if WEIGHT_BYTE[one] < least]
    wanted = set(dict.fromkeys(accelerators[:MAX_ACCELERATORS]))
    offers = [offer for offer in problem.offers if offer.accelerator in wanted]
    if not precisions or not offers:
        return
    bounds = replace(constraints, weight_precisions=frozenset(precisions), speculations=(None,))
    replicas, _ = enumerate_replicas(problem.model, problem.market.accelerators, offers, bounds)
    replicas = [replica for replica in replicas if replica.pp == 1]
    if not replicas:
        return
    quantised = with_replicas(replace(problem, offers=offers), bounds, replicas)
    inner = Search(quantised, search.grid.limits)
    found = _by_precision(inner, precisions)
    least_usd_per_h = math.inf
    for precision in precisions:
        lever = found.get(precision)
        if lever is not None and lever.cost_usd_per_h < (1 - MIN_SAVING) * least_usd_per_h:
            least_usd_per_h = lever.cost_usd_per_h
            yield replace(lever, change=f"weights in {precision.upper()}")


def _by_precision(search: Search, precisions: list[str]) -> dict[str, Lever]:
    """Return the cheapest deployment of each precision that meets the limits."""
    index = np.array(
        [precisions.index(replica.weight_precision) for replica in search.problem.replicas], dtype=np.intp
    )
    levers = _search(search, "precision", "", index[search.pairs.row], len(precisions))
    return {lever.replica.weight_precision: lever for lever in levers}


def _search(search: Search, kind: str, change: str, group: IndexArray | None = None, n: int = 1) -> Iterator[Lever]:
    """Yield the cheapest deployment of each group, after a search."""
    problem = search.problem
    group = np.zeros_like(search.pairs.offer) if group is None else group
    target = SearchTarget(problem.confidence, group, n)
    search.run([target])
    for one in search.deployments(search.winners(target), problem.confidence):
        size = (one.n_replica, one.n_instance, one.cost)
        yield replace(_lever(problem, one.row, problem.offers[one.offer], size), kind=kind, change=change)


def _lever(problem: SearchProblem, row: int, offer: Offer, size: tuple[float, float, float]) -> Lever:
    """Return the lever of a replica on an offer, with replicas, instances and cost, its change left blank."""
    replica = problem.replicas[row]
    accelerator = problem.market.accelerators[replica.accelerator]
    return Lever(
        kind="",
        change="",
        offer=offer,
        replica=replica,
        n_replica=int(size[0]),
        n_instance=int(size[1]),
        cost_usd_per_h=float(size[2]),
        saving_ratio=None,
        needs_quantised_copy=needs_copy(
            replica.engine, problem.model.weight_precision, replica.weight_precision, accelerator
        ),
    )
