"""The commands on training and fine-tuning: predict jobs, recommend hardware and plan."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from roofcast.data.errors import InputError, choice_error
from roofcast.data.measurements.target import TRAINING
from roofcast.serving.cli.arguments.options import Option, column_options, request_options, with_model, with_options
from roofcast.serving.cli.arguments.request_check import (
    Problems,
    check_level,
    check_row,
    check_rows_options,
    check_search,
)
from roofcast.serving.cli.console import show, spinner, warn
from roofcast.serving.cli.context import (
    AsJson,
    Claim,
    DryRun,
    Level,
    OutFile,
    Server,
    SetColumns,
    load_predictor,
    open_service,
    print_option,
    row_error,
    today,
)
from roofcast.serving.cli.files import EXAMPLE_JOBS, read_bytes, read_model, read_row_models, read_table, write_table
from roofcast.serving.cli.job_text import job_text, recommendation_text
from roofcast.serving.cli.remote import ask, model_and_configs, served_fields
from roofcast.serving.defaults import DEFAULT_LEVEL

if TYPE_CHECKING:
    from roofcast.serving.csv_table import CsvTable
    from roofcast.serving.jobs.job_messages import JobRecommendationRequest

JobReferenceFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="CSV of own runs that condition the predictions: columns as of `training predict --rows`, and "
        "throughput_token_per_s (of all accelerators together), step_time_s or memory_byte_per_accelerator.",
    ),
]

Example = Annotated[bool, print_option("--example", EXAMPLE_JOBS, "Print a file for --rows, and exit.")]

N_MISS_JSON: Final = 500

training = typer.Typer(no_args_is_help=True, help="Training and fine-tuning: time, memory, hardware and plan.")


def _job_options() -> dict[str, Option]:
    from roofcast.serving.jobs.rows import JOB_COLUMNS

    return column_options(JOB_COLUMNS)


def _check_job(job: Mapping[str, Any], server: str) -> None:
    from roofcast.serving.jobs.rows import parse_jobs

    if server:
        return
    catalog = open_service().job_catalog
    check_row(job, catalog, lambda row: parse_jobs([row], catalog)[1][0])


@training.command()
@with_options(_job_options)
def predict(
    job: dict[str, Any],
    *,
    context: typer.Context,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="CSV of jobs, in place of the options of one job; models are those of --model."
        ),
    ] = None,
    out: OutFile = None,
    reference: JobReferenceFile = None,
    level: Level = DEFAULT_LEVEL,
    example: Example = False,  # noqa: ARG001  (its callback does it all)
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Predict step time, throughput, MFU and peak memory of a training job, or of each row of a CSV.

    Blank settings of the plan are those of the fastest plan that fits. With --rows, JSON is the number of
    rows by status.
    """
    problems: Problems = context.obj
    table, references = None, []
    with problems:
        table = read_table(rows) if rows else None
    with problems:
        check_rows_options(job, rows, out)
    with problems:
        if not rows:
            _check_job(job, server)
    with problems:
        references = read_table(reference).records() if reference else []
        if references and problems.errors and not server:
            _check_references(references)
    with problems:
        check_level(level)
    problems.raise_all()
    asked = _Asked(references, level, server)
    if table and rows and out:
        _predict_file(table, rows.name, out, asked, as_json=as_json)
        return
    (answer,) = _predict_one(job, asked)
    if as_json:
        print(json.dumps(answer))
    elif answer["status"] == "ok":
        print(job_text(answer, level), end="")
    if answer["status"] != "ok":
        raise row_error(answer["reason"])


def _check_references(rows: list[dict[str, Any]]) -> None:
    from roofcast.serving.jobs.job_service import condition_on

    service = load_predictor(open_service(), TRAINING)
    condition_on(service.job_model.bundle.predictor, rows, service.job_catalog)


class _Asked(NamedTuple):
    references: list[dict[str, Any]]
    level: float
    server: str


def _predict_one(job: dict[str, Any], asked: _Asked) -> list[dict[str, Any]]:
    for name in ("model", "accelerator"):
        if name not in job:
            raise InputError(name, "must be given")
    if asked.server:
        name, models = model_and_configs(job["model"], asked.server)
    else:
        choice = read_model(job["model"], open_service().job_catalog)
        name, models = (choice, []) if isinstance(choice, str) else (choice["name"], [choice])
    return _answer([job | {"model": name}], models, asked)


def _answer(rows: list[dict[str, Any]], models: list[dict[str, Any]], asked: _Asked) -> list[dict[str, Any]]:
    level, references = asked.level, asked.references
    if asked.server:
        from roofcast.serving.jobs.job_messages import MAX_ROW

        given: Any = {"models": models, "references": references, "level": level}
        with ask(asked.server) as client:
            parts = [rows[start : start + MAX_ROW] for start in range(0, len(rows), MAX_ROW)]
            return [dict(row) for part in parts for row in client.predict_training(rows=part, **given)["rows"]]
    from roofcast.serving.jobs.job_service import answer_rows

    with spinner("predicting"):
        configs = [(model["name"], model["config"]) for model in models]
        service = load_predictor(open_service(), TRAINING)
        return answer_rows(rows, configs, level, service.job_catalog, service.job_model, references=references)


