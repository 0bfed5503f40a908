"""Market of priced instances, the size and cost of deployments on them, and the offers that share one entry."""

import itertools
import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np

from roofcast.data.catalog.support_rows import MeasuredStack
from roofcast.data.specs import AcceleratorSpec, Offer
from roofcast.features.descriptors.descriptor_table import HOST_SIZE
from roofcast.features.queries import BoolArray, FloatArray, IndexArray
from roofcast.serving.recommend.demand.constraints import Constraints, Objective, OwnedNodes
from roofcast.serving.recommend.demand.demand import ENDLESS_S
from roofcast.serving.recommend.search.configurations import Replica

TIE: Final = 1e-9
"""Accelerators that a US dollar per hour weighs: among as few of them the cheapest are preferred."""


class Market(Protocol):
    """Accelerators by id, priced instances, and runs of the store; a catalogue is one."""

    @property
    def accelerators(self) -> Mapping[str, AcceleratorSpec]: ...  # noqa: D102

    @property
    def offers(self) -> tuple[Offer, ...]: ...  # noqa: D102

    @property
    def measured(self) -> tuple[MeasuredStack, ...]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of deployments, arrays of one shape.

    - `n_replica`, `n_instance`: Infinite if a replica serves nothing.
    - `cost`: In US dollars per hour; infinite if there are not enough instances or it is above the budget.
    - `score`: What the objective minimises; infinite like the cost.
    """

    n_replica: FloatArray
    n_instance: FloatArray
    cost: FloatArray
    score: FloatArray


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a replica and an offer that has room for it; arrays have shape (n_pair,).

    - `row`, `offer`: Indices of the replica and of the offer.
    - `per_instance`: Replicas on one instance; less than 1 where a replica spans several.
    - `price`: Of an instance, in US dollars per hour.
    - `n_node`: Number of instances available.
    - `n_accelerator`: Of a replica.
    - `objective`, `budget`: What decides between deployments, and their highest cost in US dollars per hour.
    """

    row: IndexArray
    offer: IndexArray
    per_instance: FloatArray
    price: FloatArray
    n_node: FloatArray
    n_accelerator: FloatArray
    objective: Objective = "cost"
    budget: float = math.inf

    @classmethod
    def build(
        cls,
        replicas: Sequence[Replica],
        offers: Sequence[Offer],
        accelerators: Mapping[str, AcceleratorSpec],
        constraints: Constraints,
    ) -> Self:
        """Return every replica on every offer that has room for it."""
        by_accelerator: dict[str, list[int]] = {}
        for i, replica in enumerate(replicas):
            by_accelerator.setdefault(replica.accelerator, []).append(i)
        by_shape: dict[tuple[str, int], list[int]] = {}
        for k, offer in enumerate(offers):
            by_shape.setdefault((offer.accelerator, offer.n_accelerator), []).append(k)
        row, shape = _concatenate([by_accelerator.get(name, []) for name, _ in by_shape])
        n = np.array([n for _, n in by_shape], dtype=float)
        is_full = [_fills_link_domain(offers[same[0]], accelerators) for same in by_shape.values()]
        size = np.array([replica.n_accelerator for replica in replicas], dtype=float)
        per_instance = _replicas_per_instance(
            size[row], n[shape], np.array(is_full, dtype=bool)[shape], constraints.max_nodes
        )
        has_room = per_instance > 0
        row, shape, per_instance = row[has_room], shape[has_room], per_instance[has_room]
        offer_index, shape_of_offer = _concatenate(by_shape.values())
        n_row = np.bincount(shape, minlength=len(by_shape))[shape_of_offer]
        first = np.searchsorted(shape, shape_of_offer) - (np.cumsum(n_row) - n_row)
        offer_of_pair, pair = np.repeat(offer_index, n_row), np.arange(n_row.sum()) + np.repeat(first, n_row)
        price = np.array([float(offer.price_usd_per_h) for offer in offers])
        n_node = np.array([float(o.n_node) if isinstance(o, OwnedNodes) else np.inf for o in offers])
        return cls(
            row[pair],
            offer_of_pair,
            per_instance[pair],
            price[offer_of_pair],
            n_node[offer_of_pair],
            size[row[pair]],
            constraints.objective,
            constraints.budget_usd_per_h,
        )

    def size(self, pair: IndexArray | slice, required_load: float, served: FloatArray) -> Sizes:
        """Return replicas, instances and cost of deployments that serve a load.

        - `pair`: shape (n,). Indices of the pairs.
        - `required_load`: Of all replicas together; infinite for as many replicas as the fewest instances hold, or,
          for throughput, as the budget pays for.
        - `served`: shape (n,). Load that one replica serves; 0 if none.
        """
        per_instance, price, most = self.per_instance[pair], self.price[pair], self.n_node[pair]
        if math.isfinite(required_load):
            ratio = np.divide(required_load, served, out=np.full(len(served), np.inf), where=served > 0)
            n_replica = np.maximum(np.ceil(ratio - 1e-9), 1.0)
            n_instance = np.ceil(n_replica / per_instance - 1e-9)
        else:
            n_instance = np.ceil(1.0 / per_instance - 1e-9)
            if self.objective == "throughput":
                paid = np.divide(self.budget, price, out=np.full(len(price), np.inf), where=price > 0)
                n_instance *= np.floor(np.minimum(paid, most) / n_instance + 1e-9)
            n_replica = np.where(served > 0, np.floor(n_instance * per_instance + 1e-9), np.inf)
        is_possible = np.isfinite(n_replica) & (n_replica >= 1.0) & (n_instance <= most)
        cost = np.where(is_possible, np.where(is_possible, n_instance, 0.0) * price, np.inf)
        score = cost
        if self.objective == "accelerators":
            score = n_replica * self.n_accelerator[pair] + cost * TIE
        elif not math.isfinite(required_load):
            rate = np.where(is_possible, np.where(is_possible, n_replica, 1.0) * served / ENDLESS_S, 1.0)
            score = (1.0 if self.objective == "throughput" else cost + TIE) / rate
        return Sizes(n_replica, n_instance, cost, np.where(is_possible & (cost <= self.budget), score, np.inf))


