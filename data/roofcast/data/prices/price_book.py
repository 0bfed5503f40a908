"""Price book: the newest offer of each id on a day, with the user's overrides."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from roofcast.data.prices.regions import UNKNOWN_REGION
from roofcast.data.specs import Offer

MAX_AGE_DAY: Final = 120
"""Age above which a price counts as old: it yields to a younger one, and an answer that rests on it says so."""


@dataclasses.dataclass(frozen=True)
class PriceBook:
    """Prices on a day: for each offer id the newest on or before that day, and the cheapest if several share a date.

    - `history`: Offers of any date, in any order.
    - `as_of`: Day of the prices; later offers are ignored.
    - `overrides`: The user's offers, which replace history of the same id, even if they are older or later than the
      day.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> book = PriceBook(load_catalog().offers, dt.date(2026, 11, 20))
    >>> book.offers["aws/us-east-1/p4d.24xlarge/on_demand"].accelerator
    'nvidia-a100-sxm-40gb'
    """

    history: tuple[Offer, ...]
    as_of: dt.date
    overrides: tuple[Offer, ...] = ()

    @functools.cached_property
    def offers(self) -> Mapping[str, Offer]:
        """Offers by id (provider, region, instance type and pricing), ordered by id, without superseded ones."""
        known = [offer for offer in self.history if offer.as_of <= self.as_of]
        newest = {o.id: o for o in sorted(known, key=lambda o: (o.as_of, -o.price_usd_per_h))}
        own = {offer.id: offer for offer in self.overrides}
        current = {offer.id: offer for offer in without_superseded(newest.values())}
        return MappingProxyType(dict(sorted((current | own).items())))

    def staleness_warning(self, today: dt.date, max_age_day: int = MAX_AGE_DAY) -> str:
        """Return a warning if offers are older than `max_age_day`, overrides excepted; else an empty text.

        Examples
        --------
        >>> from roofcast.data.catalog import load_catalog
        >>> book = PriceBook(load_catalog().offers, dt.date(2026, 11, 20))
        >>> book.staleness_warning(dt.date(2026, 11, 20), max_age_day=180)  # doctest: +ELLIPSIS
        '... prices are more than 180 days old; the oldest is of 2024-12-23, 697 days ago'
        """
        own = {offer.id for offer in self.overrides}
        dates = [offer.as_of for offer in self.offers.values() if offer.id not in own]
        old = [day for day in dates if (today - day).days > max_age_day]
        if not old:
            return ""
        first = min(old)
        age = (today - first).days
        return (
            f"{len(old)} of {len(self.offers)} prices are more than {max_age_day} days old; "
            f"the oldest is of {first.isoformat()}, {age} days ago"
        )


def without_superseded(offers: Iterable[Offer]) -> list[Offer]:
    """Return the offers less those of unknown region that a later list of the provider replaces under another name.

    Such an offer is replaced by a newer price of as many accelerators of its kind, and by one of any date that has
    the same price and names its region.
    """
    offers = list(offers)
    newest: dict[tuple[object, ...], dt.date] = {}
    located: set[tuple[object, ...]] = set()
    for offer in offers:
        newest[_shape(offer)] = max(offer.as_of, newest.get(_shape(offer), offer.as_of))
        if offer.region != UNKNOWN_REGION:
            located.add((*_shape(offer), offer.price_usd_per_h))
    return [
        offer
        for offer in offers
        if offer.region != UNKNOWN_REGION
        or (newest[_shape(offer)] == offer.as_of and (*_shape(offer), offer.price_usd_per_h) not in located)
    ]


def _shape(offer: Offer) -> tuple[object, ...]:
    return offer.provider, offer.accelerator, offer.n_accelerator, offer.pricing
