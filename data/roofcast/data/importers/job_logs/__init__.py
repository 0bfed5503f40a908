"""Logs of training frameworks: one log, one row of the training table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from roofcast.data.errors import SchemaError
from roofcast.data.importers.job_logs import megatron, torchtitan
from roofcast.data.importers.job_logs.run_log import RunLog, clean_lines
from roofcast.data.importers.overrides import fill_blanks


class LogFormat(NamedTuple):
    """Functions of one framework's logs: whether lines are one, and the run of the lines of a named file."""

    recognises: Callable[[Sequence[str]], bool]
    read: Callable[[Sequence[str], str], RunLog]


LOG_FORMATS: Final = {
    torchtitan.FRAMEWORK: LogFormat(torchtitan.recognises, torchtitan.read),
    megatron.FRAMEWORK: LogFormat(megatron.recognises, megatron.read),
}

_NAMES: Final = ("model", "accelerator")
"""Columns that a log fills with the framework's own names, in place of which the user's stand."""


def is_job_log(text: str) -> bool:
    """Return whether a text is a log of `LOG_FORMATS`."""
    lines = clean_lines(text)
    return any(one.recognises(lines) for one in LOG_FORMATS.values())


def read_job_log(text: str, source: str, overrides: Mapping[str, str]) -> RunLog:
    """Return the run of a training log, with blanks filled by the user's values.

    Parameters
    ----------
    source
        Name of the file, for messages.
    overrides
        Column to value; names of the model and the accelerator replace those of the log.

    Raises
    ------
    SchemaError
        If the text is no log of `LOG_FORMATS`, has too few steps, contradicts a value, or does not tell the count of
        accelerators.
    """
    lines = clean_lines(text)
    chosen = next((one for one in LOG_FORMATS.values() if one.recognises(lines)), None)
    if chosen is None:
        known = " or ".join(LOG_FORMATS)
        raise SchemaError("", f"is neither CSV nor a log of {known}: no line of a step was found", source)
    log = chosen.read(lines, source)
    cells = {name: cell for name, cell in log.cells.items() if not (name in _NAMES and name in overrides)}
    return log.with_cells(_complete(fill_blanks(cells, overrides, source, log.line), log, source))


def _complete(cells: dict[str, Any], log: RunLog, source: str) -> dict[str, Any]:
    for name, example in (("model", "meta-llama/Llama-3.1-8B"), ("accelerator", "H200"), ("n_accelerator", "8")):
        if name not in cells:
            raise SchemaError(name, f"is not in the log; set it, such as --set {name}={example}", source, log.line)
    if log.rate_per_accelerator is not None:
        cells["throughput_token_per_s"] = log.rate_per_accelerator * float(cells["n_accelerator"])
    return cells
