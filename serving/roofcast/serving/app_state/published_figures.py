"""Figures of the scoreboard, for the service to show: those that come with the package, and those computed here."""

from __future__ import annotations

import datetime as dt
import logging
import os
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from roofcast.data.errors import NotReadyError
from roofcast.serving.app_state.state_folder import make_home

logger = logging.getLogger(__name__)

FILE_NAME: Final = "scoreboard.json"

SHIPPED: Final = Path(__file__).with_name(FILE_NAME)
"""Figures of `docs/SCOREBOARD.md`, written with it."""

OWN_DOCS: Final = Path(__file__).parents[4] / "docs"
"""Folder of that page where the package lies in its source tree."""


class ProtocolFigures(BaseModel):
    """Figures of one protocol, laid out as in the JSON of `roofcast scoreboard`, and what computed them when."""

    roofcast_version: str
    computed_on: dt.date
    figures: dict[str, Any]


_FIGURES: Final = TypeAdapter(dict[str, ProtocolFigures])


def open_figures(home: Path) -> Path:
    """Return the state folder, where figures can be kept from now on: the computing takes hours, so ask before it.

    Raises
    ------
    NotReadyError
        If it cannot be made or written.
    """
    try:
        with tempfile.TemporaryFile(dir=make_home(home)):
            return home
    except OSError as error:
        problem = f"the state folder {home} cannot be written: {error.strerror or error}"
        raise NotReadyError(f"{problem}; set ROOFCAST_HOME to one that can") from error


def keep_figures(home: Path, figures: Mapping[str, Any], today: dt.date) -> None:
    """Keep the figures of protocols in a state folder; those of protocols that are not among them stay.

    Parameters
    ----------
    home
        State folder, which is there.
    figures
        By protocol, as in the JSON of `roofcast scoreboard`.
    today
        When they were computed.
    """
    _write(home / FILE_NAME, _read(home / FILE_NAME) | _computed(figures, today))


def ship_figures(docs: Path, figures: Mapping[str, Any], today: dt.date) -> None:
    """Write the figures of a page into the package, if it is the package's own page; it has these and no others.

    Parameters
    ----------
    docs
        Folder that the page was written to.
    figures, today
        As of `keep_figures`.
    """
    if docs.resolve() == OWN_DOCS:
        _write(SHIPPED, _computed(figures, today))


def read_figures(home: Path) -> dict[str, ProtocolFigures]:
    """Return the newest figures of each protocol: those computed here, and those that come with the package.

    Of figures that are as old as each other, one's own count; a file that cannot be read is logged and left out.
    """
    shipped, own = _read(SHIPPED), _read(home / FILE_NAME)
    newest = {name: told for name, told in own.items() if name not in shipped or not _is_older(told, shipped[name])}
    return shipped | newest


def _is_older(told: ProtocolFigures, than: ProtocolFigures) -> bool:
    return told.computed_on < than.computed_on


def _computed(figures: Mapping[str, Any], today: dt.date) -> dict[str, ProtocolFigures]:
    computed = {"roofcast_version": version("roofcast"), "computed_on": today.isoformat()}
    return {name: ProtocolFigures.model_validate(computed | {"figures": found}) for name, found in figures.items()}


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
        logger.warning("the scoreboard that was kept cannot be read: %s", error)
        return {}
