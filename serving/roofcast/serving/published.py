"""Figures of the scoreboard as last computed here, for the service to show: a file in the state folder."""

from __future__ import annotations

import datetime as dt
import logging
import os
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from roofcast.data.errors import NotReadyError
from roofcast.serving.schemas import ProtocolFigures
from roofcast.serving.state import make_home

logger = logging.getLogger(__name__)

FILE_NAME: Final = "scoreboard.json"

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
    computed = {"roofcast_version": version("roofcast"), "computed_on": today.isoformat()}
    fresh = {name: ProtocolFigures.model_validate(computed | {"figures": found}) for name, found in figures.items()}
    draft = home / f".{FILE_NAME}.{os.getpid()}"
    draft.write_bytes(_FIGURES.dump_json(read_figures(home) | fresh))
    draft.replace(home / FILE_NAME)


def read_figures(home: Path) -> dict[str, ProtocolFigures]:
    """Return the figures that were kept, by protocol; none if there are none that can be read."""
    try:
        return _FIGURES.validate_json((home / FILE_NAME).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        logger.warning("the scoreboard that was kept cannot be read: %s", error)
        return {}
