"""The command line: everything the service does, without a server."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn

from roofcast.data.campaigns import CAMPAIGNS, load_campaign_info
from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.formats import FORMATS, read_measurements
from roofcast.data.huggingface import parse_config
from roofcast.serving.answering import answer, require_answer
from roofcast.serving.console import counting, reporting, show, track
from roofcast.serving.demand import Demand
from roofcast.serving.jobs import worker_process
from roofcast.serving.logs import configure_logs
from roofcast.serving.recommender import recommend as recommend_hardware
from roofcast.serving.routes.recommendations import constraints_of, response_of
from roofcast.serving.schemas import ConstraintsRequest
from roofcast.serving.settings import Settings
from roofcast.serving.slo import parse_limit
from roofcast.serving.workbench import Workbench
from roofcast.training.protocols.held_out import llm_pilot_predictor
from roofcast.training.scoreboard import run_scoreboard

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, help=__doc__)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main() -> None:
    """Run the command line."""
    configure_logs()
    with reporting():
        app()


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Server processes.")] = 1,
) -> None:
    """Serve predictions and recommendations over HTTP; trains first if nothing is promoted."""
    bench = Workbench(Settings())
    if bench.registry.champion() is None:
        typer.echo("no predictor is promoted yet: training one on the shipped measurements", err=True)
        report = bench.retrain(progress=track)
        typer.echo(f"version {report.version} is trained and in service", err=True)
    bench.store.close()
    with worker_process():
        uvicorn.run("roofcast.serving.app:create_app", factory=True, host=host, port=port, workers=workers)


@app.command("import")
def import_(
    format_: Annotated[str, typer.Argument(metavar="FORMAT", help="A name of `roofcast formats`, or auto.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files or folders.")],
    campaign: Annotated[str | None, typer.Option(help="Name to keep the rows under.")] = None,
    model_config: Annotated[
        list[str] | None, typer.Option(help="NAME=PATH of the config.json of a model that no catalogue knows.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import benchmark files into the store: all rows, or none."""
    configs = dict(_named_config(text) for text in model_config or ())
    table = read_measurements(None if format_ == "auto" else format_, paths, campaign, _watch_files)
    n_new, n_known = Workbench(Settings()).add_measurements(table, configs)
    show([{"n_row": len(table), "n_new": n_new, "n_known": n_known}], as_json=as_json)


def _watch_files(items: Any) -> Any:
    files = list(items)
    return track(files, len(files), "reading")


def _named_config(text: str) -> tuple[str, dict[str, Any]]:
    name, separator, path = text.partition("=")
    if not separator or not name:
        raise InputError("model-config", f"must be NAME=PATH, got {text!r}")
    return name, _read_config(Path(path))


def _read_config(path: Path) -> dict[str, Any]:
    file = path / "config.json" if path.is_dir() else path
    try:
        return dict(parse_config(file.read_bytes(), file.name))
    except OSError as error:
        raise InputError("model", f"{file} cannot be read: {error.strerror}") from error


