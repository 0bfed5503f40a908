"""The command that predicts the rows of a CSV file."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.console import spinner
from roofcast.serving.cli.context import (
    AsJson,
    ReferenceFile,
    Server,
    StackOption,
    load_predictor,
    note_stack,
    open_app_state,
    open_model_catalog,
)
from roofcast.serving.cli.request_check import check_level, check_out, check_references, check_stack, collect_errors
from roofcast.serving.cli.usage import with_check

TEXT_COLUMNS: Final = ("status", "reason", "assumed")

if TYPE_CHECKING:
    from roofcast.serving.csv_table import CsvTable


def _print_example(is_requested: bool) -> None:
    if is_requested:
        from roofcast.serving.cli.files import EXAMPLE_QUESTIONS

        print(EXAMPLE_QUESTIONS, end="")
        raise typer.Exit


def _errors(values: Mapping[str, Any]) -> list[InputError]:
    from roofcast.serving.cli.files import read_table
    from roofcast.serving.predict.row_checks import check_table

    server = values["server"]

    def check_rows() -> None:
        if values["rows"]:
            questions = read_table(values["rows"]).inputs().frame()
            if not server:
                check_table(questions.head(1), open_model_catalog())

    return collect_errors(
        check_rows,
        lambda: check_out(values["out"]),
        lambda: check_references(values["reference"], server),
        lambda: check_stack(values["stack"], server),
        lambda: check_level(values["level"]),
    )


@with_check(_errors)
def predict(
    rows: Annotated[Path, typer.Option(help="CSV of questions, blank where unknown; --example prints one.")],
    out: Annotated[Path, typer.Option(help="CSV to write.")],
    reference: ReferenceFile = None,
    stack: StackOption = "",
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    example: Annotated[  # noqa: ARG001  (its callback does it all)
        bool,
        typer.Option("--example", callback=_print_example, is_eager=True, help="Print a file for --rows, and exit."),
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Name every failed row and every assumed column.")] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Predict each row of a CSV; an invalid row gets a status and a reason.

    Measured columns, such as ttft_s, do not change a prediction (--reference does): they become `measured_...`, and
    the file has the errors too. JSON is the number of rows by status, with `errors` by metric of what was measured.
    """
    from roofcast.serving.cli.files import read_references_table, read_table, write_table
    from roofcast.serving.cli.measured_errors import SUFFIX, errors_text, measured_errors
    from roofcast.serving.cli.prediction_text import prediction_text
    from roofcast.serving.cli.tables import fold

    check_level(level)
    check_out(out)
    table = read_table(rows)
    questions = table.inputs()
    references = read_references_table(reference) if reference else None
    if server:
        names, answers = _ask_service(server, questions, references, stack, level)
    else:
        with spinner("predicting"):
            names, answers = _predict(questions, references, stack, level, reference)
    header = [f"measured_{name}" if name in names else name for name in table.header]
    errors = measured_errors(table.header, table.rows, names, answers)
    by_row = [list(cells) for cells in zip(*(one.errors for one in errors.values()), strict=True)]
    header += [*names, *(f"{metric}{SUFFIX}" for metric in errors)]
    write_table(header, map(_joined, table.rows, answers, by_row or [[]] * len(answers)), out)
    remarks = [{name: answer[names.index(name)] for name in TEXT_COLUMNS} for answer in answers]
    counts = dict(Counter(remark["status"] for remark in remarks).most_common())
    if as_json:
        more = {"errors": {metric: one.summary() for metric, one in errors.items()}} if errors else {}
        print(json.dumps(counts | more, separators=(",", ":")))
    if not answers:
        raise InputError("rows", "there are none; give at least one")
    if not as_json:
        print(prediction_text(remarks, table.lines, out, why=why), end="")
        if errors:
            print(fold(errors_text(errors)))
    if "ok" not in counts:
        raise InputError("rows", f"none has an answer; the first: {remarks[0]['reason']}")


def _joined(question: Sequence[str], answer: Sequence[Any], errors: Sequence[Any]) -> list[Any]:
    return [*question, *answer, *errors]


def _predict(
    questions: CsvTable, references: CsvTable | None, stack: str, level: float, reference: Path | None
) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of the answers of the active predictor."""
    from roofcast.serving.predict.answers import PredictOptions, answer
    from roofcast.serving.predict.references import read_references
    from roofcast.serving.stacks.stack_choice import choose_stack

    state = load_predictor(open_app_state())
    bundle, catalog = state.active_model.bundle, state.catalog
    known = None
    if references and reference:
        known = read_references(references.frame(), catalog, bundle.predictor, reference.name, references.lines)
    bundle, points, used = choose_stack(state, state.active_model, "", stack, known)
    note_stack(used)
    answers = answer(questions.frame(), PredictOptions(bundle, catalog, level, points))
    answers = answers.iloc[:, len(questions.header) :]
    values = answers.astype(object).where(answers.notna(), None)
    return [str(name) for name in answers.columns], values.to_numpy().tolist()


def _ask_service(
    url: str, questions: CsvTable, references: CsvTable | None, stack: str, level: float
) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of the answers of a service."""
    from roofcast.serving.cli.remote import ask

    rows = questions.records()
    if not rows:
        raise InputError("rows", "there are none; give at least one")
    with ask(url) as client:
        known = references.records() if references else ()
        response = client.predict(rows, references=known, stack=stack or None, level=level)
    note_stack(response.get("stack"))
    names = [name for name in response["rows"][0] if name not in questions.header]
    return names, [[row[name] for name in names] for row in response["rows"]]
