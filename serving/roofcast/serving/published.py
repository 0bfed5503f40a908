"""Figures of the scoreboard as last computed here, for the service to show: a file in the state folder."""

from __future__ import annotations

import datetime as dt
import logging
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from roofcast.serving.schemas import ProtocolFigures

logger = logging.getLogger(__name__)

FILE_NAME: Final = "scoreboard.json"

_FIGURES: Final = TypeAdapter(dict[str, ProtocolFigures])


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
