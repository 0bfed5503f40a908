"""Benchmarks of a batch or an offline load, by vLLM and by SGLang.

They are vLLM's ``bench latency`` and ``bench throughput``, and SGLang's ``bench_one_batch``,
``bench_one_batch_server`` and ``bench_offline_throughput``.
None of them names model or accelerator, and vLLM's JSON has no request lengths either: overrides give them. Times are
in seconds. A batch starts together: the latency of the batch is the E2E of each request.
"""

import math
from collections.abc import Iterator
from typing import Final

from roofcast.data.importers.client_runs import Run
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, iter_documents, read_document
from roofcast.data.importers.layout import layout
from roofcast.data.importers.printed_results import documents_of
from roofcast.data.importers.request_samples import statistics_of
from roofcast.data.importers.sources import Source
from roofcast.data.measurements.speculation import speculation_cells

PRINTED: Final = ("sglang_offline_throughput", "sglang_one_batch", "sglang_one_batch_server")


def _vllm_runs(source: Source) -> Iterator[Run]:
    document = read_document(source)
    if document["avg_latency"].is_blank:
        tables = layout("vllm_throughput")
        yield tables.run(document, tables.cells(document))
    else:
        tables, latencies = layout("vllm_latency"), document["latencies"]
        statistics = None if latencies.is_blank else statistics_of({"e2e_s": latencies.numbers()})
        yield tables.run(document, tables.cells(document), statistics)


def _sglang_runs(source: Source) -> Iterator[Run]:
    for document in documents_of(source, PRINTED, iter_documents):
        yield _offline_run(document) if not document["successful_requests"].is_blank else _batch_run(document)


def _offline_run(document: Node) -> Run:
    n_request = document["successful_requests"].number()
    tables = layout("sglang_offline")
    totals = tables.read(document, "lengths")
    lengths = {column: total / n_request if n_request > 0 else math.nan for column, total in totals.items()}
    return tables.run(document, tables.cells(document) | lengths)


def _batch_run(document: Node) -> Run:
    tables = layout("sglang_one_batch" if document["latency"].is_blank else "sglang_one_batch_server")
    hit_ratio, n_output = document["cache_hit_rate"].number(), document["output_len"].number()
    length = document["acc_length"]
    cells = tables.cells(document) | speculation_cells(length=math.nan if length.value == -1 else length.number())
    cells |= {"prefix_cache_ratio": hit_ratio} if 0 < hit_ratio <= 1 else {}
    mean = tables.read(document, "mean")
    speed = document["input_throughput"].number()
    if math.isnan(mean["ttft_s"]) and speed > 0:  # older versions print the input over it
        mean["ttft_s"] = document["batch_size"].number() * document["input_len"].number() / speed
    if n_output > 1 and mean["e2e_s"] > mean["ttft_s"]:
        mean["tpot_s"] = (mean["e2e_s"] - mean["ttft_s"]) / (n_output - 1)
    mean |= {"e2e_s": math.nan} if n_output == 1 else {}
    median_s = document["median_decode_latency"].number()
    return tables.run(document, cells, {"mean": mean, "p50": {"tpot_s": median_s}})


VLLM: Final = Format("vllm_batch", _vllm_runs)
SGLANG: Final = Format("sglang_batch", _sglang_runs)
"""Entries of the registry."""
