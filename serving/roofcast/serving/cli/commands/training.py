"""The commands on training and fine-tuning: predict jobs, recommend hardware and plan."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.console import spinner
from roofcast.serving.cli.context import AsJson, Server, open_app_state
from roofcast.serving.cli.job_options import JOB_OPTIONS
from roofcast.serving.cli.options import with_options

training = typer.Typer(no_args_is_help=True, help="Training and fine-tuning: time, memory, hardware and plan.")


def _print_example(is_requested: bool) -> None:
    if is_requested:
        from roofcast.serving.cli.files import EXAMPLE_JOBS

        print(EXAMPLE_JOBS, end="")
        raise typer.Exit


@training.command()
@with_options(JOB_OPTIONS)
def predict(
    options: dict[str, Any],
    *,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV of jobs, in place of the options of one job.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="With --rows: CSV to write.")] = None,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.8,
    example: Annotated[  # noqa: ARG001  (its callback does it all)
        bool,
        typer.Option("--example", callback=_print_example, is_eager=True, help="Print a file for --rows, and exit."),
    ] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Predict step time, throughput, MFU and peak memory of a training job, or of each row of a CSV.

    Blank settings of the plan are those of the fastest plan that fits. With --rows, JSON is the number of
    rows by status.
    """
    from roofcast.serving.training_jobs.request import check_level

    check_level(level)
    job = {name: value for name, value in options.items() if value}
    if rows:
        if job:
            raise InputError(next(iter(job)), "cannot be combined with --rows; write it into the file")
        _predict_file(rows, out, level, server, as_json=as_json)
        return
    if out:
        raise InputError("out", "requires --rows")
    (answer,) = _predict_one(job, level, server)
    if as_json:
        print(json.dumps(answer))
    elif answer["status"] == "ok":
        from roofcast.serving.cli.training_text import job_text

        print(job_text(answer, level), end="")
    if answer["status"] != "ok":
        field, _, problem = answer["reason"].partition(": ")
        raise InputError(field, problem)


def _predict_one(job: dict[str, Any], level: float, server: str) -> list[dict[str, Any]]:
    """Return the answered row of a job, whose model may be a file."""
    from roofcast.serving.cli.files import read_model

    for name in ("model", "accelerator"):
        if name not in job:
            raise InputError(name, "must be given")
    choice = read_model(job["model"], None if server else open_app_state().catalog)
    models = [] if isinstance(choice, str) else [choice]
    name = choice if isinstance(choice, str) else choice["name"]
    return _answer([job | {"model": name}], models, level, server)


def _answer(
    rows: list[dict[str, Any]], models: list[dict[str, Any]], level: float, server: str
) -> list[dict[str, Any]]:
    """Return rows with their answers, of a service if one is named."""
    if server:
        from roofcast.serving.cli.remote import ask
        from roofcast.serving.training_jobs.request import MAX_ROW

        given: Any = models
        with ask(server) as client:
            parts = [rows[start : start + MAX_ROW] for start in range(0, len(rows), MAX_ROW)]
            return [
                dict(row)
                for part in parts
                for row in client.predict_training(rows=part, models=given, level=level)["rows"]
            ]
    from roofcast.serving.training_jobs.service import answer_rows

    with spinner("predicting"):
        configs = [(model["name"], model["config"]) for model in models]
        return answer_rows(rows, configs, level, open_app_state())


def _predict_file(rows: Path, out: Path | None, level: float, server: str, *, as_json: bool) -> None:
    from roofcast.serving.cli.files import read_table, write_table
    from roofcast.serving.training_jobs.prediction import ANSWER_COLUMNS

    if out is None:
        raise InputError("out", "must be given with --rows")
    if not out.parent.is_dir():
        raise InputError("out", f"{out} cannot be written: no such folder")
    table = read_table(rows)
    jobs = table.records()
    if not jobs:
        raise InputError("rows", "there are none; give at least one")
    answers = _answer(jobs, [], level, server)
    cells = [[answer[name] for name in (*table.header, *ANSWER_COLUMNS)] for answer in answers]
    write_table([*table.header, *ANSWER_COLUMNS], cells, out)
    counts = dict(Counter(answer["status"] for answer in answers).most_common())
    print(json.dumps(counts, separators=(",", ":")) if as_json else ", ".join(f"{n} {s}" for s, n in counts.items()))
    if "ok" not in counts:
        raise InputError("rows", f"none has an answer; the first: {answers[0]['reason']}")
