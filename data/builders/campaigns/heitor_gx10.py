"""Points of a result file: first token and decoding of a single stream, and a sweep over concurrency."""

from collections.abc import Iterator
from typing import Any

from builders.published import Cells, Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each point; one for all points of a file of the large models, or of a shared accelerator."""
    for run in published:
        is_large = "/small-models/" not in run.cells["@path"]
        if is_large or ".coresident" in run.cells["@file"] or not _n_point(run.cells):
            yield Record(run.reference, run.cells, n_published=max(_n_point(run.cells), 1))
            continue
        sweep = {f"c{n}": {"n": n, **point} for n, point in run.cells["concurrency"].items()}
        for name, point in {"ttft": {}, "decode": {}, **sweep}.items():
            cells: dict[str, Any] = {**run.cells, **point, "point": name}
            yield Record(f"{run.reference} {name}", cells)


def _n_point(cells: Cells) -> int:
    names = ("ttft_ms", "decode_tps", "single_stream")
    return sum(name in cells for name in names) + len(cells.get("concurrency", ()))