def _predict_file(table: CsvTable, source: str, out: Path, asked: _Asked, *, as_json: bool) -> None:
    from roofcast.serving.jobs.job_predictions import ANSWER_COLUMNS

    named, models = read_row_models(table, source)
    jobs = named.records()
    if not jobs:
        raise InputError("rows", "there are none; give at least one")
    answers = _answer(jobs, models, asked)
    cells = [
        [*row, *(answer[name] for name in ANSWER_COLUMNS)] for row, answer in zip(table.rows, answers, strict=True)
    ]
    write_table([*table.header, *ANSWER_COLUMNS], cells, out)
    counts = dict(Counter(answer["status"] for answer in answers).most_common())
    print(json.dumps(counts, separators=(",", ":")) if as_json else ", ".join(f"{n} {s}" for s, n in counts.items()))
    if "ok" not in counts:
        raise InputError("rows", f"none has an answer; the first: {answers[0]['reason']}")


@training.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="CSV, or logs of torchtitan or Megatron.")],
    *,
    given: SetColumns = None,
    campaign: Annotated[str | None, typer.Option(help="Campaign of rows without one; own by default.")] = None,
    dry_run: DryRun = False,
    claim: Claim = False,
    compare: Annotated[bool, typer.Option(help="Compare the new rows with the predictor.")] = True,
    as_json: AsJson = False,
) -> None:
    """Import measured training jobs into the store: all rows of a file, or none. A log is one job."""
    from roofcast.data.importers.overrides import parse_overrides
    from roofcast.serving.app_state.imports.import_report import added_warnings
    from roofcast.serving.jobs.imports.run_import import compare_runs, import_runs, read_run_file

    values = parse_overrides(given or ())
    service = load_predictor(open_service(), TRAINING)
    summaries = []
    for file in files:
        table = read_run_file(read_bytes(file), file.name, values, service.job_catalog)
        added = import_runs(
            service.stores,
            service.catalogs,
            table.records(),
            source=file.name,
            lines=table.lines,
            campaign=campaign,
            dry_run=dry_run,
            claim_of_keys=claim,
        )
        errors = (
            compare_runs(service.store, service.job_catalog, lambda: service.job_model, added)
            if compare and not dry_run
            else None
        )
        for warning in added_warnings(added, "command"):
            warn(warning)
        summary = {"file": file.name, "n_row": len(table.rows), **asdict(added), "is_kept": not dry_run}
        summaries.append(summary | ({"errors": errors and errors.model_dump()} if as_json else {}))
        if errors and not as_json:
            show(
                [group.model_dump() for group in errors.groups],
                as_json=False,
                title=f"predicted by version {errors.predictor_version} against actual",
            )
    show(summaries, as_json=as_json)
    if not (as_json or dry_run):
        print("\nnext: `roofcast retrain --target training` learns them")


def _declare() -> type[JobRecommendationRequest]:
    from roofcast.serving.jobs.job_messages import JobRecommendationRequest

    return JobRecommendationRequest


def _check_launcher(name: str) -> None:
    from roofcast.serving.jobs.launch.launch import LAUNCHERS

    if name and name not in LAUNCHERS:
        raise choice_error("launch", name, LAUNCHERS)


@training.command()
@with_options(lambda: request_options(_declare()), reference="references")
def recommend(
    options: dict[str, Any],
    *,
    context: typer.Context,
    launch: Annotated[
        str,
        typer.Option(metavar="NAME", help="Start of the first entry that has it: torchrun, accelerate, megatron-lm."),
    ] = "",
    reference: JobReferenceFile = None,
    why: Annotated[
        bool, typer.Option("--why", help="Add memory by part, and accelerators without an entry.")
    ] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Rank hardware and plans of a training job by cost, among those that fit and meet deadline and budget."""
    problems: Problems = context.obj
    with problems:
        _check_launcher(launch)
    references = reference, read_table
    request = check_search(problems, _declare(), options, references, server, n_rejection=N_MISS_JSON)
    response = _recommend(request, server)
    for warning in response["warnings"]:
        warn(warning)
    if as_json:
        print(json.dumps(response))
        return
    print(recommendation_text(response, today(), why=why), end="")
    if launch:
        print(f"\n{_launch_command(response['entries'], launch)}", end="")


def _launch_command(entries: Sequence[Mapping[str, Any]], launch: str) -> str:
    for number, entry in enumerate(entries, 1):
        if launch in entry["launch"]:
            return f"# entry {number}\n{entry['launch'][launch]}"
    for entry in entries:
        if launch in entry["launch_problems"]:
            raise InputError("launch", f"{launch} {entry['launch_problems'][launch]}")
    none = "none: no entry has a launch command" if entries else "none, as there is no entry"
    known = ", ".join(sorted({name for entry in entries for name in entry["launch"]})) or none
    raise InputError("launch", f"entries run under {known}; got {launch!r}")


def _recommend(request: JobRecommendationRequest, server: str) -> dict[str, Any]:
    if server:
        fields = served_fields(request, server)
        with ask(server) as client:
            return dict(client.recommend_training(**fields))
    from roofcast.serving.jobs.job_service import answer_training_recommendation

    service = load_predictor(open_service(), TRAINING)
    request = with_model(request, read_model(str(request.model), service.job_catalog))
    with spinner("searching"):
        return answer_training_recommendation(request, service.job_catalog, service.job_model, today()).model_dump(
            mode="json"
        )
