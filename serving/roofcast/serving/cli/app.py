"""The command line: everything the service does, without a server."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs: `--help` takes a tenth of the time)

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofcast.serving.cli.catalog import accelerators, offers
from roofcast.serving.cli.console import counting, reporting, show, show_recommendation, track_retraining, warn
from roofcast.serving.cli.context import AsJson, ReferenceFile, open_app_state, open_store, today
from roofcast.serving.cli.explain import explain, whatif
from roofcast.serving.cli.keys import keys
from roofcast.serving.cli.measurements import campaigns, formats, import_, measurements
from roofcast.serving.cli.predictor import export, measure_next
from roofcast.serving.cli.service import serve
from roofcast.serving.logs import configure_logs

if TYPE_CHECKING:
    from roofcast.serving.app_state.app_state import AppState
    from roofcast.training.lifecycle.registry import Champion

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, help=__doc__)


def main() -> None:
    """Run the command line."""
    configure_logs()
    with reporting():
        app()


def _bench_in_service() -> AppState:
    bench = open_app_state()
    bench.refresh()
    return bench


app.command()(serve)
app.add_typer(keys, name="keys")
app.command("import")(import_)
app.command()(explain)
app.command()(whatif)
app.command()(export)
app.command("measure-next")(measure_next)
app.command()(formats)
app.command()(measurements)


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the models of the catalogue and those registered here."""
    keys = {"id", "lineage", "n_layer", "hidden_size", "n_param", "n_param_active", "attention", "weight_precision"}
    specs = open_store()[1].models.values()
    show([s.model_dump(mode="json", include=None if as_json else keys) for s in specs], as_json=as_json)


app.command()(accelerators)
app.command()(offers)
app.command()(campaigns)


def _print_example(is_wanted: bool) -> None:
    if is_wanted:
        from roofcast.serving.cli.files import EXAMPLE_QUESTIONS

        print(EXAMPLE_QUESTIONS, end="")
        raise typer.Exit


