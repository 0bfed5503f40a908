"""The command that measures a served model over a plan, and imports the results."""

from __future__ import annotations

import dataclasses
import json
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.serving.cli.arguments.options import Option, require_one, with_options
from roofcast.serving.cli.commands.drift_command import show_drift
from roofcast.serving.cli.console import count_steps, err, note, show, spinner, step, warn
from roofcast.serving.cli.context import AsJson, ModelConfigs, load_predictor, open_service
from roofcast.serving.cli.files import parse_configs, read_table

if TYPE_CHECKING:
    import pandas as pd

    from roofcast.data.catalog import Catalog
    from roofcast.serving.composition import Service
    from roofcast.serving.measure.plan import Choice, PlannedRun
    from roofcast.serving.measure.plan_runner import PlanResult, PlanRunner, PlanTotals
    from roofcast.training.drift.drift_report import DriftReport

EXIT_INTERRUPTED: Final = 130

PLAN_OPTIONS: Final = {
    "plan": Option(
        "CSV of runs: n_input_token, n_output_token, concurrency or request_rate, and n_request, which may be blank.",
        Path | None,
        None,
        "FILE",
    ),
    "n_input_token": Option("Input tokens, such as 128,1024.", str, "", "LIST", names=("--n-input-token", "--isl")),
    "n_output_token": Option("Output tokens, such as 128.", str, "", "LIST", names=("--n-output-token", "--osl")),
    "concurrency": Option("Requests in flight, such as 1,8,32.", str, "", "LIST"),
    "request_rate": Option("Requests per second, as arrivals of a Poisson process.", str, "", "LIST",
                           names=("--request-rate", "--rate")),
    "n_request": Option("Requests of a run; by default 5 a stream or those of 60 s, and 20 at least.", str, "", "N"),
}  # fmt: skip
"""Options that state the plan: a file, or lists of which all combinations are run."""

ENDPOINT_OPTIONS: Final = {
    "target": Option(
        "OpenAI-compatible endpoint, without /v1; its API key is that of ROOFCAST_ENDPOINT_KEY, or its user:password "
        "that of ROOFCAST_ENDPOINT_LOGIN.",
        metavar="URL",
    ),
    "served_model": Option("Name of the model at the endpoint, if it serves several.", str, "", "NAME"),
    "tokenizer": Option(
        "Hugging Face name or folder of the tokenizer; the name of the model by default.", str, "", "NAME"
    ),
    "requests": Option(
        "completions, or chat, which adds the tokens of the chat template.", str, "completions", show_default=True
    ),
    "max_s": Option("Most seconds of a run.", float, 300.0, show_default=True),
    "guidellm": Option("The guidellm command; that of PATH by default.", str, "", "PATH"),
}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the results go: a campaign of the store, unless it is None, and a stack profile, unless it is empty."""

    campaign: str | None
    stack: str
    model_config: list[str]
    given: list[str]


@with_options(lambda: ENDPOINT_OPTIONS | PLAN_OPTIONS)
def measure(
    options: Mapping[str, Any],
    *,
    given: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="COLUMN=VALUE",
            help="What is measured: model, accelerator, n_accelerator, and what else is known, such as engine, "
            "engine_version and weight_precision.",
        ),
    ],
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Measure only so many runs: those that narrow the predictions of the plan most."),
    ] = None,
    stack: Annotated[
        str, typer.Option(metavar="NAME", help="Stack profile to add the runs to; --budget counts those it has.")
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder of reports; with the same one an interrupted plan goes on.")] = (
        Path("out/measure")
    ),
    campaign: Annotated[str, typer.Option(help="Name of the campaign in the store.")] = "guidellm",
    model_config: ModelConfigs = None,
    import_: Annotated[bool, typer.Option("--import/--no-import", help="Import the reports into the store.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands and totals of the runs, and run none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a served model with GuideLLM over a plan of request lengths and loads, and import the results.

    Runs that the folder has a report of are not repeated. GuideLLM is installed apart: pip install guidellm.
    """
    from roofcast.data.importers.overrides import check_overrides, parse_overrides
    from roofcast.serving.app_state.catalog.live_catalog import with_configs
    from roofcast.serving.measure.plan import Choice, planned_inputs, save_setup
    from roofcast.serving.stacks.profiles import check_name

    values = parse_overrides(given)
    check_overrides(values)
    if stack:
        check_name(stack)
    out = out.absolute()
    plan = _read_plan(options)
    choice = Choice(plan, budget, stack) if budget is not None and budget < len(plan) else None
    service = open_service()
    catalog, _ = with_configs(service.catalog, parse_configs(model_config or []))
    inputs = planned_inputs(plan, values, catalog)
    runs = plan if choice is None else _choose_runs(plan, inputs, service, catalog, choice, out)
    runner, setup, given = _open_runner(options, values, given, out, may_assume=dry_run)
    left = [run for run in runs if not runner.is_measured(run)]
    totals = _count(left, values, service, catalog, runner.max_s)
    if dry_run:
        _print_commands(runner, runs, left, totals, as_json=as_json)
        return
    note(str(totals))
    save_setup(out, setup)
    if choice is not None:
        choice.save(out, runs)
    result = _measure(runner, runs)
    to = Destination(campaign if import_ else None, stack, model_config or [], given)
    _finish(result, runs, runner.folder, to, as_json=as_json)


