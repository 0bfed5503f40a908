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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from roofcast.data.csv_rows import check_width, iter_csv
from roofcast.data.errors import SchemaError
from roofcast.data.importers.json_input import Node, read_text
from roofcast.data.importers.sources import Source

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

_COUNTS: Final = ("Successful", "Errored", "Incomplete", "Total")
_N_HEADER: Final = 3
_N_FIELD_BYTE: Final = 2**24


def is_guidellm_csv(start: bytes) -> bool:
    """Return whether the start of a file is that of a CSV report."""
    return start.lstrip(b"\xef\xbb\xbf").startswith(b"Run Info,") and b"Request Counts" in start


def report_of_csv(source: Source) -> Node:
    """Return a CSV report in the layout of the JSON report, with the fields that are read.

    Raises
    ------
    SchemaError
        If the file is damaged or no report of GuideLLM's; names the line.
    """
    rows = list(_iter_rows(source))
    header = list(zip(*(row for _, row in rows[:_N_HEADER]), strict=False))
    if len(rows) < _N_HEADER or ("Request Counts", "Successful", "") not in header:
        raise SchemaError("", "is no CSV report of GuideLLM: its three header lines are missing", source.name, 1)
    if len(rows) == _N_HEADER:
        raise SchemaError("", "holds no benchmark below its header", source.name, _N_HEADER + 1)
    benchmarks = []
    config, metadata = None, None
    for line, row in rows[_N_HEADER:]:
        check_width(row, header, source.name, line)
        cells = _Cells(dict(zip(header, row, strict=True)), source.name, line)
        config, metadata = (cells.json("Runtime Info", name) for name in ("Arguments", "Metadata"))
        benchmarks.append(_benchmark(cells))
    return Node({"metadata": metadata, "config": config, "benchmarks": benchmarks}, "", source.name)


def _iter_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    limit = csv.field_size_limit(_N_FIELD_BYTE)
    try:
        yield from iter_csv(io.StringIO(read_text(source)), source.name)
    finally:
        csv.field_size_limit(limit)


@dataclass(frozen=True)
class _Cells:
    cells: dict[tuple[str, ...], str]
    place: str
    line: int

    def text(self, *key: str) -> str:
        return self.cells.get((*key, "", "")[:_N_HEADER], "")

    def number(self, *key: str) -> float | None:
        text = self.text(*key)
        return self.parsed(text, *key) if text else None

    def parsed(self, text: str, *key: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise self.error(f"must be a finite number of at least 0, got {text[:60]!r}", *key)
        return number

    def json(self, *key: str) -> Any:
        try:
            return json.loads(self.text(*key) or "null")
        except (ValueError, RecursionError) as error:
            raise self.error("is not valid JSON", *key) from error

    def epoch_s(self, *key: str) -> float | None:
        text = self.text(*key)
        try:
            return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp() if text else None
        except (ValueError, OverflowError) as error:
            raise self.error(f"must be a time such as 2025-11-20 04:54:02, got {text[:60]!r}", *key) from error

    def error(self, problem: str, *key: str) -> SchemaError:
        return SchemaError(", ".join(key), problem, self.place, self.line)


def _benchmark(cells: _Cells) -> dict[str, Any]:
    totals = {name.lower(): cells.number("Request Counts", name) for name in _COUNTS}
    metrics = {name: {"successful": _distribution(cells, *key)} for name, key in DISTRIBUTIONS.items()}
    kind, _, level = cells.text("Benchmark", "Strategy").partition("@")  # concurrent@8, constant@4.00 or a name alone
    number = cells.parsed(level, "Benchmark", "Strategy") if level else None
    return {
        "config": {"strategy": {"type_": kind, "streams": number, "rate": number}},
        "metrics": {"request_totals": totals, **metrics},
        "duration": cells.number("Timings", "Duration", "Sec"),
        "start_time": cells.epoch_s("Timings", "Start Time"),
    }


def _distribution(cells: _Cells, group: str, name: str) -> dict[str, Any] | None:
    mean = cells.number(group, name, "Mean")
    if mean is None:
        return None
    percentiles = cells.json(group, name, "Percentiles")
    if not isinstance(percentiles, list) or len(percentiles) != len(LISTED):
        raise cells.error(f"must list {len(LISTED)} numbers: {', '.join(LISTED)}", group, name, "Percentiles")
    by_name = dict(zip(LISTED, percentiles, strict=True)) | {"p50": cells.number(group, name, "Median")}
    n_done = cells.number("Request Counts", "Successful")
    return {"mean": mean, "std_dev": cells.number(group, name, "Std Dev"), "count": n_done, "percentiles": by_name}
