"""GuideLLM's reports, JSON or CSV: one file a sweep, one benchmark a level of load.

Its *inter-token latency* is the mean gap of a request, our TPOT; its *time per output token* counts the first token
and is not read. If a report holds every request, statistics are computed from the requests. Its own statistics weight
a request by its tokens: their mean of inter-token latency is the mean over all gaps, ITL; their percentiles serve as
percentiles of TPOT.

In its CSV report three header lines name group, name with unit, and statistic of each column. One cell lists the
percentiles without labels, in ascending order and without the median.
"""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from roofcast.data.csv_rows import check_width
from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run, join_cells, load_cells, model_cells
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Floats, Node, cell_node, csv_rows, read_document
from roofcast.data.importers.layout import layout
from roofcast.data.importers.request_samples import request_samples, statistics_of, variation_of
from roofcast.data.importers.sources import Source, files_of, without_twins
from roofcast.data.units import S_PER_MS

LISTED: Final = ("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")
"""Percentiles of a cell, in order; the median has a column of its own."""

_COUNTS: Final = ("Successful", "Errored", "Incomplete", "Total")
_N_HEADER: Final = 3
_N_FIELD_BYTE: Final = 2**24


def _is_guidellm_csv(start: bytes) -> bool:
    return start.lstrip(b"\xef\xbb\xbf").startswith(b"Run Info,") and b"Request Counts" in start


def _report_of_csv(source: Source) -> Node:
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
        yield from csv_rows(source)
    finally:
        csv.field_size_limit(limit)


@dataclass(frozen=True)
class _Cells:
    cells: dict[tuple[str, ...], str]
    place: str
    line: int

    def node(self, *key: str, separator: str = "") -> Node:
        text = self.cells.get((*key, "", "")[:_N_HEADER], "")
        return cell_node(text.partition(separator)[2] if separator else text, ", ".join(key), self.place, self.line)

    def number(self, *key: str, separator: str = "") -> Any:
        node = self.node(*key, separator=separator)
        node.number()
        return node.value

    def json(self, *key: str) -> Any:
        node = self.node(*key)
        try:
            return json.loads(node.text() or "null")
        except (ValueError, RecursionError) as error:
            raise node.error("is not valid JSON") from error


def _benchmark(cells: _Cells) -> dict[str, Any]:
    totals = {name.lower(): cells.number("Request Counts", name) for name in _COUNTS}
    metrics = {
        name: {"successful": _distribution(cells, *key)}
        for name, key in fact_table("tool_words")["guidellm"]["distributions"].items()
    }
    kind = cells.node("Benchmark", "Strategy").text().partition("@")[0]  # concurrent@8, constant@4.00 or a name alone
    number = cells.number("Benchmark", "Strategy", separator="@")
    return {
        "config": {"strategy": {"type_": kind, "streams": number, "rate": number}},
        "metrics": {"request_totals": totals, **metrics},
        "duration": cells.number("Timings", "Duration", "Sec"),
        "start_time": cells.node("Timings", "Start Time").day(),
    }


def _distribution(cells: _Cells, group: str, name: str) -> dict[str, Any] | None:
    mean = cells.number(group, name, "Mean")
    if mean is None:
        return None
    percentiles = cells.json(group, name, "Percentiles")
    if not isinstance(percentiles, list) or len(percentiles) != len(LISTED):
        problem = f"must list {len(LISTED)} numbers: {', '.join(LISTED)}"
        raise cells.node(group, name, "Percentiles").error(problem)
    by_name = dict(zip(LISTED, percentiles, strict=True)) | {"p50": cells.number(group, name, "Median")}
    n_done = cells.number("Request Counts", "Successful")
    return {"mean": mean, "std_dev": cells.number(group, name, "Std Dev"), "count": n_done, "percentiles": by_name}


REQUEST_KEYS: Final = (
    "request_latency", "time_to_first_token_ms", "inter_token_latency_ms", "prompt_tokens", "output_tokens",
)  # fmt: skip
"""Fields of a request that are read."""

_RATES: Final = ("constant", "poisson", "async")


LAYOUT: Final = layout("guidellm")


