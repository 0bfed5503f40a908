"""Other offers of the configuration of an entry, at other providers and in other regions."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from roofcast.data.specs import Offer
from roofcast.features.queries import IndexArray
from roofcast.serving.recommend.answer.parts import OtherOffer, offer_fields
from roofcast.serving.recommend.search.search import Search, SearchTarget

MAX_OTHER: Final = 5


def other_offers(search: Search, target: SearchTarget, winners: IndexArray) -> list[tuple[OtherOffer, ...]]:
    """Return, for each winning pair, the cheapest offers of its replica and group elsewhere, one a region."""
    sizes, pairs, offers = search.state(target.confidence).sizes, search.pairs, search.problem.offers
    result = []
    for winner in winners.tolist():
        same = np.flatnonzero((pairs.row == pairs.row[winner]) & (target.group == target.group[winner]))
        same = same[np.isfinite(sizes.cost[same])]
        same = same[np.argsort(sizes.cost[same], kind="stable")]
        others = ((offers[pairs.offer[k]], int(sizes.n_instance[k]), float(sizes.cost[k])) for k in same.tolist())
        result.append(offers_elsewhere(offers[pairs.offer[winner]], others))
    return result


def offers_elsewhere(own: Offer, others: Iterable[tuple[Offer, int, float]]) -> tuple[OtherOffer, ...]:
    """Return the first offer of each other provider and region, of offers with their instances and cost."""
    first: dict[tuple[str, str], tuple[Offer, int, float]] = {}
    for other in others:
        first.setdefault((other[0].provider, other[0].region), other)
    first.pop((own.provider, own.region), None)
    return tuple(
        OtherOffer(**offer_fields(offer), n_instance=n_instance, cost_usd_per_h=cost)
        for offer, n_instance, cost in [*first.values()][:MAX_OTHER]
    )
