"""AIPerf's and genai-perf's artifacts: the summary of a run (JSON or CSV), its requests (JSONL), a sweep's table.

Their *inter-token latency* is the mean gap of a request, our TPOT; *inter-chunk latency* pools single gaps, our ITL.
Every metric carries its unit. Within a folder of artifacts each run is read once, from its most complete file: the
summary in JSON, else in CSV, else the requests. A sweep's table is read only where its runs are absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from roofcast.data.importers.aiperf.aiperf_csv import is_summary_csv, is_sweep_csv, run_of_csv, runs_of_sweep
from roofcast.data.importers.aiperf.aiperf_summary import is_summary, run_of_summary
from roofcast.data.importers.aiperf.request_records import is_records, run_of_records
from roofcast.data.importers.client_runs import Run, run_reader
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import read_document
from roofcast.data.importers.sources import Source, files_of, is_archive, start_of

SUFFIXES: Final = (".json", ".jsonl", ".csv")
_REPEATED: Final = {"phases", "aggregate"}
"""Folders whose artifacts repeat those of other folders."""


_KINDS: Final = {
    "summary": is_summary, "summary_csv": is_summary_csv, "records": is_records, "sweep": is_sweep_csv,
}  # fmt: skip
"""Tests of the start of a file by kind of artifact."""


def _kind(start: bytes) -> str:
    return next((kind for kind, test in _KINDS.items() if test(start)), "")


def _select_files(paths: Sequence[Path]) -> list[Path]:
    selected: list[Path] = []
    for path in paths:
        files = files_of([path], *SUFFIXES)
        if not path.is_dir():
            selected += files
            continue
        kinds = {f: "archive" if is_archive(f) else _kind(start_of(f, *SUFFIXES)) for f in files}
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
    if name.endswith(".jsonl") or is_records(start):
        yield run_of_records(source)
    elif is_sweep_csv(start):
        yield from runs_of_sweep(source)
    elif name.endswith(".csv") or is_summary_csv(start):
        yield run_of_csv(source)
    else:
        yield run_of_summary(read_document(source))


FORMAT: Final = Format(
    name="aiperf",
    title="AIPerf and genai-perf, their JSON, JSONL and CSV artifacts",
    recognises=lambda start: bool(_kind(start)),
    read=run_reader(_iter_runs),
    suffixes=SUFFIXES,
    select=_select_files,
    conversions={
        "ttft_s": "`time_to_first_token`: by its unit",
        "nttft_s_per_token": "`time_to_first_token` over `input_sequence_length`, only of requests (JSONL)",
        "itl_s": "`inter_chunk_latency`: by its unit; not of genai-perf",
        "tpot_s": "`inter_token_latency`: by its unit",
        "e2e_s": "`request_latency`: by its unit",
        "output_throughput_token_per_s": "`output_token_throughput`, or tokens over the span of the requests (JSONL)",
        "total_throughput_token_per_s": "`total_token_throughput`, or tokens over the span of the requests (JSONL)",
        "request_throughput_per_s": "`request_throughput`, or requests over their span (JSONL)",
    },
)
"""The entry of the registry."""