def _select_files(paths: Sequence[Path], *suffixes: str) -> list[Path]:
    return without_twins(files_of(paths, *suffixes), ".json")


def _iter_runs(source: Source) -> Iterator[Run]:
    if source.name.lower().endswith(".csv") or _is_guidellm_csv(source.start()):
        report = _report_of_csv(source)
    else:
        report = read_document(source, _select_request_fields)
        if report["metadata"]["guidellm_version"].is_blank:
            raise report["metadata"].error("no guidellm_version: this is no report of GuideLLM")
    benchmarks = report["benchmarks"].items()
    if not benchmarks:
        raise report["benchmarks"].error("holds no benchmark")
    for benchmark in benchmarks:
        yield _run(report, benchmark)


def _select_request_fields(members: dict[str, Any]) -> dict[str, Any]:
    if "request_id" in members and "request_args" in members:
        return {key: members.get(key) for key in REQUEST_KEYS}
    return members


def _run(report: Node, benchmark: Node) -> Run:
    totals = benchmark.at("metrics", "request_totals")
    n_done = totals["successful"].required_number()
    n_failed, n_cut = (float(np.nan_to_num(totals[name].number())) for name in ("errored", "incomplete"))
    cells = join_cells(
        _context(report, benchmark),
        {"n_request": n_done + n_failed, "n_failed": n_failed},
        {"note": f"{n_cut:g} requests were cut off at the end" if n_cut else ""},
    )
    if not n_done > 0:
        return Run(benchmark.place, benchmark.line, cells | _planned_lengths(report) | {"status": "failed"}, {})
    cells |= LAYOUT.lengths(benchmark)
    done = benchmark["requests"]["successful"]
    if done.is_array and len(done.value) == n_done:
        samples = _samples(done)
        statistics, n_output = statistics_of(samples), samples["n_output_token_at_statistic"]
        cells["length_variation"] = variation_of(n_output)
    else:
        statistics = LAYOUT.statistics(benchmark)
    statistics["mean"] |= LAYOUT.read(benchmark, "gaps")
    return replace(LAYOUT.run(benchmark, cells, statistics), derived=("itl_s",))


def _samples(done: Node) -> dict[str, Floats]:
    requests = done.items()
    latency_s, ttft_ms, gap_ms, n_input, n_output = (
        np.array([request[key].number() for request in requests]) for key in REQUEST_KEYS
    )
    tpot_s = S_PER_MS * gap_ms[n_output > 1]
    return request_samples(S_PER_MS * ttft_ms, tpot_s, latency_s, n_input, n_output, gap_s=np.empty(0))


def _context(report: Node, benchmark: Node) -> dict[str, Any]:
    backend = report.at("config", "spec", "backend", "model")
    model = backend if not backend.is_blank else benchmark.at("config", "backend", "model")
    version = report.at("metadata", "guidellm_version").text()
    return join_cells(
        model_cells(model.text()),
        _load(benchmark.at("config", "strategy")),
        {
            "duration_s": benchmark["duration"].number(),
            "date": benchmark["start_time"].day(),
            "software": f"guidellm {version}".strip(),
        },
    )


def _load(strategy: Node) -> dict[str, Any]:
    kind = strategy["type_"].text()
    if kind == "synchronous":
        return load_cells(1.0, math.nan)
    if kind == "concurrent":
        return load_cells(strategy["streams"].number(), math.nan)
    if kind == "throughput":
        return load_cells(math.nan, math.nan)
    if kind in _RATES:
        rate = strategy["rate"].number()
        if rate > 0:
            return load_cells(math.nan, rate)
        raise strategy["rate"].error("must be a rate above 0")
    known = ", ".join(("synchronous", "concurrent", "throughput", *_RATES))
    raise strategy["type_"].error(f"must be one of {known}, got {kind[:60]!r}")


def _planned_lengths(report: Node) -> dict[str, float]:
    data = report.at("config", "spec")["data"]
    first = data.items()[0] if data.is_array and data.value else data["none"]
    return {"n_input_token": first["prompt_tokens"].number(), "n_output_token": first["output_tokens"].number()}


FORMAT: Final = Format("guidellm", _iter_runs, _is_guidellm_csv, select=_select_files)
"""The entry of the registry."""
