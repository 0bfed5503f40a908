"""The commands on stack profiles: add own runs, list, show their effect, remove."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.arguments.request_check import check_level
from roofcast.serving.cli.console import fold, note, show, spinner, track, warn
from roofcast.serving.cli.context import (
    AsJson,
    Level,
    ModelConfigs,
    Server,
    SetColumns,
    load_predictor,
    open_service,
    open_store,
)
from roofcast.serving.cli.files import parse_configs
from roofcast.serving.cli.remote import ask
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.display_names import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

stacks = typer.Typer(
    no_args_is_help=True,
    help="Profiles of own runs, which `--stack NAME` of predict, recommend, explain and whatif use.",
)

Name = Annotated[str, typer.Argument(help="Name of the stack profile, such as rack-7.")]

OWNER: Final = ""
"""Owner of the profiles that the command line makes."""


@stacks.command()
def add(
    name: Name,
    paths: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files in a format of `roofcast formats`.")],
    model_config: ModelConfigs = None,
    given: SetColumns = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Add runs to a stack profile, which is made if it is new: all, or none. A CSV has columns of references."""
    show([add_files(name, paths, model_config or [], given or [], server)], as_json=as_json)


def add_files(
    name: str, paths: list[Path], model_config: list[str], given: list[str], server: str = ""
) -> dict[str, Any]:
    """Add the runs of files to a profile with the options of `add`; return the numbers of rows."""
    configs = parse_configs(model_config)
    rows, n_left_out = _read_rows(paths, given)
    if n_left_out:
        note(f"left out: {count_text(n_left_out, 'row')} of failed runs or without a metric of references")
    if server:
        models: Any = [{"name": model, "config": dict(config)} for model, config in configs]
        with ask(server) as client:
            added: Mapping[str, Any] = client.add_stack(name=name, rows=rows, models=models)
    else:
        from roofcast.serving.stacks.profiles import add_rows

        with spinner("checking"):
            service = load_predictor(open_service())
            predictor = service.active_model.bundle.predictor
            added = asdict(
                add_rows(service.store.stacks, service.catalogs, predictor, rows, configs, name=name, owner=OWNER)
            )
    return dict(added)


def _read_rows(paths: list[Path], given: list[str]) -> tuple[list[dict[str, Any]], int]:
    from roofcast.data.importers import read_measurements
    from roofcast.data.importers.overrides import parse_overrides
    from roofcast.serving.stacks.profiles import check_file_rows, rows_of_measurements

    for path in paths:
        check_file_rows(path)
    rows, n_left_out = rows_of_measurements(read_measurements(None, paths, None, track, parse_overrides(given)))
    if not rows:
        raise InputError("FILE", "no row has a TTFT, TPOT, ITL, E2E latency or throughput of a run that worked")
    return rows, n_left_out


@stacks.command("list")
def list_(
    measured: Annotated[
        bool, typer.Option("--measured", help="List the measured stacks that the predictor knows instead.")
    ] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """List the stack profiles, or measured stacks; `--stack` takes a name of either, and a profile comes first."""
    if measured:
        rows = _measured(server)
    elif server:
        with ask(server) as client:
            rows = [dict(summary) for summary in client.stacks()]
    else:
        rows = [asdict(summary) for summary in open_store().stacks.summaries(OWNER)]
    show(rows, as_json=as_json)


def _measured(server: str) -> list[dict[str, Any]]:
    if server:
        with ask(server) as client:
            return [dict(stack) for stack in client.measured_stacks()]
    from roofcast.serving.stacks.stack_choice import measured_stacks

    with spinner("reading"):
        service = load_predictor(open_service())
        return [asdict(stack) for stack in measured_stacks(service.active_model.bundle.predictor)]


@stacks.command("show")
def show_(
    name: Name,
    level: Level = DEFAULT_LEVEL,
    n: Annotated[int, typer.Option(help="Number of measurements to suggest.", min=0, max=20)] = 3,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Show the errors of a profile's rows without it and with its other runs, and what to measure next for it."""
    if server:
        with ask(server) as client:
            report: dict[str, Any] = dict(client.stack(name, level=level, n_next=n))
    else:
        check_level(level)
        from roofcast.serving.stacks.stack_report import stack_report

        with spinner("leaving out each run"):
            service = load_predictor(open_service())
            profile = service.stacks.load_profile(service.catalog, service.active_model, OWNER, name)
            report = stack_report(
                profile, service.active_model.bundle, service.catalog, level=level, n_next=n
            ).model_dump()
    if as_json:
        print(json.dumps(report, allow_nan=False))
        return
    for text in report["notes"]:
        warn(text)
    lines = [
        {"metric": one["metric"], "rows": one["n_row"], "predicted": text, **(errors or {"mape": None})}
        for one in report["errors"]
        for text, errors in (("without the stack", one["before"]), ("with its other runs", one["after"]))
    ]
    print(fold(f"{report['name']}: {count_text(report['n_run'], 'run')} of {', '.join(report['models'])}"))
    print(fold(stack_verdict(report)))
    show(lines, as_json=False, title=f"\nerrors as fractions, coverage of intervals of {level:g}")
    rows = [
        {name: value for name, value in row.items() if name != "narrower"} | row["narrower"]
        for row in report["measure_next"]
    ]
    title = "\nmeasure next; relative decrease of the intervals' width in logarithms, by metric"
    if rows:
        show(rows, as_json=False, title=title)


@stacks.command()
def remove(name: Name, server: Server = "", as_json: AsJson = False) -> None:
    """Remove a stack profile."""
    if server:
        with ask(server) as client:
            removed: Mapping[str, Any] = client.remove_stack(name)
    else:
        removed = {"name": name, "n_row": open_store().stacks.remove(OWNER, name)}
    show([dict(removed)], as_json=as_json)


_ONE_RUN = "one run cannot say whether the profile helps, as nothing is left to predict it from; add another run"


def stack_verdict(report: dict[str, Any]) -> str:
    """Return whether the profile of a report in JSON values helps, with the median error before and after.

    Examples
    --------
    >>> errors = [{"metric": "tpot_s", "before": {"median_ape": 0.2}, "after": {"median_ape": 0.05}}]
    >>> stack_verdict({"errors": errors})
    'the profile helps: predicted from its other runs, a run has a median error of 5% instead of 20% in TPOT'
    """
    changes = [
        (one["metric"], one["before"]["median_ape"], one["after"]["median_ape"])
        for one in report["errors"]
        if one["after"]
    ]
    if not changes:
        return _ONE_RUN
    n_better = sum(after < before for _, before, after in changes)
    verdict = "helps" if n_better == len(changes) else "helps in part" if n_better else "does not help"
    texts = [f"{after:.3g}% instead of {before:.3g}% in {name}" for name, before, after in map(_percent, changes)]
    return (
        f"the profile {verdict}: predicted from its other runs, a run has a median error of "
        f"{', '.join(texts[:-1])}{' and ' if texts[1:] else ''}{texts[-1]}"
    )


def _percent(change: tuple[str, float, float]) -> tuple[str, float, float]:
    metric, before, after = change
    name = metric.removesuffix("_token_per_s").removesuffix("_s").replace("_", " ")
    return (name if " " in name else name.upper()), 100 * before, 100 * after
