"""Result files of ``vllm bench serve``: one flat JSON object a run.

Statistics are in ms and stand under ``mean_ttft_ms``, ``median_ttft_ms``, ``p99_ttft_ms`` ...; which percentiles and
whether E2E is among them is the user's choice. With ``--save-detailed`` the file holds arrays over requests, in
seconds, out of which every statistic is computed. ``--metadata name=value`` is read where the name is a column of
the measurement table. The `backend` names how requests are written, not the engine that answers them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.formats.bench_arrays import ARRAY_KEYS, request_arrays
from roofcast.data.formats.documents import Node, read_document
from roofcast.data.formats.format import NOTHING_GIVEN, Format, Given, Progress, no_progress
from roofcast.data.formats.given import GIVABLE_COLUMNS, fill, parse_cell
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
from roofcast.data.specs import STATISTICS
from roofcast.data.units import s_from_ms

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
    start = start_of(file, *SUFFIXES)
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and all(mark in start for mark in _MARKS)


def read(
    paths: Sequence[Path], campaign: str, progress: Progress = no_progress, given: Given = NOTHING_GIVEN
) -> pd.DataFrame:
    """Return a row for each statistic of each file.

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
        If a file is damaged, of another format, contradicts itself or what is given, or leaves blank what is not
        given; names file and field.
    """
    runs = [_run(read_document(source, _kept)) for source in progress(iter_sources(paths, *SUFFIXES))]
    return table_of_runs(runs, campaign, given)


def _kept(members: dict[str, Any]) -> dict[str, Any]:
    members.pop("generated_texts", None)
    return members


def _run(document: Node) -> Run:
    check_keys(document, ("completed", "duration", *THROUGHPUTS), "vllm bench serve")
    n_done = document["completed"].number()
    n_failed = _failed(document, n_done)
    cells = join_cells(_context(document), {"n_request": n_done + n_failed, "n_failed": n_failed})
    if not n_done > 0:
        return Run(document.place, document.line, _named(document, cells | {"status": "failed"}), {})
    totals = {column: document[name].number() for name, column in THROUGHPUTS.items()}
    cells = join_cells(
        cells, {"note": rate_note(cells.get("request_rate", math.nan), totals["request_throughput_per_s"])}
    )
    if all(isinstance(document[key].value, list) for key in ARRAY_KEYS):
        arrays = request_arrays(document)
        statistics = statistics_of(arrays)
        lengths = {name: float(arrays[f"{name}_at_statistic"].mean()) for name in ("n_input_token", "n_output_token")}
    else:
        statistics = summary_statistics(document, LATENCIES)
        lengths = {
            "n_input_token": document["total_input_tokens"].number() / n_done,
            "n_output_token": document["total_output_tokens"].number() / n_done,
        }
    return Run(document.place, document.line, _named(document, cells | lengths), statistics, totals)


def _failed(document: Node, n_done: float) -> float:
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
        raise node.refusal(f"must be a date such as 20251120-045613, got {text[:60]!r}")
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}" if text else ""


def _named(document: Node, cells: dict[str, Any]) -> dict[str, Any]:
    """Return the cells with the user's own metadata whose names are columns."""
    metadata: dict[str, object] = {}
    for key in document.keys:
        node = document[key]
        if key in GIVABLE_COLUMNS and key not in _OWN_KEYS and node.value not in (None, ""):
            try:
                metadata[key] = parse_cell(key, node.value)
            except InputError as error:
                raise node.refusal(error.problem) from error
    return fill(cells, metadata, document.place, document.line)


def check_keys(document: Node, keys: Sequence[str], tool: str) -> None:
    """Refuse a document that lacks one of the keys.

    Raises
    ------
    SchemaError
        If a key is missing; names it.
    """
    for key in keys:
        if document[key].is_blank:
            raise document[key].refusal(f"no such field: this is no result of {tool}, or a truncated one")


def rate_of(node: Node) -> float:
    """Return the rate that was asked for, in requests per second; NaN if there was no limit.

    Raises
    ------
    SchemaError
        If it is neither a number above 0 nor ``inf``.
    """
    if node.is_blank or node.value in ("inf", "Infinity", math.inf):
        return math.nan
    try:
        rate = float(node.value) if isinstance(node.value, str) else node.number()
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise node.refusal(f"must be a rate above 0 or inf, got {str(node.value)[:60]!r}")
    return rate


def summary_statistics(document: Node, latencies: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return what a file of vLLM's or SGLang's manner says of each statistic, in seconds; NaN where nothing."""
    return {
        statistic: {column: _summary(document, statistic, name) for name, column in latencies.items()}
        for statistic in STATISTICS
    }


def _summary(document: Node, statistic: str, name: str) -> float:
    value_ms = document[f"{statistic}_{name}_ms"].number()
    if statistic == "p50" and math.isnan(value_ms):
        value_ms = document[f"median_{name}_ms"].number()
    return s_from_ms(value_ms)


FORMAT: Final = Format(
    name="vllm_bench",
    title="vllm bench serve, its JSON result",
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
        "tpot_s": "(`latencies` - `ttfts`) / (`output_lens` - 1), or `*_tpot_ms`: from ms",
        "e2e_s": "`latencies` (or `ttfts` + sum of `itls`), or `*_e2el_ms`: from ms",
        "output_throughput_token_per_s": "`output_throughput`: as it is",
        "total_throughput_token_per_s": "`total_token_throughput`: as it is",
        "request_throughput_per_s": "`request_throughput`: as it is; `request_rate` is the one asked for",
    },
)  # fmt: skip
"""The entry of the registry."""