@app.command()
def predict(
    rows: Annotated[Path, typer.Option(help="CSV of questions, blank where unknown; --example prints one.")],
    out: Annotated[Path, typer.Option(help="CSV to write.")],
    reference: ReferenceFile = None,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    example: Annotated[  # noqa: ARG001  (its callback does it all)
        bool,
        typer.Option("--example", callback=_print_example, is_eager=True, help="Print a file for --rows, and end."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a CSV of questions; a bad row gets a status, the others their answers. JSON is the rows by status."""
    from roofcast.serving.cli.files import read_questions, read_reference_file, write_answers
    from roofcast.serving.predict.answers import PredictOptions, answer, require_answer

    questions = read_questions(rows)
    bench = _bench_in_service()
    bundle = bench.in_service.bundle
    known = read_reference_file(reference, bench.catalog, bundle.predictor) if reference else None
    answers = answer(questions, PredictOptions(bundle, bench.catalog, level, known))
    write_answers(answers, out)
    counts = answers["status"].value_counts()
    print(counts.to_json() if as_json else ", ".join(f"{n} {status}" for status, n in counts.items()))
    require_answer(answers)


@app.command()
def recommend(
    model: Annotated[str, typer.Option(help="Catalogue name, path of a config.json, or owner/name on the hub.")],
    slo: Annotated[list[str], typer.Option(help="A limit such as 'ttft:p95<=500ms'; may be repeated.")],
    isl: Annotated[float | None, typer.Option(help="Mean input tokens.")] = None,
    osl: Annotated[float | None, typer.Option(help="Mean output tokens.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="A typical workload, such as chat, for what is not given.")
    ] = None,
    concurrency: Annotated[float | None, typer.Option(help="Requests in flight at the peak.")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests per second at the peak.")] = None,
    users: Annotated[float | None, typer.Option(help="Users at the peak, who wait for answers and think.")] = None,
    think_time: Annotated[float | None, typer.Option(help="Seconds that a user thinks between two requests.")] = None,
    headroom: Annotated[float | None, typer.Option(help="Share of the capacity kept free at the peak.")] = None,
    provider: Annotated[list[str] | None, typer.Option(help="Admit this provider; may be repeated.")] = None,
    region: Annotated[list[str] | None, typer.Option(help="Admit this region; may be repeated.")] = None,
    vendor: Annotated[list[str] | None, typer.Option(help="Admit this maker's parts; may be repeated.")] = None,
    accelerator: Annotated[list[str] | None, typer.Option(help="Admit this accelerator; may be repeated.")] = None,
    engine: Annotated[list[str] | None, typer.Option(help="Admit this engine; may be repeated.")] = None,
    precision: Annotated[
        list[str] | None, typer.Option(help="Admit weights of this precision, not the checkpoint's own; repeatable.")
    ] = None,
    pricing: Annotated[list[str] | None, typer.Option(help="Admit this kind of price; may be repeated.")] = None,
    budget: Annotated[float | None, typer.Option(help="Most USD per hour.")] = None,
    nodes: Annotated[int, typer.Option(help="Most nodes that one replica may span.")] = 1,
    inventory: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ACCELERATOR=COUNT,PER_NODE,USD_PER_H",
            help="Nodes that are there already, the price of one accelerator, such as h100-sxm-80gb=16,8,1.2; "
            "may be repeated.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Least probability that all limits are met.")] = 0.8,
    reference: ReferenceFile = None,
    deployment: Annotated[
        str, typer.Option(help="Print how to run the first: vllm, sglang, trtllm, kubernetes, kserve.")
    ] = "",
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.8,
    top: Annotated[int, typer.Option(help="Most entries.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Rank hardware by cost among what meets the limits."""
    from roofcast.serving.cli.files import named_stocks, read_rows

    options = {
        "model": model, "slo": slo, "isl": isl, "osl": osl, "preset": preset, "concurrency": concurrency,
        "rate": rate, "users": users, "think_time": think_time, "headroom": headroom, "provider": provider,
        "region": region, "vendor": vendor, "accelerator": accelerator, "engine": engine, "precision": precision,
        "pricing": pricing, "budget": budget, "nodes": nodes, "inventory": named_stocks(inventory or []),
        "confidence": confidence, "reference": read_rows(reference) if reference else [],
        "deployment": deployment, "level": level, "top": top, "rejections": 500 if as_json else 0,
    }  # fmt: skip
    response = _recommended(options)
    for warning in response["warnings"]:
        warn(warning)
    if as_json:
        print(json.dumps(response))
        return
    show_recommendation(response)
    if response["entries"] and response["entries"][0]["deployment"]:
        typer.echo(f"\n{response['entries'][0]['deployment']}", nl=False)


def _recommended(options: dict[str, Any]) -> dict[str, Any]:
    from roofcast.serving.app_state.user_files import check_priced
    from roofcast.serving.cli.files import named_or_read
    from roofcast.serving.recommend.api.request import RecommendationRequest
    from roofcast.serving.recommend.api.service import answer_recommendation

    bench = open_app_state()
    options["model"] = named_or_read(options["model"], bench.catalog)
    request = RecommendationRequest.from_options(options)
    for warning in check_priced(request.constraints.accelerators, bench.catalog):
        warn(warning)
    bench.refresh()
    return answer_recommendation(request, bench, bench.in_service, today()).model_dump(mode="json")


@app.command()
def retrain(as_json: AsJson = False) -> None:
    """Fit a candidate on everything known; it goes into service unless the champion is better."""
    report = open_app_state().retrain(progress=track_retraining())
    if as_json:
        print(report.model_dump_json())
        return
    show([report.model_dump(exclude={"scores", "set_aside"})], as_json=False)
    aside = [{"rule": rule, "measurements": n} for rule, n in report.set_aside.items()]
    show(aside, as_json=False, title="\nset aside, not learnt from")
    show([{"metric": m, **scores} for m, scores in report.scores.items()], as_json=False, title="\nheld-out lineages")


@app.command()
def promote(
    version: Annotated[str, typer.Argument(help="A version in the registry.")], as_json: AsJson = False
) -> None:
    """Put a version into service."""
    from roofcast.serving.app_state import promotion

    _show_champion(promotion.promote(open_app_state(), version, promotion.COMMAND_LINE).champion, as_json=as_json)


@app.command()
def rollback(as_json: AsJson = False) -> None:
    """Put the version before the champion back into service, and asked again the one before that."""
    from roofcast.serving.app_state import promotion

    _show_champion(promotion.roll_back(open_app_state(), promotion.COMMAND_LINE).champion, as_json=as_json)


def _show_champion(champion: Champion, *, as_json: bool) -> None:
    typer.echo(json.dumps(asdict(champion)) if as_json else f"version {champion.version} is in service")


@app.command()
def scoreboard(
    protocol: Annotated[str, typer.Option(help="Protocols, separated by commas.")] = "P1,P2",
    json_file: Annotated[Path | None, typer.Option("--json", help="File to write the figures to.")] = None,
    dump: Annotated[Path | None, typer.Option(help="Folder to write every row behind the figures to.")] = None,
    docs: Annotated[Path | None, typer.Option(help="Folder to write SCOREBOARD.md and its plots to.")] = None,
) -> None:
    """Judge roofcast and its peers by the protocols; the service shows the figures under `/v1/scoreboard`."""
    from roofcast.serving.app_state.published_figures import keep_figures, open_figures, ship_figures
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.cli.files import make_folder
    from roofcast.training.evaluation.protocols.held_out import LlmPilotPredictor
    from roofcast.training.evaluation.scoreboard import figure_rows, run_scoreboard
    from roofcast.training.evaluation.scoreboard_page import write_page

    names = [name.strip() for name in protocol.split(",")]
    home = open_figures(load_settings().home)
    for folder in filter(None, (json_file and json_file.parent, dump, docs)):
        make_folder(folder)
    predictor = LlmPilotPredictor() if {"P1", "P2"} & set(names) else None
    with counting("scoreboard") as progress:
        board = run_scoreboard(
            names, predictor, progress=progress, rule_llm_pilot=predictor.rule if predictor else None
        )
    found = json.loads(board.to_json())
    for name, figures in found.items():
        show(figure_rows(name, figures), as_json=False, title=f"\n{name}")
    if json_file:
        json_file.write_text(board.to_json() + "\n", encoding="utf-8")
    if dump:
        board.dump(dump)
    if docs:
        write_page(board, docs)
        ship_figures(docs, found, today())
    keep_figures(home, found, today())


@app.command()
def reference() -> None:
    """Print the reference of settings, errors and columns, in Markdown."""
    from roofcast.serving.cli.reference import reference as text

    print(text(), end="")
