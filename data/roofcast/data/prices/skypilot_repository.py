"""SkyPilot's published price lists on GitHub, with the commit and date of each; a caller fetches the files."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.prices.offer_file import MAX_OFFER_FILE_BYTE
from roofcast.data.prices.skypilot import SkyPilotImport, load_skypilot_catalog

COMMITS: Final = "https://api.github.com/repos/skypilot-org/skypilot-catalog/commits"
FILES: Final = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog"
FOLDER: Final = "catalogs/v8"
LICENCE: Final = "Apache-2.0"

CLOUDS: Final = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod")
"""Clouds whose lists are fetched unless one is named."""

Fetch = Callable[[str], Iterator[bytes]]
"""Yields the parts of the file at an address; raises `NotReadyError` if it cannot be reached."""


@dataclasses.dataclass(frozen=True)
class PublishedList:
    """Last commit of a cloud's price list, and its day, which the prices are dated by."""

    cloud: str
    commit: str
    as_of: dt.date


def find_list(cloud: str, fetch: Fetch) -> PublishedList | None:
    """Return the last commit of a cloud's list; None if there is no list."""
    answer = b"".join(fetch(f"{COMMITS}?path={FOLDER}/{cloud}/vms.csv&per_page=1"))
    commits: list[dict[str, Any]] = json.loads(answer)
    if not commits:
        return None
    last = commits[0]
    return PublishedList(cloud, last["sha"], dt.date.fromisoformat(last["commit"]["committer"]["date"][:10]))


def load_published(published: PublishedList, fetch: Fetch, catalog: Catalog) -> SkyPilotImport:
    """Return the offers of a published list.

    Raises
    ------
    SchemaError
        If the file breaks the format; names line and field.
    InputError
        If the file is too large.
    """
    url = f"{FILES}/{published.commit}/{FOLDER}/{published.cloud}/vms.csv"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{published.cloud}-{published.commit[:12]}.csv"
        with file.open("wb") as stream:
            n_byte = 0
            for part in fetch(url):
                n_byte += len(part)
                if n_byte > MAX_OFFER_FILE_BYTE:
                    raise InputError("refresh", f"{url} is over {MAX_OFFER_FILE_BYTE} bytes")
                stream.write(part)
        return load_skypilot_catalog(file, published.cloud, published.as_of, catalog, LICENCE)
