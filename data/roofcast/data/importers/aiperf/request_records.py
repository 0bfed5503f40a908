"""AIPerf's request records, one JSON object a line; those of the warm-up are skipped."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from roofcast.data.errors import SchemaError
from roofcast.data.importers.aiperf.aiperf_summary import LATENCIES
from roofcast.data.importers.client_runs import Run, statistics_of, variation_of
from roofcast.data.importers.json_input import Floats, Node, begins_json, iter_documents
from roofcast.data.importers.layout import Field
from roofcast.data.importers.sources import Source
from roofcast.data.units import S_PER_NS

PHASE: Final = "profiling"
"""The measured phase."""


def is_records(start: bytes) -> bool:
    """Return whether the start of a file is that of request records, one a line."""
    line = start.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return begins_json(line, "metadata", "benchmark_phase", "metrics")


@dataclass
class _Samples:
    columns: dict[str, array[float]] = field(default_factory=lambda: {one.column: array("d") for one in LATENCIES})
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
        for one in LATENCIES:
            self.columns[one.column].extend(_values(metrics, one))

    def arrays(self) -> dict[str, Floats]:
        return {name: np.frombuffer(values) if len(values) else np.empty(0) for name, values in self.columns.items()}


def _values(metrics: Node, one: Field) -> Floats:
    metric = metrics[one.holder]
    value = metric["value"]
    if one.column != "itl_s":
        if value.is_array:
            raise value.error("must be a number, got an array")
        return np.array([one._replace(name="value").read(metrics)])
    return np.empty(0) if value.is_blank else value.numbers() * one.factor(metric)


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
    duration_s = (samples.end_ns - samples.start_ns) * S_PER_NS
    if not duration_s > 0:
        raise SchemaError("metadata.request_end_ns", "must be after request_start_ns", source.name)
    n_input, n_output = (arrays[f"n_{part}_token_at_statistic"] for part in ("input", "output"))
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
