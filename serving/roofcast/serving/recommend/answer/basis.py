"""What an answer rests on, and the name that follows from it."""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from roofcast.data.catalog import Catalog
from roofcast.data.specs import Spec
from roofcast.training.lifecycle.registry import Champion

ID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Basis:
    """What an answer rests on, besides the request.

    Parameters
    ----------
    package_version
        Of roofcast, whose search and estimate it is.
    predictor_version, predictor_sha256
        Of the champion.
    prices_as_of
        The latest price; None without offers.
    offers_sha256, catalog_sha256
        Of the offers, and of models and accelerators with their other names.
    """

    package_version: str
    predictor_version: str
    predictor_sha256: str
    prices_as_of: dt.date | None
    offers_sha256: str
    catalog_sha256: str

    def name(self, request: dict[str, Any]) -> str:
        """Return the id of the answer to a request, given as JSON values: the same for the same on the same basis."""
        return _digest([json.dumps([asdict(self), request], sort_keys=True, default=str)])[:ID_LENGTH]


class BasisOf:
    """The basis of answers; what it takes long to read is read anew when the catalogue is another one."""

    def __init__(self) -> None:
        self._last: tuple[Catalog, dt.date | None, str, str] | None = None

    def __call__(self, catalog: Catalog, champion: Champion) -> Basis:
        """Return what the answers of a champion rest on."""
        last = self._last
        if last is None or last[0] is not catalog:
            last = self._last = (
                catalog,
                max((offer.as_of for offer in catalog.offers), default=None),
                _digest(map(_json, catalog.offers)),
                _digest([
                    *map(_json, (*catalog.models.values(), *catalog.accelerators.values())),
                    json.dumps([*map(dict, (catalog.model_aliases, catalog.accelerator_aliases))], sort_keys=True),
                ]),
            )  # fmt: skip
        return Basis(_package_version(), champion.version, champion.sha256, *last[1:])


@functools.cache
def _package_version() -> str:
    return version("roofcast")


def _json(spec: Spec) -> str:
    return spec.model_dump_json()


def _digest(texts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, in any order."""
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()
