"""GuideLLM's reports, JSON or CSV: one file a sweep, one benchmark a level of load.

Its *inter-token latency* is the mean gap of a request, our TPOT; its *time per output token* counts the first token
and is not read. If a report holds every request, statistics are computed from the requests. Its own statistics weight
a request by its tokens: their mean of inter-token latency is the mean over all gaps, ITL; their percentiles serve as
percentiles of TPOT.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from roofcast.data.importers.format import Format
from roofcast.data.importers.guidellm.csv_report import benchmarks_of_csv, is_guidellm_csv
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
from roofcast.data.importers.sources import Source, files_of, start_of, without_twins
from roofcast.data.json_input import Floats, Node, begins_json, read_document
from roofcast.data.specs import STATISTICS
from roofcast.data.units import s_from_ms

SUFFIXES: Final = (".json", ".csv")
REQUEST_KEYS: Final = (
    "request_latency", "time_to_first_token_ms", "inter_token_latency_ms", "prompt_tokens", "output_tokens",
)  # fmt: skip
"""Fields of a request that are read."""

LATENCIES: Final = {
    "time_to_first_token_ms": ("ttft_s", s_from_ms(1.0)),
    "inter_token_latency_ms": ("tpot_s", s_from_ms(1.0)),
    "request_latency": ("e2e_s", 1.0),
    "prompt_token_count": ("n_input_token_at_statistic", 1.0),
    "output_token_count": ("n_output_token_at_statistic", 1.0),
}
"""Distributions of a benchmark: our column, and the factor to our unit."""

THROUGHPUTS: Final = {
    "output_tokens_per_second": "output_throughput_token_per_s",
    "tokens_per_second": "total_throughput_token_per_s",
    "requests_per_second": "request_throughput_per_s",
}
_RATES: Final = ("constant", "poisson", "async")


def recognises(file: Path) -> bool:
    """Return whether the file begins as a report of GuideLLM, in JSON or CSV."""
    start = start_of(file, *SUFFIXES)
    return begins_json(start, b'"guidellm_version"') or is_guidellm_csv(start)


def _select_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files to read, without CSV reports that have a JSON twin of the same name."""
    return without_twins(files_of(paths, *SUFFIXES), ".json")


def _iter_runs(source: Source) -> Iterator[Run]:
    if source.name.lower().endswith(".csv"):
        report = benchmarks_of_csv(source)
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
    n_failed, n_cut = (totals[name].number() for name in ("errored", "incomplete"))
    n_failed, n_cut = (0.0 if math.isnan(n) else n for n in (n_failed, n_cut))
    cells = join_cells(
        _context(report, benchmark),
        {"n_request": n_done + n_failed, "n_failed": n_failed},
        {"note": f"{n_cut:g} requests were cut off at the end" if n_cut else ""},
    )
    if not n_done > 0:
        return Run(benchmark.place, benchmark.line, cells | _planned_lengths(report) | {"status": "failed"}, {})
    metrics = benchmark["metrics"]
    throughputs = {column: _mean(metrics[name]["successful"]) for name, column in THROUGHPUTS.items()}
    lengths = {
        column: _mean(metrics[name]["successful"])
        for name, column in (("prompt_token_count", "n_input_token"), ("output_token_count", "n_output_token"))
    }
    statistics, lengths["length_variation"] = _statistics(benchmark, n_done)
    statistics["mean"]["itl_s"] = s_from_ms(_mean(metrics["inter_token_latency_ms"]["successful"]))
    return Run(benchmark.place, benchmark.line, cells | lengths, statistics, throughputs, derived=("itl_s",))


