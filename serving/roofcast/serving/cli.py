"""The command line: everything the service does, without a server."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs: `--help` takes a tenth of the time)

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli_catalog import accelerators, offers
from roofcast.serving.cli_explain import explain, whatif
from roofcast.serving.cli_measurements import campaigns, formats, import_, measurements
from roofcast.serving.console import counting, reporting, show, show_recommendation, track, warn
from roofcast.serving.logs import configure_logs
from roofcast.serving.opening import AsJson, open_workbench, today

if TYPE_CHECKING:
    from roofcast.serving.workbench import Workbench
    from roofcast.training.registry import Champion

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, help=__doc__)


def main() -> None:
    """Run the command line."""
    configure_logs()
    with reporting():
        app()


def _bench_in_service() -> Workbench:
    bench = open_workbench()
    bench.refresh()
    return bench


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes.")] = 1,
) -> None:
    """Serve predictions and recommendations over HTTP; trains first if nothing promoted can be used."""
    import uvicorn

    from roofcast.serving.jobs import worker_process

    bench = open_workbench()
    if not _has_predictor(bench):
        typer.echo("no predictor can be used yet: training one on the shipped measurements", err=True)
        report = bench.retrain(progress=track)
        typer.echo(f"version {report.version} is trained and in service", err=True)
    bench.store.close()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn stops, then raises it again: end the worker too
    with worker_process():
        uvicorn.run("roofcast.serving.app:create_app", factory=True, host=host, port=port, workers=workers)


def _has_predictor(bench: Workbench) -> bool:
    """Return whether a champion can be loaded; an upgrade that changed the columns leaves one that cannot."""
    try:
        return bench.refresh()
    except InputError as error:
        typer.echo(f"the champion cannot be used: {error}", err=True)
        return False


app.command("import")(import_)
app.command()(explain)
app.command()(whatif)
app.command()(formats)
app.command()(measurements)


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the models of the catalogue and those registered here."""
    keys = {"id", "lineage", "n_layer", "hidden_size", "n_param", "n_param_active", "attention", "weight_precision"}
    specs = open_workbench().catalog.models.values()
    show([s.model_dump(mode="json", include=None if as_json else keys) for s in specs], as_json=as_json)


app.command()(accelerators)
app.command()(offers)
app.command()(campaigns)


@app.command()
def predict(
    rows: Annotated[Path, typer.Option(help="CSV of questions, blank where unknown.")],
    out: Annotated[Path, typer.Option(help="CSV to write.")],
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    as_json: AsJson = False,
) -> None:
    """Answer a CSV of questions; a bad row gets a status, the others their answers. JSON is the rows by status."""
    from roofcast.serving.answering import answer, require_answer
    from roofcast.serving.files import read_questions, write_answers

    questions = read_questions(rows)
    bench = _bench_in_service()
    answers = answer(questions, bench.in_service.bundle, bench.catalog, level)
    write_answers(answers, out)
    counts = answers["status"].value_counts()
    print(counts.to_json() if as_json else ", ".join(f"{n} {status}" for status, n in counts.items()))
    require_answer(answers)


