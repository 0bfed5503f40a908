"""Result files of SGLang's ``bench_serving``: JSON lines, each of them a run that was appended to the file.

Statistics are in ms; ``--output-details`` adds arrays over requests, in seconds, from which every statistic is then
computed. `concurrency` is measured, `max_concurrency` is the setting. `server_info` has model, version and
parallelism if the server is SGLang.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from roofcast.data.importers.bench_clients.arrays import (
    has_arrays,
    mean_lengths,
    rate_of,
    request_arrays,
    summary_statistics,
    without_generated_texts,
)
from roofcast.data.importers.format import Format
from roofcast.data.importers.runs import (
    CLIENT_OUTCOMES,
    Run,
    join_cells,
    load_cells,
    model_cells,
    run_reader,
    statistics_of,
    variation_of,
)
from roofcast.data.importers.sources import Source, start_of
from roofcast.data.json_input import Node, begins_json, check_keys, iter_documents
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
    return begins_json(start_of(file, *SUFFIXES), *_MARKS)


def _runs(source: Source) -> Iterator[Run]:
    yield from map(_run, iter_documents(source, _drop_unused))


def _drop_unused(members: dict[str, Any]) -> dict[str, Any]:
    members.pop("internal_states", None)
    return without_generated_texts(members)


def _run(document: Node) -> Run:
    check_keys(
        document, ("completed", "duration", "output_throughput", "request_throughput"), "SGLang's bench_serving"
    )
    n_done = document["completed"].number()
    cells = _context(document)
    if not n_done > 0:
        return Run(document.place, document.line, cells | {"status": "failed"}, {})
    totals = {column: document[name].number() for name, column in THROUGHPUTS.items()}
    cells |= mean_lengths(document, n_done)
    if not has_arrays(document):
        return Run(document.place, document.line, cells, summary_statistics(document, LATENCIES), totals)
    n_sent = len(document["input_lens"].items())
    arrays = request_arrays(document)
    cells |= {"n_request": n_sent, "n_failed": n_sent - n_done} if n_sent >= n_done else {}
    cells["length_variation"] = variation_of(arrays["n_output_token_at_statistic"])
    return Run(document.place, document.line, cells, statistics_of(arrays), totals)


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
    """Yield the columns of an SGLang server's description; none for another server's."""
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
    delivers=CLIENT_OUTCOMES,
    statistics=STATISTICS,
    recognises=recognises,
    read=run_reader(_runs, SUFFIXES),
    suffixes=SUFFIXES,
    conversions={
        "ttft_s": "`ttfts`, or `*_ttft_ms`: from ms",
        "nttft_s_per_token": "`ttfts` over `input_lens`, only of a detailed file",
        "itl_s": "`itls`, all pooled, or `*_itl_ms`: from ms",
        "tpot_s": "(E2E - `ttfts`) / (`output_lens` - 1), or `*_tpot_ms`: from ms",
        "e2e_s": "`ttfts` + sum of `itls`, or `*_e2e_latency_ms`: from ms",
        "output_throughput_token_per_s": "`output_throughput`: as it is",
        "total_throughput_token_per_s": "`total_throughput`: as it is",
        "request_throughput_per_s": "`request_throughput`: as it is; `request_rate` is that of the load",
    },
)  # fmt: skip
"""The entry of the registry."""