def _statistics(benchmark: Node, n_done: float) -> tuple[dict[str, dict[str, float]], float]:
    """Return statistics and length variation, from the requests if the report holds all of them."""
    done = benchmark["requests"]["successful"]
    if done.is_array and len(done.value) == n_done:
        samples = _samples(done)
        return statistics_of(samples), variation_of(samples["n_output_token_at_statistic"])
    metrics = benchmark["metrics"]
    statistics = {
        statistic: {
            column: unit * _statistic(metrics[name]["successful"], statistic)
            for name, (column, unit) in LATENCIES.items()
        }
        for statistic in STATISTICS
    }
    lengths = metrics["output_token_count"]["successful"]
    mean = _mean(lengths)
    return statistics, lengths["std_dev"].number() / mean if mean > 0 else math.nan


def _samples(done: Node) -> dict[str, Floats]:
    requests = done.items()
    latency_s, ttft_ms, gap_ms, n_input, n_output = (
        np.array([request[key].number() for request in requests]) for key in REQUEST_KEYS
    )
    ttft_s = s_from_ms(1.0) * ttft_ms
    samples = {
        "ttft_s": ttft_s,
        "nttft_s_per_token": ttft_s[n_input > 0] / n_input[n_input > 0],
        "tpot_s": s_from_ms(1.0) * gap_ms[n_output > 1],
        "e2e_s": latency_s,
        "n_input_token_at_statistic": n_input,
        "n_output_token_at_statistic": n_output,
    }
    return {column: values[~np.isnan(values)] for column, values in samples.items()}


def _statistic(distribution: Node, statistic: str) -> float:
    if not distribution["count"].number() > 0:
        return math.nan
    node = distribution["mean"] if statistic == "mean" else distribution["percentiles"][statistic]
    return node.number()


def _mean(distribution: Node) -> float:
    return _statistic(distribution, "mean")


def _context(report: Node, benchmark: Node) -> dict[str, Any]:
    backend = report.at("config", "spec", "backend", "model")
    model = backend if not backend.is_blank else benchmark.at("config", "backend", "model")
    version = report.at("metadata", "guidellm_version").text()
    return join_cells(
        model_cells(model.text()),
        _load(benchmark.at("config", "strategy")),
        {
            "duration_s": benchmark["duration"].number(),
            "date": _date(benchmark["start_time"]),
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


def _date(node: Node) -> str:
    """Return the day, in UTC, of seconds since 1970."""
    start_s = node.number()
    if math.isnan(start_s):
        return ""
    try:
        return dt.datetime.fromtimestamp(start_s, dt.UTC).date().isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise node.error(f"must be seconds since 1970, got {start_s:g}") from error


def _planned_lengths(report: Node) -> dict[str, float]:
    """Return the configured request lengths, for a run without a completed request."""
    data = report.at("config", "spec")["data"]
    first = data.items()[0] if data.is_array and data.value else data["none"]
    names = {"prompt_tokens": "n_input_token", "output_tokens": "n_output_token"}
    return {column: first[name].number() for name, column in names.items()}


FORMAT: Final = Format(
    name="guidellm",
    title="GuideLLM, its JSON or CSV report",
    delivers=CLIENT_OUTCOMES,
    statistics=STATISTICS,
    recognises=recognises,
    read=run_reader(_iter_runs, SUFFIXES, _select_files),
    suffixes=SUFFIXES,
    conversions={
        "ttft_s": "`time_to_first_token_ms`: from ms",
        "nttft_s_per_token": "`time_to_first_token_ms` over `prompt_tokens`, only where every request is held",
        "itl_s": "mean of `inter_token_latency_ms`, which weights by gaps: from ms; no percentile",
        "tpot_s": "`inter_token_latency_ms`: from ms; `time_per_output_token_ms` counts the first token: not read",
        "e2e_s": "`request_latency`: in s",
        "output_throughput_token_per_s": "mean of `output_tokens_per_second` of successful requests",
        "total_throughput_token_per_s": "mean of `tokens_per_second` of successful requests",
        "request_throughput_per_s": "mean of `requests_per_second` of successful requests",
    },
)  # fmt: skip
"""The entry of the registry."""
