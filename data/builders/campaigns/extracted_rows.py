"""Runs of an extraction with one line for each statistic, whose columns are those of many sources."""

import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from builders.campaigns.llama_bench import generation_row, prompt_row
from builders.figures import number_of
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.measurements.schema import MEAN_ONLY_COLUMNS, OUTCOME_COLUMNS
from roofcast.data.specs import STATISTICS

LATENCIES: Final = ("ttft_s", "tpot_s", "itl_s", "e2e_s")
TOTALS: Final = (
    "output_throughput_token_per_s", "total_throughput_token_per_s", "request_throughput_per_s", "power_w",
)  # fmt: skip
OWN: Final = frozenset({"queue_wait_s", "prefill_s", "decode_s", "frontend_wait_s", "doubt", "note", "workload"})
"""Columns that may differ between the lines of a run."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each run, see `join_runs`."""
    return join_runs(published, OWN)


def join_runs(published: Iterator[Record], own: Collection[str] = ()) -> Iterator[Record]:
    """Yield a record for each run, with the cells of its lines by statistic as ``@lines``.

    A run is of adjacent lines that differ only in outcomes, statistic and the columns of `own`.
    """
    free = {"statistic", *OUTCOME_COLUMNS, *own}

    def run_of(record: Record) -> tuple[str, ...]:
        return tuple(str(cell) for name, cell in record.columns.items() if name not in free)

    for _, group in itertools.groupby(published, run_of):
        lines: dict[str, Record] = {}
        for record in group:
            if record.cells["statistic"] in lines:
                yield _run(lines)
                lines = {}
            lines[record.cells["statistic"]] = record
        yield _run(lines)


def _run(lines: Mapping[str, Record]) -> Record:
    first = next(iter(lines.values()))
    cells_by_statistic = {name: line.cells for name, line in lines.items()}
    return Record(first.reference, {**first.cells, "@lines": cells_by_statistic}, len(lines))


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the outcomes of a run by statistic; a run of one request has its figures as means."""
    if cells["load"] == "offline":
        return _bench_rows(cells, common)
    lines: Mapping[str, Mapping[str, Any]] = cells["@lines"]
    by_statistic: dict[str, Row] = {}
    for name, line in lines.items():
        latencies = {column: number_of(line[column]) for column in LATENCIES if line[column]}
        totals = {column: number_of(line[column]) for column in TOTALS if line.get(column)}
        by_statistic.setdefault("mean" if name == "single" else name, {}).update(latencies)
        by_statistic.setdefault("mean", {}).update({n: v for n, v in totals.items() if n in MEAN_ONLY_COLUMNS})
    return [{"statistic": name, **by_statistic[name]} for name in STATISTICS if by_statistic.get(name)]


def _bench_rows(cells: Cells, common: Row) -> list[Row]:
    depth = number_of(cells.get("kv_depth") or "0")
    rows = []
    if cells["ttft_s"]:
        n, ttft_s = common["n_input_token"], number_of(cells["ttft_s"])
        cached = {"prefix_cache_ratio": depth / (n + depth)} if depth else {}
        rows.append({**prompt_row(n, n / ttft_s), "n_input_token": n + depth, **cached})
    if cells["tpot_s"]:
        row = generation_row(common["n_output_token"], 1 / number_of(cells["tpot_s"]))
        rows.append({**row, "n_input_token": 1 + depth})
    return [{"concurrency": 1, "statistic": "mean", **row} for row in rows]
