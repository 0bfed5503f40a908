"""TensorRT-LLM's ``trtllm-bench``: its JSON report, or the report that it prints.

Latencies are in ms, and averages over requests. The report does not tell how many requests the client kept in flight:
`concurrency` is the mean that was in flight, which the report measures. Weights without quantisation have the
precision of the activations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.importers.client_runs import Run, join_cells, model_cells, run_reader
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, check_keys, json_marks, read_document
from roofcast.data.importers.layout import Field, read_fields, read_statistics
from roofcast.data.importers.printed_results import printed
from roofcast.data.importers.sources import Source
from roofcast.data.measurements.speculation import speculation_cells
from roofcast.data.precision_names import parse_precision
from roofcast.data.units import S_PER_MS

SPECULATIONS: Final = {
    "mtp": "mtp", "eagle": "eagle", "eagle3": "eagle", "draft_target": "draft", "drafttarget": "draft",
    "ngram": "ngram", "lookahead": "ngram",
}  # fmt: skip
"""Our names by ``decoding_stats.mode``, in lower case."""

NAMES: Final = {"mean": ("average",), **{name: (name,) for name in ("p50", "p90", "p95", "p99")}}
LATENCIES: Final = (
    Field("ttft_s", "{}", "streaming_metrics.ttft_percentiles", S_PER_MS),
    Field("tpot_s", "{}", "streaming_metrics.tpot_percentiles", S_PER_MS),
    Field("e2e_s", "{}", "performance.request_latency_percentiles_ms", S_PER_MS),
)
MEANS: Final = (
    Field("ttft_s", "avg_ttft_ms", "streaming_metrics", S_PER_MS),
    Field("tpot_s", "avg_tpot_ms", "streaming_metrics", S_PER_MS),
    Field("e2e_s", "avg_request_latency_ms", "performance", S_PER_MS),
)
TOTALS: Final = (
    Field("output_throughput_token_per_s", "system_output_throughput_tok_s", "performance"),
    Field("total_throughput_token_per_s", "system_total_throughput_tok_s", "performance"),
    Field("request_throughput_per_s", "request_throughput_req_s", "performance"),
)
NUMBERS: Final = (
    Field("tp", "tp_size", "world_info"),
    Field("pp", "pp_size", "world_info"),
    Field("chunk_size_token", "max_num_tokens", "world_info"),
    Field("max_num_seqs", "max_batch_size", "world_info"),
    Field("n_input_token", "avg_input_length", "request_info"),
    Field("n_output_token", "avg_output_length", "request_info"),
    Field("n_request", "num_requests", "request_info"),
    Field("concurrency", "avg_num_concurrent_requests", "request_info"),
    Field("duration_s", "total_latency_ms", "performance", S_PER_MS),
)

_is_report: Final = json_marks("world_info", "request_info", "system_output_throughput_tok_s")


def _recognises(start: bytes) -> bool:
    return _is_report(start) or (printed("trtllm_bench").recognises(start) and b"TensorRT" in start)


def _runs(source: Source) -> Iterator[Run]:
    layout = printed("trtllm_bench")
    is_printed = layout.recognises(source.start())
    yield from map(_run, layout.documents(source) if is_printed else [read_document(source)])


def _run(report: Node) -> Run:
    check_keys(report, ("engine", "world_info", "request_info", "performance"), "trtllm-bench")
    numbers = read_fields(report, NUMBERS)
    n_rank = report.at("world_info", "world_size").number()
    cells = join_cells(
        _engine_cells(report["engine"]),
        numbers,
        {
            "accelerator": report.at("machine", "name").text(),
            "n_accelerator": numbers["tp"] * numbers["pp"] if math.isnan(n_rank) else n_rank,
            "ep": _expert_parallelism(report.at("world_info", "ep_size")),
            "gpu_memory_utilization": _share(report.at("world_info", "kv_cache_percentage")),
            "load": "closed_loop",
            "software": "trtllm-bench",
            "note": "concurrency is the mean of requests in flight",
        },
        _speculation(report["decoding_stats"]),
    )
    statistics = read_statistics(report, LATENCIES, NAMES)
    means = read_fields(report, MEANS)
    statistics["mean"] |= {column: value for column, value in means.items() if not math.isnan(value)}
    return Run(report.place, report.line, cells, statistics, read_fields(report, TOTALS))


def _engine_cells(engine: Node) -> dict[str, Any]:
    weights = engine["quantization"].text() or engine["dtype"].text()
    cache, version = engine["kv_cache_dtype"].text(), engine["version"].text()
    precision, kv_precision = map(parse_precision, (weights, cache))
    notes = [f"quantization {weights}"] if weights and not precision else []
    cells = {"engine": "trtllm", "engine_version": version, "weight_precision": precision}
    return join_cells(
        model_cells(engine["model"].text()), cells, {"kv_precision": kv_precision, "note": "".join(notes)}
    )


def _expert_parallelism(node: Node) -> float:
    return math.nan if node.value in (-1, "-1") else node.number()


def _share(node: Node) -> float:
    text = str(node.value).removesuffix("%")
    try:
        number = float(text) if not node.is_blank else math.nan
    except ValueError:
        raise node.error(f"must be a share or a percentage, got {text[:60]!r}") from None
    return number / 100 if number > 1 else number


def _speculation(stats: Node) -> dict[str, Any]:
    if stats.is_blank:
        return {}
    drafted, accepted, length = (
        stats.at(f"{name}_percentiles", "average").number()
        for name in ("num_draft_tokens", "num_accepted_draft_tokens", "acceptance_length")
    )
    kind = SPECULATIONS.get(stats["mode"].text().lower(), "")
    return speculation_cells(kind, math.nan, length, accepted / drafted if drafted > 0 else math.nan)


FORMAT: Final = Format(
    name="trtllm_bench",
    title="trtllm-bench of TensorRT-LLM, its JSON report or printed report",
    recognises=_recognises,
    read=run_reader(_runs),
    suffixes=(".json",),
    conversions={
        "ttft_s": "`avg_ttft_ms` and `ttft_percentiles`: from ms",
        "tpot_s": "`avg_tpot_ms` and `tpot_percentiles`: from ms",
        "e2e_s": "`avg_request_latency_ms` and `request_latency_percentiles_ms`: from ms",
        "output_throughput_token_per_s": "`system_output_throughput_tok_s`: as it is",
        "total_throughput_token_per_s": "`system_total_throughput_tok_s`: as it is",
        "request_throughput_per_s": "`request_throughput_req_s`: as it is",
    },
)
"""The entry of the registry."""
