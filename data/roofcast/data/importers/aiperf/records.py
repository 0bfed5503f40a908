"""AIPerf's request records, one JSON object a line; those of the warm-up are skipped."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from roofcast.data.errors import InputError, SchemaError
from roofcast.data.importers.aiperf.summary import LATENCIES, LENGTHS, UNKNOWN_UNIT, in_our_unit
from roofcast.data.importers.runs import Run, statistics_of, variation_of
from roofcast.data.importers.sources import Source
from roofcast.data.json_input import Floats, Node, begins_json, iter_documents
from roofcast.data.measurements.quantities import s_from_unit

PHASE: Final = "profiling"
"""The measured phase."""

_MARKS: Final = (b'"metadata"', b'"benchmark_phase"', b'"metrics"')


def is_records(start: bytes) -> bool:
    """Return whether the start of a file is that of request records, one a line."""
    line = start.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return begins_json(line, *_MARKS)


@dataclass
class _Samples:
    """Values of the requests read so far, NaN where absent; the gaps are pooled over requests."""

    columns: dict[str, array[float]] = field(
        default_factory=lambda: {name: array("d") for name in (*LATENCIES.values(), *LENGTHS.values())}
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
        for metric, column in (LATENCIES | LENGTHS).items():
            if column == "itl_s":
                self.columns[column].extend(_gaps_s(metrics[metric]))
            else:
                self.columns[column].append(_number(metrics[metric], metric))

    def arrays(self) -> dict[str, Floats]:
        return {name: np.frombuffer(values) if len(values) else np.empty(0) for name, values in self.columns.items()}


def run_of_records(source: Source) -> Run:
    """Return the run of a file of requests.

    Throughputs are over the time from the start of the first request to the end of the last.

    Raises
    ------
    SchemaError
        If a line is damaged or no record of a request, or none is of the measured phase; names line and field.
    """
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
    duration_s = s_from_unit(samples.end_ns - samples.start_ns, "ns")
    if not duration_s > 0:
        raise SchemaError("metadata.request_end_ns", "must be after request_start_ns", source.name)
    n_input, n_output = (arrays[name] for name in LENGTHS.values())
    arrays["nttft_s_per_token"] = np.divide(
        arrays["ttft_s"], n_input, out=np.full(n_done, math.nan), where=n_input > 0
    )
    known = {name: values[~np.isnan(values)] for name, values in arrays.items()}
    lengths = {"n_input_token": n_input.mean(), "n_output_token": n_output.mean(), "duration_s": duration_s}
    lengths["length_variation"] = variation_of(n_output)
    totals = {
        "output_throughput_token_per_s": n_output.sum() / duration_s,
        "total_throughput_token_per_s": (n_input.sum() + n_output.sum()) / duration_s,
        "request_throughput_per_s": n_done / duration_s,
    }
    return Run(source.name, 0, cells | lengths, statistics_of(known), totals)


def _number(metric: Node, name: str) -> float:
    value = metric["value"]
    if value.is_array:
        raise value.error("must be a number, got an array")
    return value.number() * _unit(metric, name) if not value.is_blank else math.nan


def _gaps_s(metric: Node) -> Floats:
    value = metric["value"]
    if value.is_blank:
        return np.empty(0)
    return value.numbers() * _unit(metric, "inter_chunk_latency")


def _unit(metric: Node, name: str) -> float:
    try:
        return in_our_unit(name, 1.0, metric["unit"].text() or UNKNOWN_UNIT)
    except InputError as error:
        raise metric["unit"].error(error.problem) from error
