"""What commands share: what they open, the day, and the option that prints JSON.

Each function imports what it opens, from the light to the heavy: files, the store, the workbench with its predictor.
"""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofcast.serving.console import warn

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.data.store import MeasurementStore
    from roofcast.serving.workbench import Workbench

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ReferenceFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="CSV of measurements that the predictions are to know; columns as of --rows, "
                 "and ttft_s, tpot_s, output_throughput_token_per_s, itl_s, e2e_s."),
]  # fmt: skip


def open_catalog() -> Catalog:
    """Return the catalogue with the files of one's own; what is registered in the store is not among it.

    Raises
    ------
    InputError
        If a setting is wrong.
    """
    from roofcast.serving.own_files import OwnFiles
    from roofcast.serving.settings import load_settings

    return OwnFiles(load_settings().home, warn).catalog


def open_store() -> tuple[MeasurementStore, Catalog]:
    """Return the measurement store, and the catalogue with the models that it knows.

    Raises
    ------
    InputError
        If a setting is wrong.
    NotReadyError
        If the state folder cannot be made or the measurement store cannot be opened.
    """
    from roofcast.serving import state
    from roofcast.serving.settings import load_settings

    store = state.open_store(load_settings())
    return store, state.with_registered(open_catalog(), store.models())


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
