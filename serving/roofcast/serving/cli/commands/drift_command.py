"""The command that compares the predictor with new measurements, for people and for CI."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError, RoofcastError
from roofcast.serving.cli.arguments.request_check import check_level
from roofcast.serving.cli.console import EXIT_INPUT, spinner, step
from roofcast.serving.cli.context import AsJson, Level, Server, load_predictor, open_service
from roofcast.serving.cli.remote import ask
from roofcast.serving.cli.text.drift_text import show_drift
from roofcast.serving.defaults import DEFAULT_LEVEL

if TYPE_CHECKING:
    from roofcast.training.drift.drift_report import DriftReport

logger = logging.getLogger(__name__)

EXIT_DRIFT = 1

MAX_DAYS: Final = 36_500


def drift(
    *,
    days: Annotated[
        float | None,
        typer.Option(help="Compare the rows imported in so many days; by default ROOFCAST_DRIFT_DAYS."),
    ] = None,
    import_: Annotated[
        str | None, typer.Option("--import", metavar="ID", help="Compare the rows of one import instead.")
    ] = None,
    level: Level = DEFAULT_LEVEL,
    max_change: Annotated[
        float,
        typer.Option(help="Median ratio of repeats from which it is drift, however few they are."),
    ] = 1.5,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Compare imported rows with the predictor and with earlier runs.

    The exit status is 0 without drift, 1 with drift, 2 at an error or if nothing was compared. Rows that the
    predictor has learnt do not judge it.
    """
    try:
        _check(days, level, max_change)
        settings: dict[str, Any] = {"level": level, "max_change": max_change}
        settings |= {"import_id": import_} if import_ is not None else {} if days is None else {"days": days}
        report = _compute(settings, server)
        if as_json:
            print(report.model_dump_json())
        else:
            show_drift(report)
    except RoofcastError as error:
        step(f"error: {error}")
        raise typer.Exit(EXIT_INPUT) from error
    except Exception as error:
        logger.exception("the comparison failed")
        raise typer.Exit(EXIT_INPUT) from error
    if not report.n_compared and not report.n_repeat:
        step(f"error: nothing was compared, of {report.n_row} rows")
        raise typer.Exit(EXIT_INPUT)
    if report.is_drift:
        raise typer.Exit(EXIT_DRIFT)


def _compute(settings: dict[str, Any], server: str) -> DriftReport:
    from roofcast.serving.drift.import_drift import report_days, report_import
    from roofcast.training.drift.drift_report import DriftReport

    if server:
        with ask(server) as client:
            return DriftReport.model_validate(client.drift(**settings))
    with spinner("comparing"):
        service = load_predictor(open_service())
        service.challenger.refresh()
        if "import_id" in settings:
            return report_import(service.store, service.compared_models, **settings)
        days = {"days": service.settings.drift_days}
        return report_days(service.store, service.compared_models, **days | settings)


def _check(days: float | None, level: float, max_change: float) -> None:
    if days is not None and not 0 < days <= MAX_DAYS:
        raise InputError("days", f"must be positive and at most {MAX_DAYS:,}, got {days:g}")
    check_level(level)
    if not max_change > 1:
        raise InputError("max_change", f"must be greater than 1, got {max_change:g}")
