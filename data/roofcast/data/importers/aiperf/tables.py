"""AIPerf's and genai-perf's CSV files: the summary of a run, and the table of a sweep.

A summary has a section of statistics and one of single values, each with a header; numbers may be quoted with
thousands commas. A sweep's table has one line a level, with every metric's mean over the runs of that level, in
AIPerf's default units, which the table does not state.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from typing import Final

from roofcast.data.errors import InputError, SchemaError
from roofcast.data.importers.aiperf.summary import LATENCIES, UNKNOWN_UNIT, in_our_unit, run_of_values
from roofcast.data.importers.runs import Run, load_cells
from roofcast.data.importers.sources import Source
from roofcast.data.json_input import Node, read_text

TITLES: Final = {
    "time to first token": "time_to_first_token",
    "inter token latency": "inter_token_latency",
    "inter chunk latency": "inter_chunk_latency",
    "request latency": "request_latency",
    "input sequence length": "input_sequence_length",
    "output sequence length": "output_sequence_length",
    "output token throughput": "output_token_throughput",
    "total token throughput": "total_token_throughput",
    "request throughput": "request_throughput",
    "request count": "request_count",
    "error request count": "error_request_count",
    "benchmark duration": "benchmark_duration",
}
"""Metric names by their title in a summary."""

_TITLE: Final = re.compile(r"(?P<title>[^(]+?)\s*(?:\((?P<unit>[^)]*)\))?")
_SWEEP_UNITS: Final = dict.fromkeys(LATENCIES, "ms") | {"benchmark_duration": "sec"}
_LOADS: Final = ("concurrency", "request_rate")

Metrics = dict[str, dict[str, float]]


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
    metrics: Metrics = {}
    header: list[str] = []
    for line, row in _rows(source):
        if row[0] == "Metric":
            header = row
            continue
        if len(row) != len(header):
            problem = f"must have {len(header)} cells as the header has, got {len(row)}; is the file truncated?"
            raise SchemaError("", problem, source.name, line)
        match = _TITLE.fullmatch(row[0].strip())
        name = TITLES.get(match["title"].lower()) if match else None
        if match and name:
            unit = match["unit"] or UNKNOWN_UNIT
            statistics = zip(header[1:], row[1:], strict=True)
            metrics[name] = {s: _number(name, cell, unit, source.name, line) for s, cell in statistics if cell}
    if not metrics:
        raise SchemaError("", "holds no metric of AIPerf's", source.name, 1)

    def value(metric: str, statistic: str) -> float:
        statistics = metrics.get(metric, {})
        return statistics.get(statistic, statistics.get("Value", math.nan) if statistic == "avg" else math.nan)

    if math.isnan(value("request_count", "avg")):
        problem = "no line 'Request Count': is the file truncated?"
        raise SchemaError("Request Count", problem, source.name)
    return run_of_values(Node({}, "", source.name), {"software": "aiperf"}, value)


def runs_of_sweep(source: Source) -> Iterator[Run]:
    """Yield the run of each level, with means only.

    Raises
    ------
    SchemaError
        If the file is damaged; names line and field.
    """
    header: list[str] = []
    for line, row in _rows(source):
        if not header:
            header = row
            continue
        if row[0] in {"Best Configurations", "Pareto Optimal Points", "Metadata"}:
            break
        if len(row) != len(header):
            problem = f"must have {len(header)} cells as the header has, got {len(row)}; is the file truncated?"
            raise SchemaError("", problem, source.name, line)
        yield _level(dict(zip(header, row, strict=True)), source.name, line)
    if not header:
        raise SchemaError("", "is empty", source.name)


def _level(cells: dict[str, str], place: str, line: int) -> Run:
    def value(metric: str, statistic: str) -> float:
        cell = cells.get(f"{metric}_mean", "") if statistic == "avg" else ""
        return _number(metric, cell, _SWEEP_UNITS.get(metric, UNKNOWN_UNIT), place, line) if cell else math.nan

    loads = [
        _number(name, cells[name], UNKNOWN_UNIT, place, line) if cells.get(name) else math.nan for name in _LOADS
    ]
    context = {"software": "aiperf", **(load_cells(*loads) if not all(map(math.isnan, loads)) else {})}
    return run_of_values(Node({}, "", place, line), context, value)


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(read_text(source)), strict=True)
    try:
        for row in reader:
            if any(row):
                yield reader.line_num, row
    except csv.Error as error:
        raise SchemaError("", f"is not valid CSV, or truncated: {error}", source.name, reader.line_num) from error


def _number(metric: str, cell: str, unit: str, place: str, line: int) -> float:
    try:
        number = float(cell.replace(",", ""))
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise SchemaError(metric, f"must be a finite number of at least 0, got {cell[:60]!r}", place, line)
    try:
        return in_our_unit(metric, number, unit)
    except InputError as error:
        raise SchemaError(metric, error.problem, place, line) from error