def _read_plan(options: Mapping[str, Any]) -> list[PlannedRun]:
    from roofcast.serving.measure.plan import grid, parse_plan

    if path := options.get("plan"):
        require_one({name: options.get(name) for name in PLAN_OPTIONS})
        table = read_table(path)
        return parse_plan(table.records(), path.name, table.lines)
    pairs = ("n_input_token", "n_output_token"), ("concurrency", "request_rate")
    lengths, loads = ({name: options.get(name, "") for name in pair} for pair in pairs)
    return grid(lengths, loads, options.get("n_request", ""))


def _choose_runs(
    plan: Sequence[PlannedRun],
    inputs: pd.DataFrame,
    service: Service,
    catalog: Catalog,
    choice: Choice,
    out: Path,
) -> Sequence[PlannedRun]:
    from roofcast.serving.cli.commands.stack_commands import OWNER
    from roofcast.serving.measure.plan import choose_runs

    chosen = choice.load(out)
    if chosen is not None:
        note(f"the {len(chosen)} runs that an earlier call chose; a --budget or --out of its own chooses again")
        return chosen
    with spinner("choosing"):
        active = load_predictor(service).active_model
        is_known = choice.stack in {one.name for one in service.store.stacks.summaries(OWNER)}
        points = service.stacks.load_profile(catalog, active, OWNER, choice.stack).central if is_known else None
        return choose_runs(plan, inputs, catalog, active.bundle.predictor, points=points, n=choice.budget)


def _count(
    runs: Sequence[PlannedRun], values: Mapping[str, str], service: Service, catalog: Catalog, max_s: float
) -> PlanTotals:
    from roofcast.data.errors import RoofcastError
    from roofcast.serving.measure.plan import planned_inputs, predict_e2e
    from roofcast.serving.measure.plan_runner import plan_totals

    e2e_s: dict[str, float] = {}
    if runs:
        try:
            predictor = load_predictor(service).active_model.bundle.predictor
            e2e_s = predict_e2e(runs, planned_inputs(runs, values, catalog), catalog, predictor)
        except RoofcastError as error:
            note(f"the time is not predicted: {error}")
    return plan_totals(runs, max_s, e2e_s)


def _print_commands(
    runner: PlanRunner,
    runs: Sequence[PlannedRun],
    left: Sequence[PlannedRun],
    totals: PlanTotals,
    *,
    as_json: bool,
) -> None:
    commands = [shlex.join(runner.next_command(run)) for run in left]
    if as_json:
        print(json.dumps({**dataclasses.asdict(totals), "commands": commands}))
        return
    for run in runs:
        if run not in left:
            note(f"{run.name}: measured before")
    for command in commands:
        print(command)
    note(str(totals))
    if runner.environment:
        note(f"GuideLLM reads key or login of the endpoint from {', '.join(runner.environment)}")


