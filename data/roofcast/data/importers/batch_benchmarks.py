"""Benchmarks of a batch or an offline load, by vLLM and by SGLang.

They are vLLM's ``bench latency`` and ``bench throughput``, and SGLang's ``bench_one_batch``,
``bench_one_batch_server`` and ``bench_offline_throughput``.
None of them names model or accelerator, and vLLM's JSON has no request lengths either: overrides give them. Times are
in seconds. A batch starts together: the latency of the batch is the E2E of each request.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.importers.client_runs import Run, run_reader, statistics_of
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, check_keys, iter_documents, json_marks, read_document
from roofcast.data.importers.layout import Field, read_fields
from roofcast.data.importers.printed_results import Printed, printed
from roofcast.data.importers.sources import Source
from roofcast.data.measurements.speculation import speculation_cells

_is_latency: Final = json_marks("avg_latency", "latencies", "percentiles")
_is_throughput: Final = json_marks("elapsed_time", "total_num_tokens", "requests_per_second")
_is_one_batch: Final = json_marks("batch_size", "input_len", "output_len", "overall_throughput")
_is_offline: Final = json_marks("successful_requests", "total_latency", "total_input_tokens", "total_throughput")

OFFLINE_TOTALS: Final = (
    Field("output_throughput_token_per_s", "output_throughput"),
    Field("total_throughput_token_per_s", "total_throughput"),
    Field("request_throughput_per_s", "request_throughput"),
)
THROUGHPUT_TOTALS: Final = (
    Field("total_throughput_token_per_s", "tokens_per_second"),
    Field("request_throughput_per_s", "requests_per_second"),
)

_PRINTED_MARKS: Final = (b"Offline Throughput", b"Prefill. latency:", b"last_ttft:")
PRINTED: Final = ("sglang_offline_throughput", "sglang_one_batch", "sglang_one_batch_server")


def _vllm_runs(source: Source) -> Iterator[Run]:
    document = read_document(source)
    yield _latency_run(document) if not document["avg_latency"].is_blank else _throughput_run(document)


def _latency_run(document: Node) -> Run:
    latencies = document["latencies"]
    if latencies.is_blank:
        names = {"mean": document["avg_latency"], **{f"p{n}": document["percentiles"][str(n)] for n in (50, 90, 99)}}
        statistics = {name: {"e2e_s": node.number()} for name, node in names.items()}
    else:
        statistics = statistics_of({"e2e_s": latencies.numbers()})
    cells = {"engine": "vllm", "load": "static_batch", "software": "vllm bench latency"}
    return Run(document.place, document.line, cells, statistics)


def _throughput_run(document: Node) -> Run:
    check_keys(document, ("elapsed_time", "num_requests", "tokens_per_second"), "vllm bench throughput")
    cells = {
        "engine": "vllm",
        "load": "offline",
        "n_request": document["num_requests"].number(),
        "duration_s": document["elapsed_time"].number(),
        "software": "vllm bench throughput",
    }
    return Run(document.place, document.line, cells, {}, read_fields(document, THROUGHPUT_TOTALS))


def _sglang_runs(source: Source) -> Iterator[Run]:
    layout = _layout_of(source.start())
    documents = layout.documents(source) if layout else iter_documents(source)
    for document in documents:
        yield _offline_run(document) if not document["successful_requests"].is_blank else _batch_run(document)


def _layout_of(start: bytes) -> Printed | None:
    layouts = (printed(name) for name in PRINTED) if start.lstrip()[:1] != b"{" else ()
    return next((one for one in layouts if one.recognises(start)), None)


def _offline_run(document: Node) -> Run:
    check_keys(document, ("total_latency", "total_input_tokens", "total_output_tokens"), "bench_offline_throughput")
    n_request = document["successful_requests"].number()
    cells: dict[str, Any] = {
        "engine": "sglang",
        "load": "offline",
        "n_request": n_request,
        "duration_s": document["total_latency"].number(),
        "software": "sglang bench_offline_throughput",
    }
    for column, name in (("n_input_token", "total_input_tokens"), ("n_output_token", "total_output_tokens")):
        cells[column] = document[name].number() / n_request if n_request > 0 else math.nan
    return Run(document.place, document.line, cells, {}, read_fields(document, OFFLINE_TOTALS))


def _batch_run(document: Node) -> Run:
    is_server = not document["latency"].is_blank
    ttft, total = ("last_ttft", "latency") if is_server else ("prefill_latency", "total_latency")
    check_keys(document, (ttft, total), "bench_one_batch")
    ttft_s, total_s, n_output = (document[name].number() for name in (ttft, total, "output_len"))
    mean = {"ttft_s": ttft_s, "e2e_s": total_s if n_output != 1 else math.nan}
    if n_output > 1 and total_s > ttft_s:
        mean["tpot_s"] = (total_s - ttft_s) / (n_output - 1)
    median_s = document["median_decode_latency"].number()
    cells = {
        "engine": "sglang",
        "load": "static_batch",
        "concurrency": document["batch_size"].number(),
        "n_input_token": document["input_len"].number(),
        "n_output_token": n_output,
        "software": "sglang bench_one_batch_server" if is_server else "sglang bench_one_batch",
        "note": "TTFT is that of the batch's last request" if is_server else "",
        **speculation_cells(length=document["acc_length"].number()),
    }
    hit_ratio = document["cache_hit_rate"].number()
    cells |= {"prefix_cache_ratio": hit_ratio} if 0 < hit_ratio <= 1 else {}
    totals = read_fields(document, (Field("total_throughput_token_per_s", "overall_throughput"),))
    return Run(document.place, document.line, cells, {"mean": mean, "p50": {"tpot_s": median_s}}, totals)


VLLM: Final = Format(
    name="vllm_batch",
    title="vllm bench latency and vllm bench throughput, their JSON results",
    recognises=lambda start: _is_latency(start) or _is_throughput(start),
    read=run_reader(_vllm_runs),
    suffixes=(".json",),
    conversions={
        "e2e_s": "`latencies`, or `avg_latency` and `percentiles`: in s, of a batch whose size is to be set",
        "total_throughput_token_per_s": "`tokens_per_second`, input and output: as it is",
        "request_throughput_per_s": "`requests_per_second`: as it is",
    },
)
SGLANG: Final = Format(
    name="sglang_batch",
    title="SGLang bench_one_batch, bench_one_batch_server and bench_offline_throughput, JSON lines or printed",
    recognises=lambda start: (
        _is_one_batch(start)
        or _is_offline(start)
        or (_layout_of(start) is not None and any(mark in start for mark in _PRINTED_MARKS))
    ),
    read=run_reader(_sglang_runs),
    suffixes=(".jsonl",),
    statistics=("mean", "p50"),
    conversions={
        "ttft_s": "`prefill_latency`; `last_ttft` of a server: in s",
        "tpot_s": "(total latency - TTFT) / (`output_len` - 1); the median is `median_decode_latency`: in s",
        "e2e_s": "`total_latency`, or `latency` of a server: in s",
        "output_throughput_token_per_s": "`output_throughput` of an offline run: as it is",
        "total_throughput_token_per_s": "`overall_throughput`, or `total_throughput` of an offline run: as it is",
        "request_throughput_per_s": "`request_throughput` of an offline run: as it is",
    },
)
"""Entries of the registry."""
