"""Joins the rows of a run, one a statistic: the mean comes first."""

from collections.abc import Iterator
from typing import Any

from builders.published import Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each run: the cells of its mean, and those of all statistics."""
    runs: list[dict[str, Any]] = []
    for record in published:
        if record.cells["statistic"] == "mean":
            runs.append({})
        runs[-1][record.cells["statistic"]] = record.cells
    for statistics in runs:
        cells = statistics["mean"]
        yield Record(cells["source_url"].rpartition("/")[2], {**cells, "@statistics": statistics})
