"""SkyPilot's published price lists on GitHub, with the commit and date of each."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.prices.offer_file import MAX_OFFER_FILE_BYTE
from roofcast.data.prices.skypilot import SkyPilotImport, load_skypilot_catalog

COMMITS: Final = "https://api.github.com/repos/skypilot-org/skypilot-catalog/commits"
FILES: Final = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog"
FOLDER: Final = "catalogs/v8"
LICENCE: Final = "Apache-2.0"

CLOUDS: Final = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod")
"""Clouds whose lists are fetched unless one is named."""

_TIMEOUT_S: Final = 60.0


@dataclasses.dataclass(frozen=True)
class PublishedList:
    """Last commit of a cloud's price list, and its day, which the prices are dated by."""

    cloud: str
    commit: str
    as_of: dt.date


def find_list(cloud: str, client: httpx.Client) -> PublishedList | None:
    """Return the last commit of a cloud's list; None if there is no list.

    Raises
    ------
    NotReadyError
        If GitHub cannot be reached, or refuses.
    """
    query = {"path": f"{FOLDER}/{cloud}/vms.csv", "per_page": "1"}
    with _reported():
        commits: list[dict[str, Any]] = client.get(COMMITS, params=query).raise_for_status().json()
    if not commits:
        return None
    last = commits[0]
    return PublishedList(cloud, last["sha"], dt.date.fromisoformat(last["commit"]["committer"]["date"][:10]))


def load_published(published: PublishedList, client: httpx.Client, catalog: Catalog) -> SkyPilotImport:
    """Return the offers of a published list.

    Raises
    ------
    SchemaError
        If the file breaks the format; names line and field.
    NotReadyError
        If GitHub cannot be reached, or refuses.
    """
    url = f"{FILES}/{published.commit}/{FOLDER}/{published.cloud}/vms.csv"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{published.cloud}-{published.commit[:12]}.csv"
        with _reported(), file.open("wb") as stream, client.stream("GET", url) as response:
            n_byte = 0
            for part in response.raise_for_status().iter_bytes():
                n_byte += len(part)
                if n_byte > MAX_OFFER_FILE_BYTE:
                    raise InputError("refresh", f"{url} is over {MAX_OFFER_FILE_BYTE} bytes")
                stream.write(part)
        return load_skypilot_catalog(file, published.cloud, published.as_of, catalog, LICENCE)


def open_client() -> httpx.Client:
    """Return an HTTP client for GitHub."""
    return httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    cure = "download a vms.csv by hand and give its path to --refresh"
    try:
        yield
    except httpx.HTTPStatusError as error:
        problem = f"{error.request.url.host} answers {error.response.status_code} for {error.request.url.path}"
        raise NotReadyError(f"{problem}; try again later, or {cure}") from error
    except httpx.HTTPError as error:
        raise NotReadyError(f"SkyPilot's catalogue cannot be reached ({error}); go online, or {cure}") from error
