"""Refresh of the offers from the price lists that SkyPilot publishes on GitHub."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import httpx

from roofcast.data.catalog import Catalog
from roofcast.data.errors import NotReadyError
from roofcast.data.specs import Offer
from roofcast.serving.app_state.catalog.user_files import REFRESHED, write_offers

TIMEOUT_S: Final = 60.0

CURE: Final = "download the list by hand and give its path to --refresh; the prices stored so far stay"


def fetcher(client: httpx.Client) -> Callable[[str], Iterator[bytes]]:
    """Return a function that yields the parts of the file at an address.

    It raises `NotReadyError` if GitHub cannot be reached, or refuses.
    """

    def fetch(url: str) -> Iterator[bytes]:
        try:
            with client.stream("GET", url) as response:
                yield from response.raise_for_status().iter_bytes()
        except httpx.HTTPStatusError as error:
            problem = f"{error.request.url.host} answers {error.response.status_code} for {error.request.url.path}"
            raise NotReadyError(f"{problem}; try again later, or {CURE}") from error
        except httpx.HTTPError as error:
            raise NotReadyError(f"{httpx.URL(url).host} cannot be reached ({error}); go online, or {CURE}") from error

    return fetch


def open_client() -> httpx.Client:
    """Return an HTTP client for GitHub."""
    return httpx.Client(timeout=TIMEOUT_S, follow_redirects=True)


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
