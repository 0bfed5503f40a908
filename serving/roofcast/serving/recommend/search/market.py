"""What may be rented, as arrays, and what a deployment of it costs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import AcceleratorSpec, Offer
from roofcast.features.descriptors.descriptor_table import HOST_SIZE
from roofcast.serving.recommend.answer.recommendation import Replica
from roofcast.serving.recommend.demand.inventory import OwnedNodes

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


class Market(Protocol):
    """What there is to choose from; a catalogue is one."""

    @property
    def accelerators(self) -> Mapping[str, AcceleratorSpec]:
        """Accelerators by id."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Priced instances."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Replicas on offers that hold them; arrays have shape (n_pair,).

    Parameters
    ----------
    row, offer
        Indices of the replica and of the offer.
    per_instance
        Replicas on one instance; less than 1 where one spans several.
    price
        Of an instance, in US dollars an hour.
    n_node
        Most instances there are.
    """

    row: IndexArray
    offer: IndexArray
    per_instance: FloatArray
    price: FloatArray
    n_node: FloatArray

    @classmethod
    def of(
        cls,
        replicas: Sequence[Replica],
        offers: Sequence[Offer],
        accelerators: Mapping[str, AcceleratorSpec],
        max_nodes: int,
    ) -> Self:
        """Return every replica on every offer that has room for it."""
        by_part: dict[str, list[int]] = {}
        for i, replica in enumerate(replicas):
            by_part.setdefault(replica.accelerator, []).append(i)
        alike: dict[tuple[str, int], list[int]] = {}
        for k, offer in enumerate(offers):
            alike.setdefault((offer.accelerator, offer.n_accelerator), []).append(k)
        own = [by_part.get(name, []) for name, _ in alike]
        row, kind = _chained(own)
        n = np.array([n for _, n in alike], dtype=float)
        is_whole = np.array([_is_whole(offers[same[0]], accelerators) for same in alike.values()], dtype=bool)
        size = np.array([replica.n_accelerator for replica in replicas], dtype=float)
        n_on = _replicas_on_instance(size[row], n[kind], is_whole[kind], max_nodes)
        row, kind, n_on = row[n_on > 0], kind[n_on > 0], n_on[n_on > 0]
        some, kind_of_offer = _chained(alike.values())
        n_row = np.bincount(kind, minlength=len(alike))[kind_of_offer]
        first = np.searchsorted(kind, kind_of_offer) - (np.cumsum(n_row) - n_row)
        place, pair = np.repeat(some, n_row), np.arange(n_row.sum()) + np.repeat(first, n_row)
        price = np.array([float(offer.price_usd_per_h) for offer in offers])
        n_node = np.array([float(o.n_node) if isinstance(o, OwnedNodes) else np.inf for o in offers])
        return cls(row[pair], place, n_on[pair], price[place], n_node[place])

    def instances(self, n_replica: FloatArray) -> FloatArray:
        """Return the instances that so many replicas take, one number a pair, whether or not there are so many."""
        return np.ceil(n_replica / self.per_instance - 1e-9)

    def cost(self, n_replica: FloatArray) -> FloatArray:
        """Return the cost of so many replicas in US dollars an hour; infinite where there are not enough nodes."""
        n_instance = self.instances(np.where(np.isfinite(n_replica), n_replica, 1.0))
        is_possible = np.isfinite(n_replica) & (n_instance <= self.n_node)
        return np.where(is_possible, n_instance * self.price, np.inf)


def _is_whole(offer: Offer, accelerators: Mapping[str, AcceleratorSpec]) -> bool:
    """Return whether an instance is as large as what the estimate takes to be joined without a network."""
    part = accelerators[offer.accelerator]
    joined = max(part.link_domain_size, HOST_SIZE if part.link.startswith("pcie") else 1)
    return offer.n_accelerator >= joined


def _chained(lists: Collection[list[int]]) -> tuple[IndexArray, IndexArray]:
    """Return the items of lists, one list after the other, and the place of the list that each comes from."""
    items = np.array([*itertools.chain.from_iterable(lists)], dtype=np.intp)
    return items, np.repeat(np.arange(len(lists)), [len(some) for some in lists])


def _replicas_on_instance(size: FloatArray, n: FloatArray, is_whole: BoolArray, max_nodes: int) -> FloatArray:
    """Return how many replicas of each size an instance holds: a fraction if one spans nodes, 0 if it has no room."""
    spans = is_whole & (size > n) & (size % n == 0) & (size <= n * max_nodes)
    return np.where(spans, n / size, np.floor(n / size))
