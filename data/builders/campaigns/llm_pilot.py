"""Rows of LLM-Pilot's raw files, checked against the published medians."""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from builders.columns import is_blank
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.errors import InputError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.llm_pilot import ACCELERATORS, MODELS
from roofcast.data.units import s_from_ms

RTOL: Final = 1e-5
MEDIANS: Final = {"median_nttft": "nttft_s_per_token", "median_itl": "itl_s"}
NOTE: Final = "published medians alone, raw file missing; request lengths of the run with 64 users"
SETTINGS: Final = (
    "engine", "weight_precision", "kv_precision", "tp", "pp", "dp", "flash_attention", "load", "n_input_token",
    "n_output_token", "length_variation",
)  # fmt: skip
"""Columns of a point without raw file that are those of the run with 64 users."""

Point = tuple[str, str, float, float]
"""Model, accelerator, its number, and users."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each published point, with its five rows, or that of its medians without a raw file.

    Raises `InputError` if a median differs from the published one by more than `RTOL`, or a measured point is not
    published.
    """
    points: dict[Point, list[Row]] = defaultdict(list)
    for row in read_measurements("llm_pilot", [next(published).cells["@source"]], "llm_pilot").to_dict("records"):
        key = (row["model"], row["accelerator"], row["n_accelerator"], row["concurrency"])
        points[key].append({str(name): value for name, value in row.items()})
    nearby = {key[:3]: rows for key, rows in points.items() if key[3] == 64.0}
    for record in published:
        key, medians = point_of(record.cells)
        rows = points.pop(key, [])
        check_medians(rows, medians, record.reference)
        yield record.having(rows=rows or [_row_of_medians(key, medians, nearby[key[:3]])])
    if points:
        raise InputError("median_nttft", f"not published for {next(iter(points))}")


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the rows of a point."""
    return [row | common for row in cells["rows"]]


def point_of(cells: Cells) -> tuple[Point, dict[str, float]]:
    """Return the point of a published row, and its medians in seconds.

    Examples
    --------
    >>> cells = {"model": "llama-7b", "gpu": "4 x T4", "num_users": "8", "median_nttft": "2", "median_itl": "150"}
    >>> point_of(cells)
    (('huggyllama/llama-7b', 'nvidia-t4-16gb', 4.0, 8.0), {'nttft_s_per_token': 0.002, 'itl_s': 0.15})
    """
    n, _, gpu = cells["gpu"].split()
    model = str(MODELS.get(cells["model"], cells["model"]))
    medians = {ours: float(cells[theirs]) * s_from_ms(1.0) for theirs, ours in MEDIANS.items()}
    return (model, ACCELERATORS[gpu], float(n), float(cells["num_users"])), medians


def check_medians(rows: list[Row], medians: dict[str, float], reference: str) -> None:
    """Check the median row of a point against the published one. Raises `InputError` if a median differs."""
    for row in rows:
        for name, published in medians.items():
            if row["statistic"] == "p50" and not math.isclose(row[name], published, rel_tol=RTOL):
                raise InputError(name, f"{row[name]:g} is measured but {published:g} published in {reference}")


def _row_of_medians(key: Point, medians: dict[str, float], nearby: list[Row]) -> dict[str, Any]:
    run = next(row for row in nearby if row["statistic"] == "p50")
    settings = {name: run[name] for name in SETTINGS if not is_blank(run[name])}
    names = ("model", "accelerator", "n_accelerator", "concurrency")
    return {**dict(zip(names, key, strict=True)), **settings, **medians, "statistic": "p50", "note": NOTE}
