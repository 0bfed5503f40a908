"""inference-perf of the Kubernetes SIGs: its JSON report of a stage (``stage_N_lifecycle_metrics.json``).

Latencies are in seconds. The report has neither model nor accelerator, and that of all stages together
(``summary_lifecycle_metrics.json``) has no load. Percentiles of 50 are named median.
"""

import math
from collections.abc import Iterator
from typing import Any, Final

from roofcast.data.importers.client_runs import Run, join_cells, load_cells
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, read_document
from roofcast.data.importers.layout import layout
from roofcast.data.importers.sources import Source


def _runs(source: Source) -> Iterator[Run]:
    yield _run(read_document(source))


def _run(report: Node) -> Run:
    tables = layout("inference_perf")
    cells = tables.cells(report)
    successes, load = report["successes"], report["load_summary"]
    n_done, n_failed = successes["count"].required_number(), report["failures"]["count"].required_number()
    cells = join_cells(
        cells,
        _load(load),
        _cache(successes["prompt_tokens"]),
        {"n_request": n_done + n_failed, "n_failed": n_failed},
    )
    if not n_done > 0:
        return Run(report.place, report.line, cells | {"status": "failed"}, {})
    return tables.run(report, cells)


def _load(load: Node) -> dict[str, Any]:
    concurrency, rate = load["concurrency"].number(), load["requested_rate"].number()
    if math.isnan(concurrency) and not rate > 0:
        return {}  # asked for, rather than taken for an offline load
    return load_cells(concurrency, math.nan if concurrency > 0 else rate)


def _cache(tokens: Node) -> dict[str, float]:
    n_token, n_cached = tokens["total"].number(), tokens["cached"].number()
    return {"prefix_cache_ratio": n_cached / n_token} if 0 < n_cached <= n_token else {}


FORMAT: Final = Format("inference_perf", _runs)
"""The entry of the registry."""
