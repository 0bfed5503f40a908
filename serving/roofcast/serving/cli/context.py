"""Options that several commands share, and factories of what commands work with.

Each factory imports what it opens: a command that lists a catalogue imports no store, and none imports MLflow unless
it asks the registry.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.serving.cli.console import note, warn
from roofcast.serving.defaults import OPERATOR_TEXT, Operator

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.data.store.measurement_store import MeasurementStore
    from roofcast.serving.composition import Service
    from roofcast.serving.stacks.stack_choice import StackUsed

COMMAND_LINE: Final = "the command line"
"""Caller in the audit log."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Server = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask the running service at this address, with the API key of ROOFCAST_KEY if it is set.",
        show_default=False,
    ),
]
TargetOption = Annotated[
    Target,
    typer.Option(metavar="TARGET", help="What the predictor is about: inference, or training (jobs)."),
]
ReferenceFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV of own measurements that calibrate the predictions: columns as of --rows, and ttft_s, tpot_s, "
        "output_throughput_token_per_s, itl_s or e2e_s.",
    ),
]

SetColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="COLUMN=VALUE",
        help="A value that the files do not hold, such as accelerator=nvidia-h100-sxm-80gb; repeatable.",
    ),
]
ModelConfigs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PATH",
        help="The config.json of a model that is not in the catalogue, such as my-14b=my-14b/config.json.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Validate and count the rows, and store nothing.")]
Compare = Annotated[bool, typer.Option(help="Compare the new rows with the predictor and with earlier measurements.")]
Claim = Annotated[
    bool,
    typer.Option(
        "--claim",
        help="Make rows that API keys own yours: they then teach as measurements of the service's own stack.",
    ),
]
OutFile = Annotated[Path | None, typer.Option(metavar="FILE", help="With --rows: CSV to write.")]
Level = Annotated[float, typer.Option(help="Probability of the intervals.")]

OperatorOption = Annotated[Operator, typer.Option("--operator", help=OPERATOR_TEXT)]

StackOption = Annotated[
    str,
    typer.Option(
        "--stack",
        metavar="NAME",
        help="Stack profile that calibrates the predictions, or measured stack that they are about; see "
        "`roofcast stacks list`.",
        show_default=False,
    ),
]


def print_option(name: str, text: str, help_: str) -> Any:
    """Return a flag that prints a text in place of running its command."""

    def show(is_requested: bool) -> None:
        if is_requested:
            print(text.removesuffix("\n"))
            raise typer.Exit

    return typer.Option(name, callback=show, is_eager=True, help=help_)


def row_error(reason: str) -> InputError:
    """Return the error of the one row that has no answer, for this reason; it names options in place of columns."""
    field, _, problem = reason.partition(": ")
    return InputError(field, problem, re.findall(r"\w+_\w+", problem))


def note_stack(used: Mapping[str, Any] | StackUsed | None) -> None:
    """Print the stack that an answer is about, and what its caller has to know; nothing if there is none."""
    from roofcast.serving.stacks.stack_choice import StackUsed

    if isinstance(used, Mapping):
        used = StackUsed(used["name"], used["kind"], tuple(used["notes"]))
    if used:
        note(f"the answer is about the {used}")
        for text in used.notes:
            warn(text)


def open_catalog() -> Catalog:
    """Return the shipped catalogue with the accelerators and offers of the state folder.

    Raises `InputError` if a setting is invalid.
    """
    from roofcast.serving.app_state.catalog.user_files import UserFiles
    from roofcast.serving.app_state.settings import load_settings

    return UserFiles(load_settings().home, warn).catalog


def open_model_catalog() -> Catalog:
    """Return the catalogue of `open_catalog` with the models registered in the store.

    Raises `InputError` if a setting is invalid; `NotReadyError` if the store exists and cannot be read.
    """
    from roofcast.serving.app_state.catalog.live_catalog import with_registered
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.store_access import StoreAccess

    return with_registered(open_catalog(), StoreAccess(load_settings()).load_models()[0])


def count_own_campaigns() -> dict[str, int]:
    """Return the number of measurements of each imported campaign.

    Raises `InputError` if a setting is invalid; `NotReadyError` if the store exists and cannot be read.
    """
    from roofcast.data.store.database.sqlite_listing import count_by_campaign
    from roofcast.serving.app_state.settings import load_settings

    file = load_settings().store_file
    counts = count_by_campaign(file) if file else None
    return open_store().campaigns() if counts is None else counts


def open_store() -> MeasurementStore:
    """Return the measurement store.

    Raises `InputError` if a setting is invalid; `NotReadyError` if the state folder cannot be created or the store
    cannot be opened.
    """
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.store_access import open_migrated

    return open_migrated(load_settings())


def open_service() -> Service:
    """Return the parts for the settings of the environment; files with errors are reported as warnings.

    Raises `InputError` if a setting is invalid.
    """
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.composition import build_service

    return build_service(load_settings(), warn)


def load_predictor(service: Service, target: Target = INFERENCE) -> Service:
    """Return the service with the active predictor; the registry is asked only if it has changed since the last time.

    A champion that cannot be read is reported as a warning if another predictor answers, such as the shipped one.

    Raises `InputError` if the champion cannot be read, and there is no other predictor; `NotReadyError` if the
    registry cannot be reached.
    """
    loader = service.champions[target]
    loader.resume()
    try:
        loader.refresh()
    except InputError as error:
        if not loader.is_loaded:
            raise
        answering = loader.active_model.champion.version
        warn(f"the champion cannot be used: {error}; version {answering} answers")
    return service


def today() -> dt.date:
    """Return the date in UTC, which the age of prices is counted to."""
    return dt.datetime.now(dt.UTC).date()