@app.command()
def recommend(
    model: Annotated[str, typer.Option(help="Catalogue name, path of a config.json, or owner/name on the hub.")],
    isl: Annotated[float, typer.Option(help="Mean input tokens.")],
    osl: Annotated[float, typer.Option(help="Mean output tokens.")],
    slo: Annotated[list[str], typer.Option(help="A limit such as 'ttft:p95<=500ms'; may be repeated.")],
    concurrency: Annotated[float | None, typer.Option(help="Requests in flight at the peak.")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests per second at the peak.")] = None,
    users: Annotated[float | None, typer.Option(help="Users who wait for answers at the peak.")] = None,
    provider: Annotated[list[str] | None, typer.Option(help="Admit this provider; may be repeated.")] = None,
    region: Annotated[list[str] | None, typer.Option(help="Admit this region; may be repeated.")] = None,
    vendor: Annotated[list[str] | None, typer.Option(help="Admit this maker's parts; may be repeated.")] = None,
    accelerator: Annotated[list[str] | None, typer.Option(help="Admit this accelerator; may be repeated.")] = None,
    precision: Annotated[str | None, typer.Option(help="Of the weights, such as fp8; the checkpoint's own.")] = None,
    pricing: Annotated[list[str] | None, typer.Option(help="Admit this kind of price; may be repeated.")] = None,
    budget: Annotated[float | None, typer.Option(help="Most USD per hour.")] = None,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.8,
    top: Annotated[int, typer.Option(help="Most entries.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Rank hardware by cost under limits on latency."""
    if [concurrency, rate, users].count(None) != 2:
        raise InputError("concurrency", "give exactly one of --concurrency, --rate and --users")
    bounds: dict[str, Any] = {"providers": provider, "regions": region, "pricing": pricing, "vendors": vendor}
    bounds |= {"accelerators": accelerator, "weight_precision": precision}
    fields = {
        "model": model,
        "workload": {
            "n_input_token": isl,
            "n_output_token": osl,
            "users": concurrency if users is None else users,
            "request_rate_per_s": rate,
        },
        "limits": slo,
        "constraints": {"max_usd_per_h": budget, **{name: given for name, given in bounds.items() if given}},
        "level": level,
        "n_entry": top,
        "n_rejection": 500,
    }
    response = _recommended(fields)
    for warning in response["warnings"]:
        warn(warning)
    if as_json:
        print(json.dumps(response))
        return
    show_recommendation(response)


def _recommended(fields: dict[str, Any]) -> dict[str, Any]:
    from pydantic import ValidationError

    from roofcast.data.specs import input_error
    from roofcast.serving.files import named_or_read
    from roofcast.serving.own_files import check_priced
    from roofcast.serving.recommending import answer_recommendation
    from roofcast.serving.schemas import RecommendationRequest

    bench = open_workbench()
    try:
        model = named_or_read(fields["model"], bench.catalog)
        request = RecommendationRequest.model_validate(fields | {"model": model})
        for warning in check_priced(request.constraints.accelerators, bench.catalog):
            warn(warning)
    except ValidationError as error:
        raise input_error(error) from error
    bench.refresh()
    return answer_recommendation(request, bench, bench.in_service, today()).model_dump(mode="json")


@app.command()
def retrain(as_json: AsJson = False) -> None:
    """Fit a candidate on everything known; it goes into service unless the champion is better."""
    report = open_workbench().retrain(progress=track)
    if as_json:
        print(report.model_dump_json())
        return
    show([report.model_dump(exclude={"scores"})], as_json=False)
    show([{"metric": m, **scores} for m, scores in report.scores.items()], as_json=False, title="\nheld-out lineages")


@app.command()
def promote(
    version: Annotated[str, typer.Argument(help="A version in the registry.")], as_json: AsJson = False
) -> None:
    """Put a version into service."""
    _show_champion(open_workbench().registry.promote(version), as_json=as_json)


@app.command()
def rollback(as_json: AsJson = False) -> None:
    """Put the version before the champion back into service."""
    _show_champion(open_workbench().registry.rollback(), as_json=as_json)


def _show_champion(champion: Champion, *, as_json: bool) -> None:
    typer.echo(json.dumps(asdict(champion)) if as_json else f"version {champion.version} is in service")


@app.command()
def scoreboard(
    protocol: Annotated[str, typer.Option(help="Protocols, separated by commas.")] = "P1,P2",
    json_file: Annotated[Path | None, typer.Option("--json", help="File to write the figures to.")] = None,
    dump: Annotated[Path | None, typer.Option(help="Folder to write every row behind the figures to.")] = None,
    docs: Annotated[Path | None, typer.Option(help="Folder to write SCOREBOARD.md and its plots to.")] = None,
) -> None:
    """Judge roofcast and its peers by the protocols."""
    from roofcast.serving.files import make_folder
    from roofcast.training.protocols.held_out import llm_pilot_predictor
    from roofcast.training.scoreboard import figure_rows, run_scoreboard
    from roofcast.training.scoreboard_page import write_page

    names = [name.strip() for name in protocol.split(",")]
    for folder in filter(None, (json_file and json_file.parent, dump, docs)):
        make_folder(folder)
    with counting("scoreboard") as progress:
        board = run_scoreboard(names, llm_pilot_predictor(), progress=progress)
    for name, figures in json.loads(board.to_json()).items():
        show(figure_rows(figures), as_json=False, title=f"\n{name}")
    if json_file:
        json_file.write_text(board.to_json() + "\n", encoding="utf-8")
    if dump:
        board.dump(dump)
    if docs:
        write_page(board, docs)


@app.command()
def reference() -> None:
    """Print the reference of settings, errors and columns, in Markdown."""
    from roofcast.serving.reference import reference as text

    print(text(), end="")
