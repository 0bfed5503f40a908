"""The command that compares the predictor with new measurements, for people and for CI."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError, RoofcastError
from roofcast.serving.cli.arguments.request_check import check_level
from roofcast.serving.cli.console import EXIT_INPUT, note, show, spinner, step, warn
from roofcast.serving.cli.context import AsJson, Level, Server, load_predictor, open_service
from roofcast.serving.cli.remote import ask
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.display_names import count_text, metric_name, quantity_text

if TYPE_CHECKING:
    from roofcast.serving.shadow.version_comparison import VersionComparison
    from roofcast.training.drift.answer_ratios import AnswerRatios
    from roofcast.training.drift.drift_report import Change, DriftReport, GroupErrors
    from roofcast.training.drift.paired_errors import ChallengerErrors, PairedErrors

MIN_CONFIGURATION: Final = 3
"""Least number of configurations whose errors can be significant."""

MAX_ROW: Final = 24
"""Lines of each table; JSON has all."""


def show_comparison(comparison: VersionComparison) -> None:
    """Print the ratios of the answers, and the errors of both versions."""
    answers = comparison.answers
    if answers.since is None:
        note(f"version {comparison.version} has answered nothing beside version {comparison.champion_version}")
    else:
        versions = f"version {comparison.version} / version {comparison.champion_version}"
        title = f"{versions}, {answers.n_row} rows of requests since {answers.since:%Y-%m-%d %H:%M} UTC"
        _show(title, map(_ratio_row, answers.ratios))
    for who, n in (("champion", answers.n_champion_only), ("challenger", answers.n_challenger_only)):
        if n:
            note(f"{n} rows are answered by the {who} alone")
    if comparison.measurements.errors:
        show_paired(comparison.measurements)
    else:
        note("no recent measurement is new to both versions")
    if max(len(answers.ratios), len(comparison.measurements.errors)) > MAX_ROW:
        note("more groups are in the JSON output")


def show_paired(pair: ChallengerErrors) -> None:
    """Print the errors of champion and challenger on the same rows."""
    title = f"the champion beside version {pair.version}, {pair.n_compared} rows that neither has learnt"
    _show(title, map(_paired_row, pair.errors))
    if pair.n_learnt:
        note(f"{pair.n_learnt} rows that version {pair.version} has learnt judge neither")


def _show(title: str, rows: Iterable[dict[str, Any]]) -> None:
    show([*islice(rows, MAX_ROW)], as_json=False, title=f"\n{title}")


def _group(one: AnswerRatios | PairedErrors | GroupErrors) -> dict[str, Any]:
    return {"metric": one.metric, "group": f"{one.kind} {one.name}".strip(), "rows": one.n_row}


def _ratio_row(one: AnswerRatios) -> dict[str, Any]:
    return _group(one) | {"5 %": one.low_ratio, "median": one.median_ratio, "95 %": one.high_ratio}


def _paired_row(one: PairedErrors) -> dict[str, Any]:
    return _group(one) | {
        "configurations": one.n_configuration,
        "median error": f"{one.champion_median_ape:.1%}",
        "challenger's": f"{one.challenger_median_ape:.1%}",
        "nearer": f"{one.n_nearer} of {one.n_configuration}",
        "p": "" if one.p_value is None else f"{one.p_value:.2g}",
        "verdict": one.verdict,
    }


def show_drift(report: DriftReport) -> None:
    """Print errors by group, changes between repeats, and the verdict."""
    from roofcast.training.drift.drift_report import distinct_groups

    errors = distinct_groups(report.errors)
    if errors:
        what = f"{count_text(report.n_compared, 'row')} that version {report.predictor_version} has not learnt"
        title = f"predicted against actual, {what}; a p-value near 0 is a sign of drift"
        _show(title, (_error_row(one, report.level) for one in errors))
    if report.challenger:
        show_paired(report.challenger)
    repeats = f"{report.n_changed} of {report.n_repeat} repeated values changed by more than repeats do"
    settings = f"{report.n_other_settings} values differ from runs with other settings: a change of settings"
    for title, changes in ((repeats, report.changes), (settings, report.setting_changes)):
        if changes:
            _show(title, map(_change_row, changes))
    if max(len(errors), len(report.changes), len(report.setting_changes)) > MAX_ROW:
        note("more groups or changes are in the JSON output")
    for text in _remarks(report):
        note(text)
    for warning in (*report.warnings, *(f"drift: {reason}" for reason in report.reasons)):
        warn(warning)
    if not report.reasons:
        is_few = max((one.n_configuration for one in errors), default=0) < MIN_CONFIGURATION
        note(f"no drift is found{'; so few configurations cannot show it' if is_few else ''}")


def _remarks(report: DriftReport) -> list[str]:
    n_judged = f"of {count_text(report.n_row, 'row')}"
    counts = {
        "the predictor has learnt, so they do not judge it": report.n_learnt,
        "have no comparison: failed or saturated runs, derived outcomes, unknown names": report.n_left_out,
        "are beyond the largest number that is compared, a sample by their ids": report.n_sampled_out,
    }
    return [f"{n} {n_judged} {what}" for what, n in counts.items() if n]


def _error_row(one: GroupErrors, level: float) -> dict[str, Any]:
    return _group(one) | {
        "metric": metric_name(one.metric),
        "configurations": one.n_configuration,
        "median error": f"{one.median_ape:.1%}",
        "measured / predicted": one.bias,
        f"within the intervals of {level:.0%}": f"{one.coverage:.0%} of rows",
        "p-value": "" if one.p_value is None else f"{one.p_value:.2g}",
        "drift": "yes" if one.is_drift else "",
    }


def _change_row(one: Change) -> dict[str, Any]:
    load = f"{one.concurrency:g} in flight" if one.concurrency else f"{one.request_rate or 0:g}/s"
    lengths = f"{one.n_input_token:g} -> {one.n_output_token:g}"
    return {
        "metric": f"{metric_name(one.metric)} {one.statistic}",
        "configuration": f"{one.model}, {one.n_accelerator:g} x {one.accelerator}, {lengths} tokens, {load}",
        "before": f"{quantity_text(one.metric, one.before)} on {one.date_before}",
        "now": f"{quantity_text(one.metric, one.after)} on {one.date_after}",
        "ratio": one.ratio,
        "differs in": ", ".join(one.settings) or "no recorded setting differs",
    }


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
