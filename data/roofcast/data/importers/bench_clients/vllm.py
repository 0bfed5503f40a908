"""Result files of ``vllm bench serve``: one flat JSON object a run.

Statistics are in ms, named ``mean_ttft_ms``, ``median_ttft_ms``, ``p99_ttft_ms`` ...; the user chooses the
percentiles, and whether E2E is among the metrics. With ``--save-detailed`` the file holds arrays over requests, in
seconds, from which every statistic is then computed. ``--metadata name=value`` is read if the name is a column of
the measurement table. `backend` names the request format, not the engine that answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.importers.bench_clients.arrays import (
    has_arrays,
    mean_lengths,
    rate_of,
    request_arrays,
    summary_statistics,
    without_generated_texts,
)
from roofcast.data.importers.format import Format
from roofcast.data.importers.overrides import OVERRIDABLE_COLUMNS, fill_blanks, parse_cell
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
from roofcast.data.json_input import Node, begins_json, check_keys, read_document
from roofcast.data.specs import STATISTICS

SUFFIXES: Final = (".json",)
LATENCIES: Final = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "itl_s", "e2el": "e2e_s"}
THROUGHPUTS: Final = {
    "output_throughput": "output_throughput_token_per_s",
    "total_token_throughput": "total_throughput_token_per_s",
    "request_throughput": "request_throughput_per_s",
}
_OWN_KEYS: Final = {"date", "request_rate"}
_MARKS: Final = (b'"model_id"', b'"total_output_tokens"', b'"request_throughput"')


def recognises(file: Path) -> bool:
    """Return whether the file begins as a JSON object with vLLM's names of its totals."""
    return begins_json(start_of(file, *SUFFIXES), *_MARKS)


def _runs(source: Source) -> Iterator[Run]:
    yield _run(read_document(source, without_generated_texts))


def _run(document: Node) -> Run:
    check_keys(document, ("completed", "duration", *THROUGHPUTS), "vllm bench serve")
    n_done = document["completed"].number()
    n_failed = _n_failed(document, n_done)
    cells = join_cells(_context(document), {"n_request": n_done + n_failed, "n_failed": n_failed})
    if not n_done > 0:
        return Run(document.place, document.line, _with_metadata(document, cells | {"status": "failed"}), {})
    totals = {column: document[name].number() for name, column in THROUGHPUTS.items()}
    if has_arrays(document):
        arrays = request_arrays(document)
        statistics = statistics_of(arrays)
        lengths = {name: float(arrays[f"{name}_at_statistic"].mean()) for name in ("n_input_token", "n_output_token")}
        lengths["length_variation"] = variation_of(arrays["n_output_token_at_statistic"])
    else:
        statistics = summary_statistics(document, LATENCIES)
        lengths = mean_lengths(document, n_done)
    return Run(document.place, document.line, _with_metadata(document, cells | lengths), statistics, totals)


def _n_failed(document: Node, n_done: float) -> float:
    failed = document["failed"].number()
    return failed if not math.isnan(failed) else max(document["num_prompts"].number() - n_done, 0.0)


def _context(document: Node) -> dict[str, Any]:
    rate = rate_of(document["request_rate"])
    return join_cells(
        model_cells(document["model_id"].text()),
        load_cells(document["max_concurrency"].number(), rate),
        {
            "duration_s": document["duration"].number(),
            "date": _date(document["date"]),
            "software": "vllm bench serve",
        },
        {"note": "speculative decoding" if any(key.startswith("spec_decode_") for key in document.keys) else ""},
    )


def _date(node: Node) -> str:
    """Return the day of ``20251120-045613``."""
    text = node.text()
    if text and not (len(text) >= 8 and text[:8].isascii() and text[:8].isdigit()):
        raise node.error(f"must be a date such as 20251120-045613, got {text[:60]!r}")
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}" if text else ""


def _with_metadata(document: Node, cells: dict[str, Any]) -> dict[str, Any]:
    """Return the cells with the user's metadata whose names are columns."""
    metadata: dict[str, object] = {}
    for key in document.keys:
        node = document[key]
        if key in OVERRIDABLE_COLUMNS and key not in _OWN_KEYS and node.value not in (None, ""):
            try:
                metadata[key] = parse_cell(key, node.text() if isinstance(node.value, str) else node.value)
            except InputError as error:
                raise node.error(error.problem) from error
    return fill_blanks(cells, metadata, document.place, document.line)


FORMAT: Final = Format(
    name="vllm_bench",
    title="vllm bench serve, its JSON result",
    delivers=CLIENT_OUTCOMES,
    statistics=STATISTICS,
    recognises=recognises,
    read=run_reader(_runs, SUFFIXES),
    suffixes=SUFFIXES,
    conversions={
        "ttft_s": "`ttfts`, or `*_ttft_ms`: from ms",
        "nttft_s_per_token": "`ttfts` over `input_lens`, only of a detailed file",
        "itl_s": "`itls`, all pooled, or `*_itl_ms`: from ms",
        "tpot_s": "(`latencies` - `ttfts`) / (`output_lens` - 1), or `*_tpot_ms`: from ms",
        "e2e_s": "`latencies` (or `ttfts` + sum of `itls`), or `*_e2el_ms`: from ms",
        "output_throughput_token_per_s": "`output_throughput`: as it is",
        "total_throughput_token_per_s": "`total_token_throughput`: as it is",
        "request_throughput_per_s": "`request_throughput`: as it is; `request_rate` is that of the load",
    },
)  # fmt: skip
"""The entry of the registry."""