@app.command()
def formats(as_json: AsJson = False) -> None:
    """List the benchmark formats that `import` reads."""
    rows = [{"name": f.name, "title": f.title, "delivers": f.delivers} for f in FORMATS.values()]
    show(rows, as_json=as_json)


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the models of the catalogue and those registered here."""
    specs = Workbench(Settings()).catalog.models.values()
    keys = {"id", "lineage", "n_layer", "hidden_size", "n_param", "n_param_active", "attention", "weight_precision"}
    show([s.model_dump(mode="json", include=None if as_json else keys) for s in specs], as_json=as_json)


@app.command()
def accelerators(as_json: AsJson = False) -> None:
    """List the accelerators of the catalogue."""
    keys = {"id", "memory_byte", "bandwidth_byte_per_s", "link", "link_domain_size"}
    specs = load_catalog().accelerators.values()
    show([s.model_dump(mode="json", include=None if as_json else keys) for s in specs], as_json=as_json)


@app.command()
def offers(as_json: AsJson = False) -> None:
    """List the dated prices of the catalogue."""
    keys = {
        "provider",
        "region",
        "instance_type",
        "accelerator",
        "n_accelerator",
        "pricing",
        "price_usd_per_h",
        "as_of",
    }
    rows = load_catalog().offers
    show([o.model_dump(mode="json", include=None if as_json else keys) for o in rows], as_json=as_json)


@app.command()
def campaigns(as_json: AsJson = False) -> None:
    """List the measurement campaigns: those that come with the package, and your own."""
    shipped = [load_campaign_info(name) for name in CAMPAIGNS]
    rows = [{"name": c.name, "n_row": c.n_row, "licence": c.licence, "source": c.source} for c in shipped]
    own = Workbench(Settings()).store.campaigns()
    rows += [{"name": name, "n_row": n, "licence": "", "source": "imported here"} for name, n in own.items()]
    show(rows, as_json=as_json)


@app.command()
def predict(
    rows: Annotated[Path, typer.Option(help="CSV of questions.")],
    out: Annotated[Path, typer.Option(help="CSV to write.")],
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
) -> None:
    """Answer a CSV of questions; a bad row gets a status, the others their answers."""
    questions = _read_questions(rows)
    bench = _bench_in_service()
    answers = answer(questions, bench.in_service.bundle, bench.catalog, level)
    answers.to_csv(out, index=False)
    require_answer(answers)


def _read_questions(path: Path) -> Any:
    import pandas as pd  # noqa: PLC0415  (keeps `--help` quick)

    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except (OSError, ValueError, csv.Error) as error:
        raise SchemaError("", f"cannot be read as CSV: {str(error).splitlines()[0]}", path.name) from error


def _bench_in_service() -> Workbench:
    bench = Workbench(Settings())
    bench.refresh()
    return bench


@app.command()
def recommend(
    model: Annotated[str, typer.Option(help="Catalogue name, or path of a config.json.")],
    isl: Annotated[float, typer.Option(min=1, help="Mean input tokens.")],
    osl: Annotated[float, typer.Option(min=1, help="Mean output tokens.")],
    slo: Annotated[list[str], typer.Option(help="A limit such as 'ttft:p95<=500ms'; may be repeated.")],
    concurrency: Annotated[float | None, typer.Option(min=1, help="Requests in flight at the peak.")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests per second at the peak.")] = None,
    users: Annotated[float | None, typer.Option(min=1, help="Users who wait for answers at the peak.")] = None,
    provider: Annotated[list[str] | None, typer.Option(help="Admit this provider; may be repeated.")] = None,
    accelerator: Annotated[list[str] | None, typer.Option(help="Admit this accelerator; may be repeated.")] = None,
    budget: Annotated[float | None, typer.Option(help="Most USD per hour.")] = None,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.8,
    top: Annotated[int, typer.Option(min=1, max=200, help="Most entries.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Rank hardware by cost under limits on latency."""
    if [concurrency, rate, users].count(None) != 2:
        raise InputError("concurrency", "give exactly one of --concurrency, --rate and --users")
    bench = _bench_in_service()
    path = Path(model)
    spec = bench.model(path.stem, _read_config(path)) if path.exists() else bench.model(model)
    demand = Demand(isl, osl, users or concurrency, rate, tuple(parse_limit(text) for text in slo))
    bounds = ConstraintsRequest(providers=provider or [], accelerators=accelerator or [], max_usd_per_h=budget)
    catalog = bench.catalog
    result = recommend_hardware(
        bench.in_service.bundle, spec, catalog, demand, constraints_of(bounds, catalog), level=level, n_entry=top
    )
    response = response_of(result, spec, level, bench.in_service.champion.version, n_rejection=500)
    if as_json:
        print(response.model_dump_json())
        return
    _show_recommendation(response.model_dump())


def _show_recommendation(response: dict[str, Any]) -> None:
    entries = [
        {
            "USD/h": e["cost_usd_per_h"],
            "USD/Mtoken out": e["cost_usd_per_million_output_token"],
            "instance": f"{e['n_instance']} x {e['provider']} {e['instance_type']} {e['region']}",
            "replica": f"{e['n_replica']} x {e['tensor_parallel']} {e['accelerator']}",
            "users": f"{e['load_per_replica']:g} of {e['users_per_replica']:g}",
            **{
                f"{m['metric']}:{m['statistic']}": f"{m['value']:.3g} ({m['low']:.2g}-{m['high']:.2g})"
                for m in e["predictions"]
                if m["limit"] is not None
            },
            "outside": "yes" if e["outside"] else "",
        }
        for e in response["entries"]
    ]
    show(entries, as_json=False, title=f"{response['model']}: least cost first")
    rejections = [
        {k: r[k] for k in ("accelerator", "tensor_parallel", "reason", "detail")} for r in response["rejections"]
    ]
    show(
        rejections,
        as_json=False,
        title=f"\n{response['n_rejected']} of {response['n_candidate']} candidates rejected",
    )


@app.command()
def retrain(as_json: AsJson = False) -> None:
    """Fit a candidate on everything known; it goes into service unless the champion is better."""
    report = Workbench(Settings()).retrain(progress=track)
    if as_json:
        print(report.model_dump_json())
        return
    show([report.model_dump(exclude={"scores"})], as_json=False)
    show([{"metric": m, **scores} for m, scores in report.scores.items()], as_json=False, title="\nheld-out lineages")


@app.command()
def promote(version: Annotated[str, typer.Argument(help="A version in the registry.")]) -> None:
    """Put a version into service."""
    typer.echo(f"version {Workbench(Settings()).registry.promote(version).version} is in service")


@app.command()
def rollback() -> None:
    """Put the version before the champion back into service."""
    typer.echo(f"version {Workbench(Settings()).registry.rollback().version} is in service")


@app.command()
def scoreboard(
    protocol: Annotated[str, typer.Option(help="Protocols, separated by commas.")] = "P1,P2",
    json_file: Annotated[Path | None, typer.Option("--json", help="File to write the figures to.")] = None,
    dump: Annotated[Path | None, typer.Option(help="Folder to write every row behind the figures to.")] = None,
) -> None:
    """Judge roofcast and its peers by the protocols."""
    names = [name.strip() for name in protocol.split(",")]
    with counting("scoreboard") as progress:
        board = run_scoreboard(names, llm_pilot_predictor(), progress=progress)
    if json_file:
        json_file.write_text(board.to_json() + "\n", encoding="utf-8")
    if dump:
        board.dump(dump)
    for name, figures in json.loads(board.to_json()).items():
        show([{"method": method, **values} for method, values in figures.items()], as_json=False, title=f"\n{name}")
