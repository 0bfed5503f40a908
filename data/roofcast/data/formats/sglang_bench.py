"""Result files of SGLang's ``bench_serving``: JSON lines, each of them a run that was appended to the file.

Statistics are in ms; ``--output-details`` adds arrays over requests, in seconds, out of which every statistic is
computed. `concurrency` is what was measured, `max_concurrency` what was asked for. The server's own account of
itself, `server_info`, tells model, version and parallelism where SGLang itself was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from roofcast.data.formats.bench_arrays import ARRAY_KEYS, request_arrays
from roofcast.data.formats.documents import Node, iter_documents
from roofcast.data.formats.format import NOTHING_GIVEN, Format, Given, Progress, no_progress
from roofcast.data.formats.runs import (
    Run,
    join_cells,
    load_cells,
    model_cells,
    rate_note,
    statistics_of,
    table_of_runs,
)
from roofcast.data.formats.sources import iter_sources, start_of
from roofcast.data.formats.vllm_bench import check_keys, rate_of, summary_statistics
from roofcast.data.specs import STATISTICS

SUFFIXES: Final = (".jsonl",)
LATENCIES: Final = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2e_latency": "e2e_s"}
THROUGHPUTS: Final = {
    "output_throughput": "output_throughput_token_per_s",
    "total_throughput": "total_throughput_token_per_s",
    "request_throughput": "request_throughput_per_s",
}
_MARKS: Final = (b'"total_output_tokens_retokenized"', b'"request_throughput"')
_SWITCH: Final = {True: "on", False: "off"}


def recognises(file: Path) -> bool:
    """Return whether the file begins as a JSON object with SGLang's names of its totals."""
    start = start_of(file, *SUFFIXES)
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and all(mark in start for mark in _MARKS)


def read(
    paths: Sequence[Path], campaign: str, progress: Progress = no_progress, given: Given = NOTHING_GIVEN
) -> pd.DataFrame:
    """Return a row for each statistic of each line.

    Parameters
    ----------
    paths
        Result files, folders of them, or archives.
    campaign
        Name under which the rows are kept.
    progress
        Wraps the files while they are read.
    given
        For what the files leave blank, the accelerator above all; what `check_given` returned.

    Raises
    ------
    SchemaError
        If a line is damaged, of another format, contradicts itself or what is given, or leaves blank what is not
        given; names file, line and field.
    """
    sources = progress(iter_sources(paths, *SUFFIXES))
    runs = [_run(document) for source in sources for document in iter_documents(source, _kept)]
    return table_of_runs(runs, campaign, given)


def _kept(members: dict[str, Any]) -> dict[str, Any]:
    members.pop("generated_texts", None)
    members.pop("internal_states", None)
    return members


def _run(document: Node) -> Run:
    check_keys(
        document, ("completed", "duration", "output_throughput", "request_throughput"), "SGLang's bench_serving"
    )
    n_done = document["completed"].number()
    cells = _context(document)
    if not n_done > 0:
        return Run(document.place, document.line, cells | {"status": "failed"}, {})
    totals = {column: document[name].number() for name, column in THROUGHPUTS.items()}
    cells = join_cells(
        cells,
        {
            "n_input_token": document["total_input_tokens"].number() / n_done,
            "n_output_token": document["total_output_tokens"].number() / n_done,
            "note": rate_note(cells.get("request_rate", math.nan), totals["request_throughput_per_s"]),
        },
    )
    if not all(isinstance(document[key].value, list) for key in ARRAY_KEYS):
        return Run(document.place, document.line, cells, summary_statistics(document, LATENCIES), totals)
    n_sent = len(document["input_lens"].items())
    counts = {"n_request": n_sent, "n_failed": n_sent - n_done} if n_sent >= n_done else {}
    return Run(document.place, document.line, cells | counts, statistics_of(request_arrays(document)), totals)


def _context(document: Node) -> dict[str, Any]:
    n_done = document["completed"].number()
    return join_cells(
        load_cells(document["max_concurrency"].number(), rate_of(document["request_rate"])),
        {"duration_s": document["duration"].number(), "software": "sglang bench_serving"},
        {"n_request": n_done} if n_done > 0 else {},
        dict(_server_cells(document["server_info"])),
        {"note": "speculative decoding" if document["accept_length"].number() > 0 else ""},
    )


def _server_cells(server: Node) -> Iterator[tuple[str, Any]]:
    """Yield what an SGLang server says of itself, column by column; nothing of another server's account."""
    if not isinstance(server.value, dict) or server["model_path"].is_blank:
        return
    yield "engine", "sglang"
    yield "engine_version", server["version"].text()
    yield from model_cells(server["model_path"].text()).items()
    for name, column in (("tp_size", "tp"), ("pp_size", "pp"), ("dp_size", "dp"), ("ep_size", "ep")):
        yield column, server[name].number()
    is_cached = server["disable_radix_cache"].value
    if isinstance(is_cached, bool):
        yield "prefix_caching", _SWITCH[not is_cached]


FORMAT: Final = Format(
    name="sglang_bench",
    title="SGLang bench_serving, its JSON lines",
    delivers=(
        "ttft_s", "nttft_s_per_token", "itl_s", "tpot_s", "e2e_s",
        "output_throughput_token_per_s", "total_throughput_token_per_s", "request_throughput_per_s",
    ),
    statistics=STATISTICS,
    recognises=recognises,
    read=read,
    suffixes=SUFFIXES,
    conversions={
        "ttft_s": "`ttfts`, or `*_ttft_ms`: from ms",
        "nttft_s_per_token": "`ttfts` over `input_lens`, only of a detailed file",
        "itl_s": "`itls`, all pooled, or `*_itl_ms`: from ms",
        "tpot_s": "(E2E - `ttfts`) / (`output_lens` - 1), or `*_tpot_ms`: from ms",
        "e2e_s": "`ttfts` + sum of `itls`, or `*_e2e_latency_ms`: from ms",
        "output_throughput_token_per_s": "`output_throughput`: as it is",
        "total_throughput_token_per_s": "`total_throughput`: as it is",
        "request_throughput_per_s": "`request_throughput`: as it is; `request_rate` is the one asked for",
    },
)  # fmt: skip
"""The entry of the registry."""
