"""inference-perf of the Kubernetes SIGs: its JSON report of a stage (``stage_N_lifecycle_metrics.json``).

Latencies are in seconds. The report has neither model nor accelerator, and that of all stages together
(``summary_lifecycle_metrics.json``) has no load. Percentiles of 50 are named median.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.importers.client_runs import Run, join_cells, load_cells, run_reader
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, check_keys, json_marks, read_document
from roofcast.data.importers.layout import OWN_NAMES, Field, read_fields, read_statistics
from roofcast.data.importers.sources import Source

NAMES: Final = {**OWN_NAMES, "p50": ("median", "p50")}
LATENCIES: Final = tuple(
    Field(column, "{}", f"successes.latency.{name}")
    for column, name in {
        "ttft_s": "time_to_first_token",
        "tpot_s": "time_per_output_token",
        "itl_s": "inter_token_latency",
        "e2e_s": "request_latency",
    }.items()
)
TOTALS: Final = (
    Field("output_throughput_token_per_s", "output_tokens_per_sec", "successes.throughput"),
    Field("total_throughput_token_per_s", "total_tokens_per_sec", "successes.throughput"),
    Field("request_throughput_per_s", "requests_per_sec", "successes.throughput"),
)
LENGTHS: Final = {"n_input_token": ("prompt_tokens", "prompt_len"), "n_output_token": ("output_len", "output_tokens")}
"""Distributions of request lengths, the preferred one first: early versions have ``prompt_len``."""


def _runs(source: Source) -> Iterator[Run]:
    yield _run(read_document(source))


def _run(report: Node) -> Run:
    check_keys(report, ("load_summary", "successes", "failures"), "inference-perf")
    successes, load = report["successes"], report["load_summary"]
    n_done, n_failed = successes["count"].required_number(), report["failures"]["count"].required_number()
    lengths = {
        column: next((n for name in names if (n := successes[name]["mean"].number()) > 0), math.nan)
        for column, names in LENGTHS.items()
    }
    cells = join_cells(
        _load(load),
        lengths,
        _cache(successes["prompt_tokens"]),
        {
            "n_request": n_done + n_failed,
            "n_failed": n_failed,
            "duration_s": report["benchmark_time_seconds"].number(),
            "software": "inference-perf",
        },
    )
    if not n_done > 0:
        return Run(report.place, report.line, cells | {"status": "failed"}, {})
    statistics = read_statistics(report, LATENCIES, NAMES)
    return Run(report.place, report.line, cells, statistics, read_fields(report, TOTALS))


def _load(load: Node) -> dict[str, Any]:
    concurrency, rate = load["concurrency"].number(), load["requested_rate"].number()
    if math.isnan(concurrency) and not rate > 0:
        return {}  # asked for, rather than taken for an offline load
    return load_cells(concurrency, math.nan if concurrency > 0 else rate)


def _cache(tokens: Node) -> dict[str, float]:
    n_token, n_cached = tokens["total"].number(), tokens["cached"].number()
    return {"prefix_cache_ratio": n_cached / n_token} if 0 < n_cached <= n_token else {}


FORMAT: Final = Format(
    name="inference_perf",
    title="inference-perf, its JSON report of a stage",
    recognises=json_marks("load_summary", "successes", "failures", "request_latency"),
    read=run_reader(_runs),
    suffixes=(".json",),
    conversions={
        "ttft_s": "`time_to_first_token`: in s",
        "itl_s": "`inter_token_latency`, all gaps pooled: in s",
        "tpot_s": "`time_per_output_token`, which excludes the first token: in s; the normalised one counts it",
        "e2e_s": "`request_latency`: in s",
        "output_throughput_token_per_s": "`output_tokens_per_sec`: as it is",
        "total_throughput_token_per_s": "`total_tokens_per_sec`: as it is",
        "request_throughput_per_s": "`requests_per_sec`: as it is; `requested_rate` is that of the load",
    },
)
"""The entry of the registry."""
