"""Text of the answer to one question, and summary of those to a file: rows by status, reasons, assumed columns."""

import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from roofcast.serving.cli.text.text_tables import INDENT, fold, table_text
from roofcast.serving.display_names import interval_text, metric_name, quantity_text

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


def question_text(question: Mapping[str, str], answer: Mapping[str, Any], level: float, stack: str = "") -> str:
    """Return the metrics of an answered question with their intervals, in lines of up to 80 characters.

    Metrics conditioned on own runs have a column without them. `stack`: the one that the answer is about.
    """
    on = f"{question['n_accelerator'] or 1} x {question['accelerator']}"
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
    if answer["outside"] in {True, "True"}:
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
    header: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str], answers: Sequence[Sequence[Any]]
) -> dict[str, MetricErrors]:
    """Return the errors of each metric that some row has measured and the answers predict.

    Examples
    --------
    >>> errors = measured_errors(["tpot_s"], [["0.02"], [""]], ["tpot_s", "tpot_s_lo"], [[0.03, 0.01], [0.03, 0.01]])
    >>> [None if error is None else round(error, 3) for error in errors["tpot_s"].errors]
    [0.5, None]
    """
    found = {}
    for metric in (name for name in header if name in names and f"{name}_lo" in names):
        measured = [_number(row[header.index(metric)]) for row in rows]
        cells = [dict(zip(names, answer, strict=True)) for answer in answers]
        errors = [
            one[metric] / value - 1 if value and one[metric] is not None else None
            for one, value in zip(cells, measured, strict=True)
        ]
        if any(error is not None for error in errors):
            found[metric] = MetricErrors(errors, sum(map(_is_within, cells, measured, [metric] * len(rows))))
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


def _is_within(cells: Mapping[str, Any], value: float | None, metric: str) -> bool:
    low, high = cells.get(f"{metric}_lo"), cells.get(f"{metric}_hi")
    return None not in {value, low, high} and low <= value <= high  # type: ignore[operator]