def _fills_link_domain(offer: Offer, accelerators: Mapping[str, AcceleratorSpec]) -> bool:
    accelerator = accelerators[offer.accelerator]
    n_joined = max(accelerator.link_domain_size, HOST_SIZE if accelerator.link.startswith("pcie") else 1)
    return offer.n_accelerator >= n_joined


def _concatenate(lists: Collection[list[int]]) -> tuple[IndexArray, IndexArray]:
    items = np.array([*itertools.chain.from_iterable(lists)], dtype=np.intp)
    return items, np.repeat(np.arange(len(lists)), [len(one) for one in lists])


def _replicas_per_instance(size: FloatArray, n: FloatArray, fills_domain: BoolArray, max_nodes: int) -> FloatArray:
    spans = fills_domain & (size > n) & (size % n == 0) & (size <= n * max_nodes)
    return np.where(spans, n / size, np.floor(n / size))


def group_offers(replicas: Iterable[Replica], offers: Sequence[Offer], pairs: Pairs) -> IndexArray:
    """Return the group that each pair of a replica and an offer belongs to: shape (n_pair,), from 0 on.

    Pairs of one group have the accelerator, the precision, the kind of speculation, the pricing and the market
    in common. Each kind of owned nodes is a group of its own.
    """
    kind = _codes((one.accelerator, one.weight_precision, one.weight_bit, one.speculation) for one in replicas)
    terms = _codes((one.pricing, one.market, one.id if isinstance(one, OwnedNodes) else "") for one in offers)
    code = kind[pairs.row] * (terms.max(initial=0) + 1) + terms[pairs.offer]
    return np.asarray(np.unique(code, return_inverse=True)[1].ravel(), dtype=np.intp)


def _codes(keys: Iterable[Hashable]) -> IndexArray:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp)