def _open_runner(
    options: Mapping[str, Any], values: Mapping[str, str], given: list[str], out: Path, *, may_assume: bool
) -> tuple[PlanRunner, dict[str, str], list[str]]:
    from roofcast.data.errors import NotReadyError
    from roofcast.data.importers.overrides import parse_overrides
    from roofcast.serving.measure import guidellm
    from roofcast.serving.measure.plan import check_setup
    from roofcast.serving.measure.plan_runner import PlanRunner

    key, login, max_s = guidellm.find_key(), guidellm.find_login(), options["max_s"]
    named = options.get("served_model", "")
    executable = _find_guidellm(options.get("guidellm", ""), may_assume=may_assume)
    try:
        served, is_assumed = guidellm.find_model(options.get("target", ""), key, login, named), False
    except NotReadyError as error:
        if not may_assume:
            raise
        served, is_assumed = named or values["model"], True
        note(f"the name of the served model is assumed to be {served}: {error}")
    tokenizer = options.get("tokenizer", values["model"])
    endpoint = guidellm.Endpoint(options.get("target", ""), served, tokenizer, options["requests"], bool(login))
    setup = {**values, **endpoint.setup, "max_s": f"{max_s:g}"}
    if not is_assumed:
        check_setup(out, setup)
    given = [f"model:{served}={values['model']}", *given]
    runner = PlanRunner(
        out,
        parse_overrides(given),
        lambda run, report, seed: guidellm.run_command(executable, endpoint, run, report, max_s=max_s, seed=seed),
        max_s,
        guidellm.secret_environment(key, options["target"], login),
        login=login,
    )
    return runner, setup, given


def _find_guidellm(command: str, *, may_assume: bool) -> str:
    from roofcast.data.errors import InputError
    from roofcast.serving.measure.guidellm import find_guidellm

    try:
        return find_guidellm(command)
    except InputError as error:
        if not may_assume:
            raise
        note(str(error))
        return command or "guidellm"


def _measure(runner: PlanRunner, runs: Sequence[PlannedRun]) -> PlanResult:
    with count_steps("measuring") as update:
        done = 0

        def progress(run: PlannedRun, outcome: str) -> None:
            nonlocal done
            done += 1
            update(run.name, done, len(runs))
            if outcome.startswith("failed") or not err.is_terminal:
                step(f"{done} of {len(runs)} {run.name}: {outcome}")

        update(runs[0].name, 0, len(runs))
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # GuideLLM ends too
        try:
            return runner.measure(runs, progress)
        except KeyboardInterrupt:
            note(f"interrupted after {done} of {len(runs)} runs; the same command goes on and imports")
            raise typer.Exit(EXIT_INTERRUPTED) from None


def _finish(result: PlanResult, runs: Sequence[PlannedRun], folder: Path, to: Destination, *, as_json: bool) -> None:
    from roofcast.serving.cli.commands.measurement_commands import import_files
    from roofcast.serving.cli.commands.stack_commands import add_files

    summary: dict[str, Any] = {"n_planned": len(runs), "n_measured": result.n_measured}
    summary |= {"n_skipped": result.n_skipped, "n_failed": len(result.failures), "folder": str(folder)}
    imported: dict[str, Any] | None = None
    added: dict[str, Any] | None = None
    report: DriftReport | None = None
    if result.files and to.campaign is not None:
        imported, report = import_files("guidellm", result.files, to.campaign, to.model_config, to.given)
    if result.files and to.stack:
        added = add_files(to.stack, result.files, to.model_config, to.given)
    if as_json:
        drift = report and report.model_dump()
        parts = {"failures": dict(result.failures), "import": imported, "drift": drift, "stack": added}
        print(json.dumps({**summary, **parts}, default=str, allow_nan=False))
    else:
        for title, row in (("", summary), ("\nimport", imported), ("\nstack profile", added)):
            show([row] if row else [], as_json=False, title=title if row else "")
    if report and not as_json:
        show_drift(report)
    if result.failures:
        warn(f"{len(result.failures)} of {len(runs)} runs failed; the same command tries them again")
        raise typer.Exit(1)
