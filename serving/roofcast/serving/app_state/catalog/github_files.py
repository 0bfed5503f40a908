"""Files that GitHub publishes, over HTTP."""

from collections.abc import Callable, Iterator
from typing import Final

import httpx

from roofcast.data.errors import NotReadyError

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
