"""Basis of a response: versions and hashes that it depends on, and the response id."""

import datetime as dt
import functools
import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from roofcast.data.catalog import Catalog
from roofcast.training.lifecycle.registry.registry import Champion

ID_LENGTH: Final = 20


class Basis(BaseModel):
    """Versions and hashes that the response depends on, besides the request."""

    package_version: str
    predictor_version: str
    predictor_sha256: str
    prices_as_of: dt.date | None
    offers_sha256: str
    catalog_sha256: str

    model_config = ConfigDict(frozen=True)

    def answer_id(self, request: dict[str, Any]) -> str:
        """Return the id of the response to a request in JSON values: a hash of the basis and the request."""
        return _digest([json.dumps([self.model_dump(), request], sort_keys=True, default=str)])[:ID_LENGTH]


class BasisFactory:
    """Makes the basis of responses; hashes a catalogue once, until another one is given."""

    def __init__(self) -> None:
        self._last: tuple[Catalog, dt.date | None, str, str] | None = None

    def __call__(self, catalog: Catalog, champion: Champion) -> Basis:
        """Return the basis of the responses of a champion."""
        if self._last is None or self._last[0] is not catalog:
            specs = (*catalog.models.values(), *catalog.accelerators.values())
            aliases = [dict(catalog.model_aliases), dict(catalog.accelerator_aliases)]
            self._last = (
                catalog,
                max((offer.as_of for offer in catalog.offers), default=None),
                _digest(offer.model_dump_json() for offer in catalog.offers),
                _digest([*(spec.model_dump_json() for spec in specs), json.dumps(aliases, sort_keys=True)]),
            )
        _, prices_as_of, offers_sha256, catalog_sha256 = self._last
        return Basis(
            package_version=_package_version(),
            predictor_version=champion.version,
            predictor_sha256=champion.sha256,
            prices_as_of=prices_as_of,
            offers_sha256=offers_sha256,
            catalog_sha256=catalog_sha256,
        )


@functools.cache
def _package_version() -> str:
    return version("roofcast")


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()
