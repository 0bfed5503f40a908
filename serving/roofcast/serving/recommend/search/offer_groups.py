"""Groups of offers that share one entry: they differ only in seller, region or size of their instances."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from roofcast.data.specs import Offer
from roofcast.serving.recommend.demand.inventory import OwnedNodes
from roofcast.serving.recommend.search.deployment_sizes import Pairs
from roofcast.serving.recommend.search.replica import Replica

IndexArray = npt.NDArray[np.intp]


def group_offers(replicas: Iterable[Replica], offers: Sequence[Offer], pairs: Pairs) -> IndexArray:
    """Return the group that each pair of a replica and an offer belongs to: shape (n_pair,), from 0 on.

    Pairs of one group have the accelerator, the precision, the kind of speculation, the pricing and the market
    in common. Each kind of owned nodes is a group of its own.
    """
    kind = _codes((one.accelerator, one.weight_precision, one.speculation) for one in replicas)
    terms = _codes((one.pricing, one.market, one.id if isinstance(one, OwnedNodes) else "") for one in offers)
    code = kind[pairs.row] * (terms.max(initial=0) + 1) + terms[pairs.offer]
    return np.asarray(np.unique(code, return_inverse=True)[1].ravel(), dtype=np.intp)


def _codes(keys: Iterable[Hashable]) -> IndexArray:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp)
