"""The command that predicts one question, or the rows of a CSV file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.arguments.options import question_options, with_options
from roofcast.serving.cli.arguments.question import Calibration, check_question, question_row, question_table
from roofcast.serving.cli.arguments.request_check import Problems, check_rows_options
from roofcast.serving.cli.console import spinner
from roofcast.serving.cli.context import (
    AsJson,
    Level,
    OperatorOption,
    OutFile,
    ReferenceFile,
    Server,
    StackOption,
    load_predictor,
    note_stack,
    open_service,
    print_option,
    row_error,
)
from roofcast.serving.cli.files import EXAMPLE_QUESTIONS, read_questions, read_row_models, write_table
from roofcast.serving.cli.remote import ask
from roofcast.serving.cli.text.prediction_text import (
    SUFFIX,
    errors_text,
    measured_errors,
    prediction_text,
    question_text,
)
from roofcast.serving.cli.text.text_tables import fold
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR

Example = Annotated[bool, print_option("--example", EXAMPLE_QUESTIONS, "Print a file for --rows, and exit.")]

TEXT_COLUMNS: Final = ("status", "reason", "assumed")

if TYPE_CHECKING:
    import pandas as pd

    from roofcast.data.catalog import Catalog
    from roofcast.serving.composition import Service
    from roofcast.serving.csv_table import CsvTable


@with_options(question_options)
def predict(
    question: dict[str, str],
    *,
    context: typer.Context,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of questions, blank where unknown, in place of the options of one; --example prints one. "
            "Models are those of --model.",
        ),
    ] = None,
    out: OutFile = None,
    reference: ReferenceFile = None,
    stack: StackOption = "",
    operator: OperatorOption = DEFAULT_OPERATOR,
    level: Level = DEFAULT_LEVEL,
    example: Example = False,  # noqa: ARG001  (its callback does it all)
    why: Annotated[bool, typer.Option("--why", help="Name every failed row and every assumed column.")] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Predict one question, or each row of a CSV; an invalid row gets a status and a reason.

    Measured columns, such as ttft_s, do not change a prediction (--reference does): they become `measured_...`, and
    the file has the errors too. With --rows, JSON is the number of rows by status, with `errors` by metric of what
    was measured.
    """
    problems: Problems = context.obj
    given = [name for name, value in question.items() if value]
    table = None
    with problems:
        table = read_questions(rows) if rows else None
    with problems:
        check_rows_options(given, rows, out)
        if not rows and not given:
            problem = "must be given, or the options of one question; --example prints a file of questions"
            raise InputError("rows", problem)
    with problems:
        if given and not rows:
            check_question(question, server)
    asked = Calibration(stack, server, level, operator, reference).check(problems)
    problems.raise_all()
    if table and rows and out:
        _predict_file(table, rows.name, out, asked, why=why, as_json=as_json)
    else:
        _predict_one(question, asked, as_json=as_json)


def _predict_one(question: Mapping[str, str], asked: Calibration, *, as_json: bool) -> None:
    if asked.server:
        row, models = question_row(question, asked.server)
        answer = _ask_service([row], models, asked)[0]
    else:
        service = open_service()
        table, catalog = question_table(question, service)
        with spinner("predicting"):
            answer = _predict(table, service, catalog, asked)[0]
    if answer["status"] not in {"ok", "saturated"}:
        raise row_error(answer["reason"])
    text = f"{json.dumps(answer)}\n" if as_json else question_text(question, answer, asked.level, asked.stack)
    print(text, end="")


def _predict_file(table: CsvTable, source: str, out: Path, asked: Calibration, *, why: bool, as_json: bool) -> None:
    questions, models = read_row_models(table.inputs(), source)
    if not table.rows:
        raise InputError("rows", "there are none; give at least one")
    if asked.server:
        records = _ask_service(questions.records(), models, asked)
    else:
        from roofcast.serving.app_state.catalog.live_catalog import with_configs

        with spinner("predicting"):
            service = open_service()
            catalog, _ = with_configs(service.catalog, [(model["name"], model["config"]) for model in models])
            records = _predict(questions.frame(), service, catalog, asked)
    names = [name for name in records[0] if name not in questions.header]
    answers = [[record[name] for name in names] for record in records]
    header = [f"measured_{name}" if name in names else name for name in table.header]
    errors = measured_errors(table.header, table.rows, names, answers)
    by_row = [list(cells) for cells in zip(*(one.errors for one in errors.values()), strict=True)]
    header += [*names, *(f"{metric}{SUFFIX}" for metric in errors)]
    parts = zip(table.rows, answers, by_row or [[]] * len(answers), strict=True)
    write_table(header, ([cell for part in row for cell in part] for row in parts), out)
    remarks = [{name: record[name] for name in TEXT_COLUMNS} for record in records]
    counts = dict(Counter(remark["status"] for remark in remarks).most_common())
    if as_json:
        more = {"errors": {metric: one.summary() for metric, one in errors.items()}} if errors else {}
        print(json.dumps(counts | more, separators=(",", ":")))
    else:
        print(prediction_text(remarks, table.lines, out, why=why), end="")
        if errors:
            print(fold(errors_text(errors)))
    if not counts.keys() & {"ok", "saturated"}:
        raise InputError("rows", f"none has an answer; the first: {remarks[0]['reason']}")


def _predict(questions: pd.DataFrame, service: Service, catalog: Catalog, asked: Calibration) -> list[dict[str, Any]]:
    from roofcast.serving.predict.row_answers import PredictOptions, answer

    bundle, points = asked.choose(service, catalog, load_predictor(service).active_model)
    answers = answer(questions, PredictOptions(bundle, catalog, asked.level, points))
    return [
        {str(name): value for name, value in row.items()}
        for row in answers.astype(object).where(answers.notna(), None).to_dict("records")
    ]


def _ask_service(rows: Sequence[dict[str, Any]], models: Sequence[Any], asked: Calibration) -> list[dict[str, Any]]:
    with ask(asked.server) as client:
        response = client.predict(rows, models=models, **asked.fields)
    note_stack(response.get("stack"))
    return [dict(row) for row in response["rows"]]
