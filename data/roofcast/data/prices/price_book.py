"""Price book: the newest offer of each id on a day, with the user's overrides."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from roofcast.data.errors import UnknownNameError
from roofcast.data.specs import Offer, Pricing

MAX_AGE_DAY: Final = 90


@dataclasses.dataclass(frozen=True)
class PriceBook:
    """Prices on a day: for each offer id the newest on or before that day, and the cheapest if several share a date.

    Parameters
    ----------
    history
        Offers of any date, in any order.
    as_of
        Day of the prices; later offers are ignored.
    overrides
        The user's offers, which replace history of the same id, even if they are older or later than the day.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> book = PriceBook(load_catalog().offers, dt.date(2026, 11, 20))
    >>> book.offer("aws/us-east-1/p4d.24xlarge/on_demand").accelerator
    'nvidia-a100-sxm-40gb'
    """

    history: tuple[Offer, ...]
    as_of: dt.date
    overrides: tuple[Offer, ...] = ()

    @functools.cached_property
    def offers(self) -> Mapping[str, Offer]:
        """Offers by id (provider, region, instance type and pricing), ordered by id."""
        known = [offer for offer in self.history if offer.as_of <= self.as_of]
        newest = {o.id: o for o in sorted(known, key=lambda o: (o.as_of, -o.price_usd_per_h))}
        own = {offer.id: offer for offer in self.overrides}
        return MappingProxyType(dict(sorted((newest | own).items())))

    def offer(self, offer_id: str) -> Offer:
        """Return the offer of this id.

        Raises
        ------
        UnknownNameError
            If there is none on the day.
        """
        try:
            return self.offers[offer_id]
        except KeyError:
            raise UnknownNameError("offer", offer_id, self.offers) from None

    def for_accelerator(self, accelerator: str, pricing: Pricing | None = None) -> list[Offer]:
        """Return the offers of an accelerator, the cheapest per accelerator first."""
        offers = [
            offer
            for offer in self.offers.values()
            if offer.accelerator == accelerator and pricing in {None, offer.pricing}
        ]
        return sorted(offers, key=lambda o: (o.price_usd_per_h / o.n_accelerator, o.id))

    def stale(self, today: dt.date, max_age_day: int = MAX_AGE_DAY) -> list[Offer]:
        """Return the offers older than `max_age_day`, the oldest first; overrides are never stale."""
        own = {offer.id for offer in self.overrides}
        old = [
            offer
            for offer in self.offers.values()
            if offer.id not in own and (today - offer.as_of).days > max_age_day
        ]
        return sorted(old, key=lambda offer: (offer.as_of, offer.id))

    def staleness_warning(self, today: dt.date, max_age_day: int = MAX_AGE_DAY) -> str:
        """Return a warning if there are stale offers, else an empty text.

        Examples
        --------
        >>> from roofcast.data.catalog import load_catalog
        >>> book = PriceBook(load_catalog().offers, dt.date(2026, 11, 20))
        >>> book.staleness_warning(dt.date(2026, 11, 20), max_age_day=180)
        '585 of 2829 prices are more than 180 days old; the oldest is of 2024-12-23, 697 days ago'
        """
        old = self.stale(today, max_age_day)
        if not old:
            return ""
        first = old[0].as_of
        age = (today - first).days
        return (
            f"{len(old)} of {len(self.offers)} prices are more than {max_age_day} days old; "
            f"the oldest is of {first.isoformat()}, {age} days ago"
        )
