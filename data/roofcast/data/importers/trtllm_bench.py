"""TensorRT-LLM's ``trtllm-bench``: its JSON report, or the report that it prints.

Latencies are in ms, and averages over requests. The report does not tell how many requests the client kept in flight:
`concurrency` is the mean that was in flight, which the report measures. Weights without quantisation have the
precision of the activations.
"""

import math
from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.importers.client_runs import Run, join_cells, model_cells
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, read_document
from roofcast.data.importers.layout import layout
from roofcast.data.importers.printed_results import documents_of
from roofcast.data.importers.sources import Source
from roofcast.data.measurements.speculation import NAMES, speculation_cells
from roofcast.data.precision_names import parse_precision


def _runs(source: Source) -> Iterator[Run]:
    yield from map(_run, documents_of(source, ["trtllm_bench"], lambda one: [read_document(one)]))


def _run(report: Node) -> Run:
    tables = layout("trtllm_bench")
    cells = tables.cells(report)
    n_rank = report.at("world_info", "world_size").number()
    cells = join_cells(
        _engine_cells(report["engine"]),
        cells,
        {
            "accelerator": report.at("machine", "name").text(),
            "n_accelerator": cells["tp"] * cells["pp"] if math.isnan(n_rank) else n_rank,
            "ep": _expert_parallelism(report.at("world_info", "ep_size")),
            "gpu_memory_utilization": _share(report.at("world_info", "kv_cache_percentage")),
        },
        _speculation(report["decoding_stats"]),
    )
    return tables.run(report, cells)


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
    kind = NAMES.get(stats["mode"].text().lower(), "")
    return speculation_cells(kind, math.nan, length, accepted / drafted if drafted > 0 else math.nan)


FORMAT: Final = Format("trtllm_bench", _runs)
"""The entry of the registry."""
