"""Refresh of published price lists; the newest price of each offer counts."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from roofcast.data.catalog import Catalog
from roofcast.data.specs import Offer
from roofcast.serving.app_state.catalog.user_catalog import write_offers
from roofcast.serving.app_state.catalog.user_files import REFRESHED


@dataclasses.dataclass(frozen=True, slots=True)
class OfferRefresh:
    """Numbers of new, changed, unchanged and outdated offers of a list, and the file that holds them."""

    name: str
    n_new: int
    n_changed: int
    n_same: int
    n_older: int
    path: Path


def refresh_offers(offers: Iterable[Offer], name: str, home: Path, catalog: Catalog) -> OfferRefresh:
    """Store a list of offers in place of the last one of this name; prices older than the catalogue's have no effect.

    Raises `InputError` if the stored list would not be readable; `NotReadyError` if the state folder cannot be
    written.
    """
    offers = tuple(offers)
    present = {offer.id: offer for offer in catalog.offers}
    n_new = n_changed = n_same = n_older = 0
    for offer in offers:
        known = present.get(offer.id)
        if known is None:
            n_new += 1
        elif offer.as_of < known.as_of:
            n_older += 1
        elif offer.price_usd_per_h == known.price_usd_per_h:
            n_same += 1
        else:
            n_changed += 1
    path = write_offers(offers, f"{REFRESHED}{name}", home, catalog).path
    return OfferRefresh(name, n_new, n_changed, n_same, n_older, path)
