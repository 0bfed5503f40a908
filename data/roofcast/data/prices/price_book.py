"""Price book: the newest offer of each id on a day, with the user's overrides."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from roofcast.data.specs import Offer

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
    >>> book.offers["aws/us-east-1/p4d.24xlarge/on_demand"].accelerator
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

    def staleness_warning(self, today: dt.date, max_age_day: int = MAX_AGE_DAY) -> str:
        """Return a warning if offers are older than `max_age_day`, overrides excepted; else an empty text.

        Examples
        --------
        >>> from roofcast.data.catalog import load_catalog
        >>> book = PriceBook(load_catalog().offers, dt.date(2026, 11, 20))
        >>> book.staleness_warning(dt.date(2026, 11, 20), max_age_day=180)
        '585 of 2829 prices are more than 180 days old; the oldest is of 2024-12-23, 697 days ago'
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
