"""Other offers of the configuration of an entry, at other providers and in other regions."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.serving.recommend.answer.parts import OtherOffer, offer_fields
from roofcast.serving.recommend.search.search import Search, SearchTarget

IndexArray = npt.NDArray[np.intp]

MAX_OTHER: Final = 5


def other_offers(search: Search, target: SearchTarget, winners: IndexArray) -> list[tuple[OtherOffer, ...]]:
    """Return, for each winning pair, the cheapest offers of its replica and group elsewhere, one a region."""
    sizes, pairs, offers = search.state(target.confidence).sizes, search.pairs, search.problem.offers
    result = []
    for winner in winners.tolist():
        same = np.flatnonzero((pairs.row == pairs.row[winner]) & (target.group == target.group[winner]))
        same = same[np.isfinite(sizes.cost[same]) & (same != winner)]
        own = offers[pairs.offer[winner]]
        by_region: dict[tuple[str, str], OtherOffer] = {}
        for k in same[np.argsort(sizes.cost[same], kind="stable")].tolist():
            n_instance, cost = int(sizes.n_instance[k]), float(sizes.cost[k])
            other = OtherOffer(**offer_fields(offers[pairs.offer[k]]), n_instance=n_instance, cost_usd_per_h=cost)
            by_region.setdefault((other.provider, other.region), other)
        by_region.pop((own.provider, own.region), None)
        result.append(tuple(by_region.values())[:MAX_OTHER])
    return result
