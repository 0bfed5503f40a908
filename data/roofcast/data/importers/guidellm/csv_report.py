"""GuideLLM's CSV report, converted to the layout of its JSON report.

Three header lines name group, name with unit, and statistic of each column. One cell lists the percentiles without
labels, in ascending order and without the median.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
from typing import Any, Final

from roofcast.data.errors import SchemaError
from roofcast.data.importers.sources import Source
from roofcast.data.json_input import Node, read_text

LISTED: Final = ("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")
"""Percentiles of a cell, in order; the median has a column of its own."""

DISTRIBUTIONS: Final = {
    "request_latency": ("Request Latency", "Successful Sec"),
    "time_to_first_token_ms": ("Time to First Token", "Successful ms"),
    "inter_token_latency_ms": ("Inter Token Latency", "Successful ms"),
    "requests_per_second": ("Server Throughput", "Successful Requests/Sec"),
    "prompt_token_count": ("Token Metrics", "Successful Input Tokens"),
    "output_token_count": ("Token Metrics", "Successful Output Tokens"),
    "output_tokens_per_second": ("Token Throughput", "Successful Output Tokens/Sec"),
    "tokens_per_second": ("Token Throughput", "Successful Total Tokens/Sec"),
}
"""Distributions that are read: name in the JSON report, to group and name in the CSV report."""

_N_HEADER: Final = 3
_N_FIELD_BYTE: Final = 2**24

Cells = dict[tuple[str, str, str], str]


def is_guidellm_csv(start: bytes) -> bool:
    """Return whether the start of a file is that of a CSV report."""
    return start.lstrip(b"\xef\xbb\xbf").startswith(b"Run Info,") and b"Request Counts" in start


def benchmarks_of_csv(source: Source) -> Node:
    """Return a CSV report in the layout of the JSON report, with the fields that are read.

    Raises
    ------
    SchemaError
        If the file is damaged or no report of GuideLLM's; names the line.
    """
    rows = _rows(source)
    header = list(zip(*rows[:_N_HEADER], strict=False))
    if len(rows) < _N_HEADER or ("Request Counts", "Successful", "") not in header:
        raise SchemaError("", "is no CSV report of GuideLLM: its three header lines are missing", source.name, 1)
    benchmarks = []
    config: dict[str, Any] = {}
    for line, row in enumerate(rows[_N_HEADER:], _N_HEADER + 1):
        if len(row) != len(header):
            problem = f"must have {len(header)} cells as the header has, got {len(row)}; is the file truncated?"
            raise SchemaError("", problem, source.name, line)
        cells: Cells = dict(zip(header, row, strict=True))
        config = _json(cells, ("Runtime Info", "Arguments", ""), source.name, line)
        benchmarks.append(_benchmark(cells, source.name, line))
        metadata = _json(cells, ("Runtime Info", "Metadata", ""), source.name, line)
    if not benchmarks:
        raise SchemaError("", "holds no benchmark below its header", source.name, _N_HEADER + 1)
    return Node({"metadata": metadata, "config": config, "benchmarks": benchmarks}, "", source.name)


def _rows(source: Source) -> list[list[str]]:
    text = read_text(source)
    limit = csv.field_size_limit(_N_FIELD_BYTE)
    try:
        return [row for row in csv.reader(io.StringIO(text), strict=True) if row]
    except csv.Error as error:
        raise SchemaError("", f"is not valid CSV, or truncated: {error}", source.name) from error
    finally:
        csv.field_size_limit(limit)


def _benchmark(cells: Cells, place: str, line: int) -> dict[str, Any]:
    counts = {
        name.lower(): _number(cells, ("Request Counts", name, ""), place, line)
        for name in ("Successful", "Errored", "Incomplete", "Total")
    }
    metrics = {name: {"successful": _distribution(cells, *key, place, line)} for name, key in DISTRIBUTIONS.items()}
    return {
        "config": {"strategy": _strategy(cells, place, line)},
        "metrics": {"request_totals": counts, **metrics},
        "duration": _number(cells, ("Timings", "Duration", "Sec"), place, line),
        "start_time": _epoch_s(cells.get(("Timings", "Start Time", ""), ""), place, line),
    }


def _distribution(cells: Cells, group: str, name: str, place: str, line: int) -> dict[str, Any] | None:
    mean = _number(cells, (group, name, "Mean"), place, line)
    if mean is None:
        return None
    percentiles = _json(cells, (group, name, "Percentiles"), place, line)
    if not isinstance(percentiles, list) or len(percentiles) != len(LISTED):
        problem = f"must list {len(LISTED)} numbers: {', '.join(LISTED)}"
        raise SchemaError(f"{group}, {name}, Percentiles", problem, place, line)
    n_done = _number(cells, ("Request Counts", "Successful", ""), place, line)
    median, deviation = (_number(cells, (group, name, part), place, line) for part in ("Median", "Std Dev"))
    by_name = dict(zip(LISTED, percentiles, strict=True)) | {"p50": median}
    return {"mean": mean, "std_dev": deviation, "count": n_done, "percentiles": by_name}


def _strategy(cells: Cells, place: str, line: int) -> dict[str, Any]:
    """Return the load of ``concurrent@8``, ``constant@4.00`` or a name alone."""
    kind, _, level = cells.get(("Benchmark", "Strategy", ""), "").partition("@")
    number = _parsed(level, "Benchmark, Strategy", place, line) if level else None
    return {"type_": kind, "streams": number, "rate": number}


def _number(cells: Cells, key: tuple[str, str, str], place: str, line: int) -> float | None:
    text = cells.get(key, "")
    return _parsed(text, ", ".join(filter(None, key)), place, line) if text else None


def _parsed(text: str, field: str, place: str, line: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise SchemaError(field, f"must be a finite number of at least 0, got {text[:60]!r}", place, line)
    return number


def _json(cells: Cells, key: tuple[str, str, str], place: str, line: int) -> Any:
    try:
        return json.loads(cells.get(key) or "null")
    except (ValueError, RecursionError) as error:
        raise SchemaError(", ".join(filter(None, key)), "is not valid JSON", place, line) from error


def _epoch_s(text: str, place: str, line: int) -> float | None:
    try:
        return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp() if text else None
    except (ValueError, OverflowError) as error:
        problem = f"must be a time such as 2025-11-20 04:54:02, got {text[:60]!r}"
        raise SchemaError("Timings, Start Time", problem, place, line) from error
