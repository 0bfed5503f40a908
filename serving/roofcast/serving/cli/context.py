"""What commands share: what they open, the day, and the option that prints JSON.

Each function imports what it opens, from the light to the heavy: files, the store, the workbench with its predictor.
"""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofcast.serving.cli.console import warn

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.data.store.measurement_store import MeasurementStore
    from roofcast.serving.app_state.app_state import AppState

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
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_files import OwnFiles

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
    from roofcast.serving.app_state import state_folder
    from roofcast.serving.app_state.settings import load_settings

    store = state_folder.open_store(load_settings())
    return store, state_folder.with_registered(open_catalog(), store.models.load())


def open_app_state() -> AppState:
    """Return the workbench of the environment's settings; files of one's own that are broken are told of.

    Raises
    ------
    InputError
        If a setting is wrong.
    NotReadyError
        If the state folder cannot be made or the measurement store cannot be opened.
    """
    from roofcast.serving.app_state.app_state import AppState
    from roofcast.serving.app_state.settings import load_settings

    return AppState(load_settings(), warn)


def today() -> dt.date:
    """Return the day, by which prices are old or not."""
    return dt.datetime.now(dt.UTC).date()
