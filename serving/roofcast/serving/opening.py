"""What commands share: the workbench, the day, and the option that prints JSON."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated

import typer

from roofcast.serving.console import warn

if TYPE_CHECKING:
    from roofcast.serving.workbench import Workbench

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def open_workbench() -> Workbench:
    """Return the workbench of the environment's settings; files of one's own that are broken are told of.

    Raises
    ------
    InputError
        If a setting is wrong.
    NotReadyError
        If the state folder cannot be made or the measurement store cannot be opened.
    """
    from roofcast.serving.settings import load_settings
    from roofcast.serving.workbench import Workbench

    return Workbench(load_settings(), warn)


def today() -> dt.date:
    """Return the day, by which prices are old or not."""
    return dt.datetime.now(dt.UTC).date()
