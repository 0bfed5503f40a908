"""AIPerf's and genai-perf's artifacts: the summary of a run (JSON or CSV), its requests (JSONL), a sweep's table.

Their *inter-token latency* is the mean gap of a request, our TPOT; *inter-chunk latency* pools single gaps, our ITL.
Every metric carries its unit. Within a folder of artifacts each run is read once, from its most complete file: the
summary in JSON, else in CSV, else the requests. A sweep's table is read only where its runs are absent.

CSV files are read into the layout of the JSON summary. A CSV summary has a section of statistics and one of single
values, each with a header; numbers may be quoted with thousands commas. A sweep's table has one line a level, with
every metric's mean over the runs of that level, in AIPerf's default units, which the table does not state.
"""

from __future__ import annotations

import dataclasses
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from roofcast.data.csv_rows import check_width
from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run, join_cells, load_cells, model_cells
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import (
    Floats,
    Node,
    begins_json,
    cell_node,
    csv_rows,
    iter_documents,
    read_document,
)
from roofcast.data.importers.layout import UNKNOWN_UNIT, Field, layout
from roofcast.data.importers.request_samples import length_cells, request_samples, statistics_of
from roofcast.data.importers.sources import Source, files_of, is_archive, start_of
from roofcast.data.units import S_PER_NS

LAYOUT: Final = layout("aiperf")
LATENCIES: Final = {column: field for column, (field,) in LAYOUT.tables["latencies"].items()}


def _is_summary(start: bytes) -> bool:
    is_one = b'"input_config"' in start or b'"aiperf_version"' in start
    return is_one and begins_json(start, "request_throughput") and b'"per_combination_metrics"' not in start


def _run_of_summary(document: Node) -> Run:
    if document["request_count"].is_blank and document["error_request_count"].is_blank:
        raise document["request_count"].error("no such field: this is no summary of AIPerf, or a truncated one")
    version = document["aiperf_version"].text()
    cells = join_cells(
        _model_cells(document["input_config"]),
        _load_cells(document["input_config"], document["run_info"]),
        {"software": f"aiperf {version}" if version else "genai-perf", "date": document["start_time"].day()},
        {"note": "cancelled before its end" if document["was_cancelled"].value is True else ""},
    )
    return _run_of_metrics(document, cells)


def _run_of_metrics(document: Node, cells: dict[str, Any]) -> Run:
    n_done, n_failed = (float(np.nan_to_num(n)) for n in LAYOUT.read(document, "counts").values())
    lengths = LAYOUT.lengths(document)
    cells = {**cells, "n_request": n_done + n_failed, "n_failed": n_failed, **lengths}
    if not n_done > 0:
        return Run(document.place, document.line, cells | {"status": "failed"}, {})
    return LAYOUT.run(document, cells | LAYOUT.cells(document))


def _model_cells(config: Node) -> dict[str, str]:
    if config["models"].keys:
        names = [item["name"].text() for item in config["models"]["items"].items()]
    else:
        lists = (config["models"], config["model_names"], config["endpoint"]["model_names"], config["model"])
        named = next((node for node in lists if node.is_array and node.value), None)
        names = [item.text() for item in named.items()] if named else []
    if len(set(names)) > 1:
        raise config["models"].error("must name one model: the run mixes several")
    return model_cells(names[0]) if names else {}


def _load_cells(config: Node, info: Node) -> dict[str, Any]:
    phases = config["phases"]
    measured = [phase for phase in phases.items() if phase["kind"].text() in ("profiling", "")]
    if measured:
        phase = measured[0]
        return _load(phase["concurrency"], phase["rate"])
    for place in (config["loadgen"], config.at("perf_analyzer", "stimulus"), config):
        if not (place["concurrency"].is_blank and place["request_rate"].is_blank):
            return _load(place["concurrency"], place["request_rate"])
    varied = info["variation_values"]
    last = {key.rpartition(".")[2]: varied[key] for key in varied.keys}
    return _load(*(last.get(name, varied[name]) for name in ("concurrency", "rate")))


def _load(concurrency: Node, rate: Node) -> dict[str, Any]:
    if concurrency.is_blank and rate.is_blank:
        return {}
    return load_cells(concurrency.number(), rate.number())


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


def _is_summary_csv(start: bytes) -> bool:
    line = start.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].replace(b'"', b"")
    return line.startswith(b"Metric,") and b"avg" in line


def _is_sweep_csv(start: bytes) -> bool:
    line = start.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0]
    return line.startswith((b"concurrency,", b"request_rate,")) and b"request_latency_mean" in line


def _run_of_csv(source: Source) -> Run:
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
    return _run_of_metrics(Node(metrics, "", source.name), {"software": "aiperf"})


def _runs_of_sweep(source: Source) -> Iterator[Run]:
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
        yield _run_of_metrics(Node(metrics, "", source.name, line), {"software": "aiperf", **load})


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    return ((line, row) for line, row in csv_rows(source) if any(row))


def _number(metric: str, cell: str, place: str, line: int) -> float:
    return cell_node(cell.replace(",", ""), metric, place, line).number()


PHASE: Final = "profiling"
"""The measured phase."""


