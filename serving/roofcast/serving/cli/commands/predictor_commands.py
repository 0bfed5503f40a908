"""The commands on the predictor: train, promote, roll back, export, evaluate, and rank what to measure next."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofcast.data.errors import NotReadyError
from roofcast.data.measurements.target import INFERENCE
from roofcast.serving.cli.arguments.options import Options, read_request, request_options, with_options
from roofcast.serving.cli.console import count_steps, note, show, spinner, step, track_retraining
from roofcast.serving.cli.context import (
    COMMAND_LINE,
    AsJson,
    Server,
    TargetOption,
    load_predictor,
    open_service,
    today,
)
from roofcast.serving.cli.files import read_model, writing
from roofcast.serving.cli.remote import ask, read_served_model

if TYPE_CHECKING:
    from roofcast.data.store.retrainings import Retraining
    from roofcast.training.lifecycle.registry.registry import Champion


def retrain(
    *,
    target: TargetOption = INFERENCE,
    shadow: Annotated[
        bool | None,
        typer.Option(
            "--shadow/--no-shadow",
            help="Judge the candidate, and let it answer beside the champion instead of promoting it; by default as "
            "ROOFCAST_AUTO_PROMOTE says. A candidate of training jobs is only registered.",
            show_default=False,
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Scheduler of a Dask cluster that fits the folds of inference, such as tcp://scheduler:8786; by "
            "default that of ROOFCAST_DASK.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a candidate to all measurements, and promote it unless the champion is better."""
    report = open_service().retrain(target, track_retraining(), shadow=shadow, dask=dask)
    if as_json:
        print(report.model_dump_json())
        return
    show([report.model_dump(exclude={"scores", "set_aside"})], as_json=False)
    set_aside = [{"rule": rule, "measurements": n} for rule, n in report.set_aside.items()]
    show(set_aside, as_json=False, title="\nset aside before training")
    show([{"metric": m, **scores} for m, scores in report.scores.items()], as_json=False, title="\nheld-out lineages")


def promote(
    version: Annotated[str, typer.Argument(help="A version in the registry.")],
    *,
    target: TargetOption = INFERENCE,
    as_json: AsJson = False,
) -> None:
    """Promote a version of the predictor."""
    with spinner(f"promoting version {version}"):
        champion = open_service().champions[target].promote(version, COMMAND_LINE).champion
    _show_champion(champion, as_json=as_json)


def rollback(*, target: TargetOption = INFERENCE, as_json: AsJson = False) -> None:
    """Promote the version before the champion; called again, the version before that."""
    with spinner("rolling back"):
        champion = open_service().champions[target].roll_back(COMMAND_LINE).champion
    _show_champion(champion, as_json=as_json)


def _show_champion(champion: Champion, *, as_json: bool) -> None:
    print(json.dumps(asdict(champion)) if as_json else f"version {champion.version} is in service")


def export(
    file: Annotated[Path, typer.Argument(help="File to write; its SHA-256 is written beside it.")],
    as_json: AsJson = False,
) -> None:
    """Write the active predictor to a file that Python loads without a server or MLflow."""
    from roofcast.training.lifecycle.bundles.bundle_io import checksum_file

    with spinner("writing"):
        active = load_predictor(open_service()).active_model
        with writing(file, "file"):
            checksum = active.bundle.save(file)
    version = active.champion.version
    if as_json:
        print(json.dumps({"version": version, "file": str(file), "sha256": checksum}))
    else:
        print(f"version {version} is in {file}, its checksum in {checksum_file(file).name}: {checksum}")


def _next_options() -> Options:
    from roofcast.serving.predict.next_measurements import NextMeasurementsRequest

    return request_options(NextMeasurementsRequest)


@with_options(_next_options)
def measure_next(options: dict[str, Any], *, server: Server = "", as_json: AsJson = False) -> None:
    """Rank the measurements that would narrow the intervals most, each given the ones before it."""
    from roofcast.serving.predict import next_measurements

    names = options.pop("models", [])
    if server:
        models: list[Any] = [read_served_model(name, server) for name in names]
        request = read_request(next_measurements.NextMeasurementsRequest, options, models=models)
        fields: Any = request.model_dump(exclude_unset=True)
        with ask(server) as client:
            response: dict[str, Any] = dict(client.measure_next(**fields))
    else:
        service = open_service()
        models = [read_model(name, service.catalog) for name in names]
        request = read_request(next_measurements.NextMeasurementsRequest, options, models=models)
        with spinner("ranking"):
            active = load_predictor(service).active_model
            response = next_measurements.measure_next(request, service.catalog, active).model_dump()
    n_compared, n_setting = response["n_compared"], response["n_setting"]
    if n_compared < n_setting:
        note(f"{n_compared} of {n_setting} settings are compared, spread evenly; name a model or accelerator for all")
    title = (
        "measure next; relative decrease of the intervals' width in logarithms, mean over the questions, by metric"
    )
    show(response["rows"], as_json=as_json, title=title)


