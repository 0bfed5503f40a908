"""AIPerf's and genai-perf's CSV files in the layout of a JSON summary: the summary of a run, the table of a sweep.

A summary has a section of statistics and one of single values, each with a header; numbers may be quoted with
thousands commas. A sweep's table has one line a level, with every metric's mean over the runs of that level, in
AIPerf's default units, which the table does not state.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.csv_rows import check_width, iter_csv
from roofcast.data.errors import SchemaError
from roofcast.data.importers.aiperf.aiperf_summary import UNKNOWN_UNIT, run_of_metrics
from roofcast.data.importers.client_runs import Run, load_cells
from roofcast.data.importers.json_input import Node, read_text
from roofcast.data.importers.sources import Source

METRICS: Final = (
    "time_to_first_token", "inter_token_latency", "inter_chunk_latency", "request_latency", "input_sequence_length",
    "output_sequence_length", "output_token_throughput", "total_token_throughput", "request_throughput",
    "request_count", "error_request_count", "benchmark_duration",
)  # fmt: skip
"""Metrics that are read; a summary titles them in other case, with blanks."""

_TITLE: Final = re.compile(r"([^(]{1,200}?)\s{0,9}(?:\(([^)]{0,200})\))?")
_SWEEP_UNITS: Final = {name: "ms" for name in METRICS if name.endswith(("_token", "_latency"))} | {
    "benchmark_duration": "sec"
}
_LOADS: Final = ("concurrency", "request_rate")


def is_summary_csv(start: bytes) -> bool:
    """Return whether the start of a file is that of a CSV summary."""
    line = start.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].replace(b'"', b"")
    return line.startswith(b"Metric,") and b"avg" in line


def is_sweep_csv(start: bytes) -> bool:
    """Return whether the start of a file is that of a sweep's table."""
    line = start.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0]
    return line.startswith((b"concurrency,", b"request_rate,")) and b"request_latency_mean" in line


def run_of_csv(source: Source) -> Run:
    """Return the run of a CSV summary, which states neither model nor load.

    Raises
    ------
    SchemaError
        If the file is damaged or no summary; names line and field.
    """
    metrics: dict[str, dict[str, Any]] = {}
    header: list[str] = []
    for line, row in _rows(source):
        if row[0] == "Metric":
            header = ["avg" if name == "Value" else name for name in row]
            continue
        check_width(row, header, source.name, line)
        match = _TITLE.fullmatch(row[0].strip())
        name = match[1].lower().replace(" ", "_") if match else ""
        if match and name in METRICS:
            cells = zip(header[1:], row[1:], strict=True)
            numbers = {statistic: _number(name, cell, source.name, line) for statistic, cell in cells if cell}
            metrics[name] = {"unit": match[2] or UNKNOWN_UNIT, **numbers}
    if not metrics:
        raise SchemaError("", "holds no metric of AIPerf's", source.name, 1)
    if "avg" not in metrics.get("request_count", {}):
        raise SchemaError("Request Count", "no line 'Request Count': is the file truncated?", source.name)
    return run_of_metrics(Node(metrics, "", source.name), {"software": "aiperf"})


def runs_of_sweep(source: Source) -> Iterator[Run]:
    """Yield the run of each level, with means only.

    Raises
    ------
    SchemaError
        If the file is damaged; names line and field.
    """
    rows = _rows(source)
    _, header = next(rows, (1, []))
    for line, row in rows:
        if row[0] in {"Best Configurations", "Pareto Optimal Points", "Metadata"}:
            break
        check_width(row, header, source.name, line)
        cells = {name: cell for name, cell in zip(header, row, strict=True) if cell}
        loads = [_number(name, cells[name], source.name, line) if name in cells else math.nan for name in _LOADS]
        metrics = {
            name: {
                "unit": _SWEEP_UNITS.get(name, UNKNOWN_UNIT),
                "avg": _number(name, cells[f"{name}_mean"], source.name, line),
            }
            for name in METRICS
            if f"{name}_mean" in cells
        }
        load = {} if all(map(math.isnan, loads)) else load_cells(*loads)
        yield run_of_metrics(Node(metrics, "", source.name, line), {"software": "aiperf", **load})


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    return ((line, row) for line, row in iter_csv(io.StringIO(read_text(source)), source.name) if any(row))


def _number(metric: str, cell: str, place: str, line: int) -> float:
    try:
        number = float(cell.replace(",", ""))
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise SchemaError(metric, f"must be a finite number of at least 0, got {cell[:60]!r}", place, line)
    return number
