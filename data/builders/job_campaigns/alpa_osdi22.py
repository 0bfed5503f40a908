"""Alpa's artifact: mean latency of a run, its day, and the number of its mesh."""

from collections import Counter
from collections.abc import Iterator
from statistics import fmean

from builders.published import Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs with step time and mesh; a negative latency is a run that did not fit."""
    meshes: Counter[tuple[object, ...]] = Counter()
    for record in published:
        cells = record.cells
        n = int(cells["nodes"]) * int(cells["per_node"])
        case = cells["@file"], cells["model"], cells["method"], n
        meshes[case] += 1
        latencies = [float(text) for text in cells.get("latencies", "").split(",") if text]
        step = f"{fmean(latencies):.8g}" if latencies else ""
        yield record.having(n=str(n), step=step, mesh=meshes[case])