def scoreboard(
    protocol: Annotated[str, typer.Option(help="Protocols, separated by commas.")] = "P1,P2",
    json_file: Annotated[Path | None, typer.Option("--json", help="File to write the figures to.")] = None,
    dump: Annotated[Path | None, typer.Option(help="Folder to write the rows of each protocol to.")] = None,
    docs: Annotated[Path | None, typer.Option(help="Folder to write SCOREBOARD.md, its tables and plots to.")] = None,
) -> None:
    """Evaluate roofcast and its peers by the protocols, in a checkout; `/v1/scoreboard` shows the figures."""
    from roofcast.data.home import writable_home
    from roofcast.serving.app_state.published_figures import ship_figures, store_figures
    from roofcast.serving.app_state.settings import load_settings

    judge = _load_judge()
    names = [name.strip() for name in protocol.split(",")]
    home = writable_home(load_settings().home)
    for folder in filter(None, (json_file and json_file.parent, dump, docs)):
        with writing(folder, "out"):
            folder.mkdir(parents=True, exist_ok=True)
    with count_steps("scoreboard") as progress:
        figures = judge.evaluate(names, progress, day=today().isoformat(), json_file=json_file, dump=dump, docs=docs)
    if docs:
        ship_figures(docs, figures, today())
    store_figures(home, figures, today())
    for name, protocol_figures in figures.items():
        show(judge.figure_rows(name, protocol_figures), as_json=False, title=f"\n{name}")


def _load_judge() -> ModuleType:
    try:
        return importlib.import_module("judge.command")
    except ModuleNotFoundError as error:
        raise NotReadyError(
            "the protocols are not part of the package; run `roofcast scoreboard` in a checkout of the repository, "
            "or read the published figures under `/v1/scoreboard`"
        ) from error


retrainings = typer.Typer(help="List the retrainings of the service, cancel one, show when it retrains by itself.")


@retrainings.callback(invoke_without_command=True)
def list_retrainings(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(help="Maximum number of retrainings.", min=1, max=1000)] = 20,
    as_json: AsJson = False,
) -> None:
    """List the retrainings that the service was asked for, the latest first, with their stages and results."""
    if not context.invoked_subcommand:
        records = [_row(one) for one in open_service().store.retrainings.load(limit=limit)]
        show(records, as_json=as_json)
        if not records:
            step("no retraining was asked for; `roofcast retrain` retrains at once")


@retrainings.command()
def cancel(id_: Annotated[str, typer.Argument(metavar="ID", help="A retraining.")], as_json: AsJson = False) -> None:
    """Cancel a retraining: one that waits does not start, one that runs stops after the folds that it fits."""
    from roofcast.serving.app_state.retraining_stages import REGISTRATION

    cancelled = open_service().store.retrainings.cancel(id_, COMMAND_LINE, REGISTRATION)
    show([_row(cancelled)], as_json=as_json)


@retrainings.command()
def schedule(server: Server = "", as_json: AsJson = False) -> None:
    """Show ROOFCAST_RETRAIN_AT: when the service retrains if measurements were accepted or withdrawn, in UTC."""
    if server:
        with ask(server) as client:
            row = dict(client.retraining_schedule())
    else:
        import datetime as dt

        from roofcast.serving.app_state.retraining_schedule import next_retraining_at
        from roofcast.serving.app_state.settings import load_settings

        expression = load_settings().retrain_at
        next_at = next_retraining_at(expression, dt.datetime.now(dt.UTC))
        row = {"retrain_at": expression, "next_at": next_at.isoformat() if next_at else None}
    show([row], as_json=as_json)


def _row(record: Retraining) -> dict[str, Any]:
    report = record.report or {}
    counts = ("stage", "n_step_done", "n_step", "n_interruption")
    moments = ("requested_at", "started_at", "finished_at")
    shown = asdict(record)
    return (
        {name: shown[name] for name in ("id", "target", "state", *counts)}
        | {name: shown[name].isoformat(timespec="seconds") if shown[name] else "" for name in moments}
        | {"version": report.get("version", ""), "reason": report.get("reason", "") or record.error}
    )
