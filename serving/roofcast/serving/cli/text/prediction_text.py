"""Text of the answer to one question, and summary of those to a file: rows by status, reasons, assumed columns."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from roofcast.serving.cli.text.text_tables import INDENT, fold, table_text
from roofcast.serving.counts import interval_text, quantity_text
from roofcast.serving.display_names import metric_name

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
