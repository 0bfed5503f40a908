"""Logs of training frameworks: one log, one row of the training table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from roofcast.data.errors import SchemaError
from roofcast.data.importers.job_logs import megatron_log, torchtitan_log
from roofcast.data.importers.job_logs.run_log import RunLog, find_hits, iter_lines
from roofcast.data.importers.overrides import fill_blanks

LOG_FORMATS: Final = {
    torchtitan_log.FRAMEWORK: torchtitan_log.FORMAT,
    megatron_log.FRAMEWORK: megatron_log.FORMAT,
}

_NAMES: Final = ("model", "accelerator")
"""Columns that a log fills with the framework's own names, in place of which the user's stand."""


def is_job_log(text: str, source: str = "") -> bool:
    """Return whether a text is a log of `LOG_FORMATS`.

    Raises `SchemaError` if a line before the first of a log is too long.
    """
    marks = [one.patterns[name] for one in LOG_FORMATS.values() for name in one.marks]
    return any(
        mark in line and regex.search(line) for _, line in iter_lines(text, source) for mark, regex, _ in marks
    )


def read_job_log(text: str, source: str, overrides: Mapping[str, str]) -> RunLog:
    """Return the run of a log, with blanks filled by the user's values; the user's names replace those of the log.

    Raises `SchemaError` if the text is no log of `LOG_FORMATS`, has too few steps or too long lines, contradicts a
    value, or does not tell the count of accelerators.
    """
    log = _read(text, source)
    cells = {name: cell for name, cell in log.cells.items() if not (name in _NAMES and name in overrides)}
    return replace(log, cells=_complete(fill_blanks(cells, overrides, source, log.line), log, source))


def _read(text: str, source: str) -> RunLog:
    for log_format in LOG_FORMATS.values():
        hits = find_hits(iter_lines(text, source), log_format.patterns)
        if any(hits[name] for name in log_format.marks):
            return log_format.read(hits, source)
    known = " or ".join(LOG_FORMATS)
    raise SchemaError("", f"is neither CSV nor a log of {known}: no line of a step was found", source)


def _complete(cells: dict[str, Any], log: RunLog, source: str) -> dict[str, Any]:
    for name, example in (("model", "meta-llama/Llama-3.1-8B"), ("accelerator", "H200"), ("n_accelerator", "8")):
        if name not in cells:
            raise SchemaError(name, f"is not in the log; set it, such as --set {name}={example}", source, log.line)
    if log.rate_per_accelerator is not None:
        try:
            cells["throughput_token_per_s"] = log.rate_per_accelerator * float(cells["n_accelerator"])
        except ValueError as error:
            problem = f"must be a number, got {cells['n_accelerator'][:40]!r}; such as --set n_accelerator=8"
            raise SchemaError("n_accelerator", problem, source, log.line) from error
    return cells