def _is_records(start: bytes) -> bool:
    line = start.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return begins_json(line, "metadata", "benchmark_phase", "metrics")


@dataclass
class _Samples:
    columns: dict[str, array[float]] = dataclasses.field(
        default_factory=lambda: {column: array("d") for column in LATENCIES}
    )
    n_failed: int = 0
    n_skipped: int = 0
    start_ns: float = math.inf
    end_ns: float = -math.inf

    def add(self, record: Node) -> None:
        metadata, metrics = record["metadata"], record["metrics"]
        if metadata["benchmark_phase"].text() != PHASE:
            self.n_skipped += 1
            return
        if record["error"].value:
            self.n_failed += 1
            return
        self.start_ns = min(self.start_ns, metadata["request_start_ns"].required_number())
        self.end_ns = max(self.end_ns, metadata["request_end_ns"].required_number())
        for column, field in LATENCIES.items():
            self.columns[column].extend(_values(metrics, column, field))

    def arrays(self) -> dict[str, Floats]:
        return {name: np.frombuffer(values) if len(values) else np.empty(0) for name, values in self.columns.items()}


def _values(metrics: Node, column: str, field: Field) -> Floats:
    metric = metrics.at(*field.holder)
    value = metric["value"]
    if column != "itl_s":
        if value.is_array:
            raise value.error("must be a number, got an array")
        return np.array([field._replace(name="value").read(metrics)])
    return np.empty(0) if value.is_blank else value.numbers() * field.unit(metric)


def _run_of_records(source: Source) -> Run:
    samples = _Samples()
    for record in iter_documents(source):
        if record["metadata"].is_blank or (record["metrics"].is_blank and record["error"].is_blank):
            raise record["metadata"].error("no such field: this is no record of AIPerf's requests")
        samples.add(record)
    arrays = samples.arrays()
    n_done = len(arrays["e2e_s"])
    if not n_done + samples.n_failed:
        problem = f"no request of the phase {PHASE!r}, only {samples.n_skipped} of others"
        raise SchemaError("metadata.benchmark_phase", problem, source.name)
    cells = {"n_request": n_done + samples.n_failed, "n_failed": samples.n_failed, "software": "aiperf"}
    if not n_done:
        return Run(source.name, 0, cells | {"status": "failed"}, {})
    duration_s = (samples.end_ns - samples.start_ns) * S_PER_NS
    if not duration_s > 0:
        raise SchemaError("metadata.request_end_ns", "must be after request_start_ns", source.name)
    n_input, n_output = (arrays[f"n_{part}_token_at_statistic"] for part in ("input", "output"))
    ttft_s, tpot_s, e2e_s = (arrays[name] for name in ("ttft_s", "tpot_s", "e2e_s"))
    known = request_samples(ttft_s, tpot_s, e2e_s, n_input, n_output, gap_s=arrays["itl_s"])
    cells |= length_cells(n_input, n_output) | {"duration_s": duration_s}
    totals = {
        "output_throughput_token_per_s": n_output.sum() / duration_s,
        "total_throughput_token_per_s": (n_input.sum() + n_output.sum()) / duration_s,
        "request_throughput_per_s": n_done / duration_s,
    }
    return Run(source.name, 0, cells, statistics_of(known), totals)


_REPEATED: Final = {"phases", "aggregate"}
"""Folders whose artifacts repeat those of other folders."""


_KINDS: Final = {
    "summary": _is_summary, "summary_csv": _is_summary_csv, "records": _is_records, "sweep": _is_sweep_csv,
}  # fmt: skip
"""Tests of the start of a file by kind of artifact."""


def _kind(start: bytes) -> str:
    return next((kind for kind, test in _KINDS.items() if test(start)), "")


def _select_files(paths: Sequence[Path], *suffixes: str) -> list[Path]:
    selected: list[Path] = []
    for path in paths:
        files = files_of([path], *suffixes)
        if not path.is_dir():
            selected += files
            continue
        kinds = {f: "archive" if is_archive(f) else _kind(start_of(f, *suffixes)) for f in files}
        own = [f for f in files if not _REPEATED & set(f.relative_to(path).parts[:-1])]
        once = [f for f in own if kinds[f] == "archive"]
        for folder in dict.fromkeys(f.parent for f in own):
            here = [f for f in own if f.parent == folder]
            ranked = ([f for f in here if kinds[f] == kind] for kind in ("summary", "summary_csv", "records"))
            once += next(filter(None, ranked), [])
        selected += once or [f for f in files if kinds[f] == "sweep"] or files
    return selected


def _iter_runs(source: Source) -> Iterator[Run]:
    start, name = source.start(), source.name.lower()
    if name.endswith(".jsonl") or _is_records(start):
        yield _run_of_records(source)
    elif _is_sweep_csv(start):
        yield from _runs_of_sweep(source)
    elif name.endswith(".csv") or _is_summary_csv(start):
        yield _run_of_csv(source)
    else:
        yield _run_of_summary(read_document(source))


FORMAT: Final = Format("aiperf", _iter_runs, lambda start: bool(_kind(start)), select=_select_files)
"""The entry of the registry."""
