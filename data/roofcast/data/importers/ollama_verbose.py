"""What ``ollama run --verbose`` prints after each answer: counts and durations of one request.

The durations are in Go's notation, such as ``1m13.8s``. The time of loading the model is left out. Nothing names the
model but a line with the command, if the text has one.
"""

import math
import re
from collections.abc import Iterator
from typing import Final

from roofcast.data.importers.client_runs import Run
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, check_keys, read_text
from roofcast.data.importers.printed_results import printed
from roofcast.data.importers.sources import Source
from roofcast.data.units import S_PER_H, S_PER_UNIT, S_PER_US

_S_PER_GO_UNIT: Final = {**S_PER_UNIT, "h": S_PER_H, "m": 60.0, "µs": S_PER_US, "μs": S_PER_US}
_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ns|us|µs|μs|ms|h|m|s)", re.ASCII)
_COMMAND: Final = re.compile(r"\bollama run +(?:--[a-z-]{1,30} +)*([A-Za-z0-9][\w./:-]{0,150})", re.ASCII)


def duration_s(text: str) -> float:
    """Return the seconds of a duration as Go prints it; NaN of another text.

    Examples
    --------
    >>> duration_s("1m13.5s"), duration_s("97.885315ms"), duration_s("soon")
    (73.5, 0.09788531500000001, nan)
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return math.nan
    return sum(float(number) * _S_PER_GO_UNIT[unit] for number, unit in parts)


def _runs(source: Source) -> Iterator[Run]:
    models = {*_COMMAND.findall(read_text(source))}
    source.stream.seek(0)
    model = models.pop() if len(models) == 1 else ""
    yield from (_run(document, model) for document in printed("ollama_verbose").documents(source))


def _run(document: Node, model: str) -> Run:
    check_keys(document, ("total_duration", "eval_count", "eval_duration"), "ollama run --verbose")
    total_s, load_s, prompt_s, eval_s = (
        _duration(document[f"{name}_duration"]) for name in ("total", "load", "prompt_eval", "eval")
    )
    n_output = document["eval_count"].number()
    cells = {
        "model": model,
        "engine": "ollama",
        "load": "closed_loop",
        "concurrency": 1.0,
        "n_input_token": document["prompt_eval_count"].number(),
        "n_output_token": n_output,
        "n_request": 1.0,
        "software": "ollama run --verbose",
    }
    e2e_s = total_s - (0.0 if math.isnan(load_s) else load_s)
    mean = {
        "ttft_s": prompt_s,
        "tpot_s": eval_s / n_output if n_output > 0 else math.nan,
        "e2e_s": e2e_s if e2e_s > 0 else math.nan,
    }
    return Run(document.place, document.line, cells, {"mean": mean})


def _duration(node: Node) -> float:
    if node.is_blank:
        return math.nan
    value = duration_s(str(node.value))
    if math.isnan(value):
        raise node.error(f"must be a duration such as 1m13.8s, got {str(node.value)[:60]!r}")
    return value


FORMAT: Final = Format("ollama_verbose", _runs)
"""The entry of the registry."""
