"""Runs that were read from public threads: lines of a table with this package's columns, joined by run."""

import math
from collections.abc import Iterator
from typing import Any, Final

from builders.campaigns.assembly import rows_by_statistic
from builders.campaigns.extracted_rows import join_runs
from builders.campaigns.vllm_bench_files import offline_throughput
from builders.figures import number_of
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.measurements.schema import OUTCOME_COLUMNS

SPEED_TOLERANCE: Final = 0.02
"""Relative difference below which a throughput is the inverse of TPOT, rounded."""

_THROUGHPUTS: Final = ("output_throughput_token_per_s", "total_throughput_token_per_s")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each run, see `join_runs`."""
    return join_runs(published)


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the rows of a run, one per statistic; throughputs are in that of the mean.

    The throughput of a static batch is left out where it is the speed of its generation, without the prompt.
    """
    outcomes: dict[str, dict[str, Any]] = {
        name: {column: number_of(line[column]) for column in OUTCOME_COLUMNS if column in line}
        for name, line in cells["@lines"].items()
    }
    mean = outcomes.setdefault("mean", {})
    for column in _THROUGHPUTS:
        values = [part.pop(column) for part in outcomes.values() if column in part]
        mean[column] = next((value for value in values if not math.isnan(value)), math.nan)
    if cells["load"] == "static_batch" and "tpot_s" in mean:
        speed = number_of(cells["concurrency"]) / mean["tpot_s"]
        if math.isclose(mean[_THROUGHPUTS[0]], speed, rel_tol=SPEED_TOLERANCE):
            mean[_THROUGHPUTS[0]] = math.nan
    return offline_throughput(rows_by_statistic(common, outcomes))
