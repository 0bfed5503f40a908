"""One row for each latency column of FasterTransformer's guide: the parallelism stands in its title."""

import re
from collections.abc import Iterator
from typing import Final

from builders.figures import number_of
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.units import s_from_ms

DEFAULT_SPLITS: Final = {"GPT-175B": (8, 1), "GPT-89B": (8, 1)}
"""Tensor and pipeline parallelism of tables with a single latency column."""

_LATENCY: Final = re.compile(r"^(FT Latency|Latency of .*) \(ms\)$")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with the model of their heading and the columns' names of all revisions in one spelling."""
    for record in published:
        columns = {name.lower().replace("_", " "): text for name, text in record.columns.items()}
        model = record.cells["@heading"].rpartition(" ")[2]
        yield record.having(**{**columns, "model": model, "cells": tuple(columns.values())})


def rows(cells: Cells, _common: Row) -> Iterator[Row]:
    """Yield the row of each latency."""
    columns = {name: text for name, text in cells.items() if _LATENCY.match(name) and text.strip(" -")}
    n_output = number_of(cells.get("output seqlen") or cells["output length"])
    for name, text in columns.items():
        tp, pp = _split(cells["model"], name)
        row: Row = {"n_accelerator": tp * pp, "tp": tp, "pp": pp}
        if text == "OOM":
            yield row | {"status": "out_of_memory"}
            continue
        latency_s = s_from_ms(number_of(text))
        throughput = number_of(cells["batch size"]) * n_output / latency_s
        derived = "output_throughput_token_per_s"
        yield row | {"e2e_s": latency_s, derived: throughput, "derived": derived}


def _split(model: str, column: str) -> tuple[int, int]:
    if "single GPU" in column:
        return 1, 1
    ways = re.search(r"(\d+)-way TP|TP-(\d+)", column)
    stages = re.search(r"PP-(\d+)", column)
    if ways is None:
        return DEFAULT_SPLITS.get(model, (1, 1))
    return int(ways[1] or ways[2]), int(stages[1]) if stages else 1
