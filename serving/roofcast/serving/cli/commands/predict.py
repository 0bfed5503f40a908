"""The command that predicts one question, or the rows of a CSV file."""

from __future__ import annotations

import json
import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.arguments.options import question_options, with_options
from roofcast.serving.cli.arguments.request_check import (
    Calibration,
    Problems,
    check_question,
    check_rows_options,
    local_question,
    question_row,
)
from roofcast.serving.cli.console import INDENT, fold, spinner, table_text
from roofcast.serving.cli.context import (
    AsJson,
    Level,
    OperatorOption,
    OutFile,
    ReferenceFile,
    Server,
    StackOption,
    load_predictor,
    open_service,
    print_option,
    row_error,
)
from roofcast.serving.cli.files import EXAMPLE_QUESTIONS, read_questions, read_row_models, write_table
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR
from roofcast.serving.display_names import interval_text, metric_name, quantity_text

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.serving.composition import Service
    from roofcast.serving.csv_table import CsvTable

Example = Annotated[bool, print_option("--example", EXAMPLE_QUESTIONS, "Print a file for --rows, and exit.")]

TEXT_COLUMNS: Final = ("status", "reason", "assumed")


@with_options(question_options)
def predict(
    question: dict[str, Any],
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
    table = None
    with problems:
        table = read_questions(rows) if rows else None
    with problems:
        check_rows_options(question, rows, out)
        if not rows and not question:
            problem = "must be given, or the options of one question; --example prints a file of questions"
            raise InputError("rows", problem)
    with problems:
        if question and not rows:
            check_question(question, server)
    asked = Calibration(stack, server, level, operator, reference).check(problems)
    problems.raise_all()
    if table and rows and out:
        _predict_file(table, rows.name, out, asked, why=why, as_json=as_json)
    else:
        _predict_one(question, asked, as_json=as_json)


def _predict_one(question: Mapping[str, Any], asked: Calibration, *, as_json: bool) -> None:
    if asked.server:
        row, models = question_row(question, asked.server)
        (answer,) = asked.ask_service("predict", [row], models)
    else:
        service = open_service()
        row, catalog = local_question(question, service)
        with spinner("predicting"):
            answer = _predict([row], service, catalog, asked)[0]
    if answer["status"] not in {"ok", "saturated"}:
        raise row_error(answer["reason"])
    text = f"{json.dumps(answer)}\n" if as_json else question_text(question, answer, asked.level, asked.stack)
    print(text, end="")


def _predict_file(table: CsvTable, source: str, out: Path, asked: Calibration, *, why: bool, as_json: bool) -> None:
    questions, models = read_row_models(table.inputs(), source)
    if not table.rows:
        raise InputError("rows", "there are none; give at least one")
    rows = questions.records()
    if asked.server:
        records = asked.ask_service("predict", rows, models)
    else:
        from roofcast.serving.app_state.catalog.live_catalog import with_own_models

        with spinner("predicting"):
            service = open_service()
            catalog, _ = with_own_models(service.catalog, [(model["name"], model["config"]) for model in models])
            records = _predict(rows, service, catalog, asked)
    names = [name for name in records[0] if name not in questions.header]
    answers = [[record[name] for name in names] for record in records]
    header = [f"measured_{name}" if name in names else name for name in table.header]
    errors = measured_errors(table.header, table.rows, records)
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


def _predict(
    rows: Sequence[dict[str, Any]], service: Service, catalog: Catalog, asked: Calibration
) -> list[dict[str, Any]]:
    from roofcast.serving.predict.question_rows import columns_from_rows, rows_from_columns
    from roofcast.serving.predict.row_answers import PredictOptions, answer_columns

    bundle, points = asked.choose(service, catalog, load_predictor(service).active_model)
    columns = columns_from_rows(rows)
    return rows_from_columns(columns | answer_columns(columns, PredictOptions(bundle, catalog, asked.level, points)))


UNCALIBRATED: Final = "_uncalibrated"
"""End of the columns without own runs."""

MEASURED_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s")

SUPPORT_TEXT: Final = {
    "measured": "measured: this configuration was measured at these lengths and this load",
    "near": "near: model, engine and accelerator were measured, this configuration and load were not",
    "extrapolated": "extrapolated: the model was not measured with the engine on the accelerator",
}

MAX_REASON: Final = 3
"""Failed rows whose reasons are printed without `--why`."""

MAX_ASSUMED: Final = 3
"""Assumed columns that are named without `--why`."""


def question_text(question: Mapping[str, Any], answer: Mapping[str, Any], level: float, stack: str = "") -> str:
    """Return the metrics of an answered question with their intervals, in lines of up to 80 characters.

    Metrics conditioned on own runs have a column without them. `stack`: the one that the answer is about.
    """
    on = f"{question.get('n_accelerator', 1)} x {question['accelerator']}"
    rows = []
    names = (name for name in answer if f"{name}_lo" in answer and not name.endswith(UNCALIBRATED))
    for name in (name for name in names if answer[name] is not None):
        row = {"metric": metric_name(name), f"prediction (interval of {level:.0%})": _figure(name, name, answer)}
        if answer.get(f"{name}{UNCALIBRATED}") is not None:
            row["without own runs"] = _figure(name, f"{name}{UNCALIBRATED}", answer)
        rows.append(row)
    lines = [fold(f"{question['model']} on {on}"), table_text(rows)]
    lines.append(fold(support_text(answer, stack)))
    if answer["assumed"]:
        lines.append(fold(f"assumed, as not given: {', '.join(answer['assumed'].split())}"))
    if answer["outside"]:
        lines.append("outside the range of the measurements: rests on the analytic estimate")
    if answer["reason"]:
        lines.append(fold(answer["reason"]))
    return "\n".join(lines) + "\n"


def support_text(answer: Mapping[str, Any], asked: str = "") -> str:
    """Return what an answer about a stack, or about none, rests on, and who measured the same, as one sentence."""
    if answer["support"] != "measured":
        return SUPPORT_TEXT[answer["support"]]
    values = [(name, answer.get(f"observed_{name}")) for name in MEASURED_METRICS]
    figures = [f"{metric_name(name)} {quantity_text(name, value)}" for name, value in values if value is not None]
    stack, version, date = (answer[f"observed_{name}"] for name in ("stack", "engine_version", "date"))
    by = ", ".join(filter(None, (stack, version and f"engine {version}", date)))
    is_asked = not stack or asked in {stack, stack.partition("/")[0]}
    advice = "" if is_asked else f"; --stack {shlex.quote(stack)} answers as they run it"
    return f"measured: {', '.join(figures)} ({by}){advice}"


def _figure(metric: str, name: str, answer: Mapping[str, Any]) -> str:
    return interval_text(metric, *(answer[f"{name}{end}"] for end in ("", "_lo", "_hi")))


def prediction_text(answers: Sequence[dict[str, Any]], lines: Sequence[int], out: Path, *, why: bool) -> str:
    """Return the summary in lines of up to 80 characters.

    - `answers`: Status, reason and assumed columns of each row.
    - `lines`: Of the file of questions, on which each row stands.
    - `out`: File of the answers.
    - `why`: Whether to name every failed row and every assumed column.
    """
    return "\n".join(_paragraphs(answers, lines, out, why=why)) + "\n"


def _paragraphs(answers: Sequence[dict[str, Any]], lines: Sequence[int], out: Path, *, why: bool) -> Iterator[str]:
    counts = Counter(answer["status"] for answer in answers)
    yield ", ".join(f"{n} {status}" for status, n in counts.most_common())
    failed = [
        (line, answer)
        for line, answer in zip(lines, answers, strict=True)
        if answer["status"] not in {"ok", "saturated"}
    ]
    if failed:
        yield fold(f"{len(failed)} of {len(answers)} rows have no answer; the column `reason` of {out} says why:")
        shown = failed if why else failed[:MAX_REASON]
        for line, answer in shown:
            yield fold(f"line {line}: {answer['reason']}", INDENT)
        if len(failed) > len(shown):
            yield fold(f"and {len(failed) - len(shown)} more; --why names all", INDENT)
    texts = (text for answer in answers for text in (answer["assumed"] or "").split())
    assumed = Counter(text.partition("=")[0] for text in texts)
    if assumed:
        shown_names = [name for name, _ in assumed.most_common(None if why else MAX_ASSUMED)]
        listed = ", ".join(f"{name} ({assumed[name]})" for name in shown_names)
        more = len(assumed) - len(shown_names)
        rest = f" and {more} more columns; --why names all" if more else ""
        yield fold(f"blank and assumed to be usual, in so many rows: {listed}{rest}")


SUFFIX: Final = "_error"


class MetricErrors(NamedTuple):
    """Relative errors of a metric, predicted over measured minus one; None where a row lacks either.

    `n_within` is the number of measured values in the intervals of their predictions.
    """

    errors: list[float | None]
    n_within: int

    def summary(self) -> dict[str, Any]:
        """Return the number of rows, the median of the absolute errors, and the rows within the interval."""
        known = [abs(error) for error in self.errors if error is not None]
        return {"n_row": len(known), "median_ape": statistics.median(known), "n_within": self.n_within}


def measured_errors(
    header: Sequence[str], rows: Sequence[Sequence[str]], answers: Sequence[Mapping[str, Any]]
) -> dict[str, MetricErrors]:
    """Return the errors of each metric that some row has measured and the answers predict.

    Examples
    --------
    >>> answer = {"tpot_s": 0.03, "tpot_s_lo": 0.01, "tpot_s_hi": 0.05}
    >>> errors = measured_errors(["tpot_s"], [["0.02"], [""]], [answer, answer])
    >>> [None if error is None else round(error, 3) for error in errors["tpot_s"].errors]
    [0.5, None]
    """
    found = {}
    for i, metric in enumerate(header):
        if f"{metric}_lo" not in answers[0]:
            continue
        pairs = [(_number(row[i]), answer) for row, answer in zip(rows, answers, strict=True)]
        known = [value is not None and answer[metric] is not None for value, answer in pairs]
        errors = [
            answer[metric] / value - 1 if is_known else None
            for (value, answer), is_known in zip(pairs, known, strict=True)
        ]
        within = [
            answer[f"{metric}_lo"] <= value <= answer[f"{metric}_hi"] for value, answer in compress(pairs, known)
        ]
        if within:
            found[metric] = MetricErrors(errors, sum(within))
    return found


def errors_text(errors: Mapping[str, MetricErrors]) -> str:
    """Return the errors in one sentence; empty without any."""
    texts = []
    for metric, one in errors.items():
        part = one.summary()
        rows = f"{part['n_row']} row{'s' if part['n_row'] != 1 else ''}"
        texts.append(f"{metric} {part['median_ape']:.0%} over {rows}, {part['n_within']} within the interval")
    columns = ", ".join(f"{metric}{SUFFIX}" for metric in errors)
    return f"against the measured columns, median error: {'; '.join(texts)}; by row in {columns}" if texts else ""


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if value > 0 else None
