"""Scoreboard figures that the service shows: those of the package and those computed in the state folder."""

import datetime as dt
import functools
import hashlib
import logging
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from roofcast.training.lifecycle.learned_targets import LEARNED_TARGETS

logger = logging.getLogger(__name__)

FILE_NAME: Final = "scoreboard.json"

SHIPPED: Final = Path(__file__).with_name(FILE_NAME)
"""Figures of `docs/SCOREBOARD.md`, written together with it."""

OWN_DOCS: Final = Path(__file__).parents[4] / "docs"
"""Folder of that page in a source tree."""


class ProtocolFigures(BaseModel):
    """Figures of one protocol, as in the JSON of `roofcast scoreboard` with the version and date of computation.

    `predictor` is the `predictor_digest` of the package at that time.
    """

    roofcast_version: str
    computed_on: dt.date
    predictor: str = ""
    figures: dict[str, Any]

    @property
    def computed(self) -> str:
        """When they were computed, and whether rows or code of the shipped predictors changed since."""
        day = self.computed_on.isoformat()
        return day if self.predictor == predictor_digest() else f"{day}, earlier predictor"


@functools.cache
def predictor_digest() -> str:
    """Return a digest of the shipped predictors: of their bytes, rows, catalogue and code."""
    manifests = [target.predictor_file.read_manifest() for target in LEARNED_TARGETS.values()]
    return hashlib.blake2b(repr(manifests).encode(), digest_size=8).hexdigest()


_FIGURES: Final = TypeAdapter(dict[str, ProtocolFigures])


def store_figures(home: Path, figures: Mapping[str, Any], today: dt.date) -> None:
    """Store the figures of protocols in an existing state folder; stored figures of other protocols stay.

    `figures`: by protocol, as in the JSON of `roofcast scoreboard`. `today`: date of the computation.
    """
    _write(home / FILE_NAME, _read(home / FILE_NAME) | _computed(figures, today))


def shipped_figures() -> dict[str, ProtocolFigures]:
    """Return the figures of the package by protocol."""
    return _read(SHIPPED)


def ship_figures(docs: Path, figures: Mapping[str, Any], today: dt.date) -> None:
    """Store the figures in the package, if `docs` is its own documentation folder; see `store_figures`."""
    if docs.resolve() == OWN_DOCS:
        _write(SHIPPED, _read(SHIPPED) | _computed(figures, today))


def read_figures(home: Path) -> dict[str, ProtocolFigures]:
    """Return the newest figures of each protocol, of the package or the state folder.

    At equal dates the state folder takes precedence. A file that cannot be read is logged and ignored.
    """
    shipped, own = _read(SHIPPED), _read(home / FILE_NAME)
    newest = {
        name: protocol
        for name, protocol in own.items()
        if name not in shipped or protocol.computed_on >= shipped[name].computed_on
    }
    return shipped | newest


def _computed(figures: Mapping[str, Any], today: dt.date) -> dict[str, ProtocolFigures]:
    computed = {
        "roofcast_version": version("roofcast"), "computed_on": today.isoformat(), "predictor": predictor_digest()
    }  # fmt: skip
    return {name: ProtocolFigures.model_validate(computed | {"figures": values}) for name, values in figures.items()}


def _write(file: Path, figures: dict[str, ProtocolFigures]) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_bytes(_FIGURES.dump_json(figures) + b"\n")
    draft.replace(file)


def _read(file: Path) -> dict[str, ProtocolFigures]:
    try:
        return _FIGURES.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        logger.warning("scoreboard figures ignored, file=%s: %s", file, error)
        return {}
