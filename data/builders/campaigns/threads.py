"""Runs that were read from public threads: rows of a table with this package's columns, joined by run."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from builders.campaigns.assembly import rows_by_statistic
from builders.campaigns.vllm_bench_files import offline_throughput
from builders.figures import number_of
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.measurements.schema import NUMBER_COLUMNS, OUTCOME_COLUMNS, SCHEMA
from roofcast.data.specs import PRECISIONS

SPEED_TOLERANCE: Final = 0.02
"""Relative difference below which a throughput is the inverse of TPOT, rounded."""

_SWITCHES: Final = frozenset({"stack", "speculation", "chunked_prefill", "prefix_caching", "load", "engine"})
_THROUGHPUTS: Final = ("output_throughput_token_per_s", "total_throughput_token_per_s")


def read_runs(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each run, with its outcomes by statistic: adjacent rows that differ only in these.

    The address of its thread, without the comment, is the cell ``thread``.
    """
    run: Record | None = None
    outcomes: dict[str, dict[str, str]] = {}
    for record in published:
        cells = {name: cell for name, cell in record.columns.items() if name not in OUTCOME_COLUMNS}
        statistic = cells.pop("statistic")
        cells |= {"thread": cells["source_url"].partition("#")[0], "@file": record.cells["@file"]}
        if run is not None and (cells != run.cells or statistic in outcomes):
            yield _joined(run, outcomes)
            run = None
        if run is None:
            run, outcomes = Record(record.reference, cells), {}
        outcomes[statistic] = {name: record.cells[name] for name in OUTCOME_COLUMNS if name in record.cells}
    if run is not None:
        yield _joined(run, outcomes)


def _joined(run: Record, outcomes: dict[str, dict[str, str]]) -> Record:
    return Record(run.reference, {**run.cells, "outcomes": outcomes}, n_published=len(outcomes))


def rejection_of(cells: Cells) -> tuple[str, str] | None:
    """Return the rejection of a run whose lengths or precision are not stated; None if they are.

    A blank precision without doubt is that of the checkpoint.
    """
    if not cells["n_input_token"] or not cells["n_output_token"]:
        return "no_lengths", "a request length is not stated"
    is_stated = cells["weight_precision"] != "" or "precision" not in cells["doubt"]
    if not is_stated or cells["weight_precision"] not in ("", *PRECISIONS):
        return "unknown_precision", cells["weight_precision"] or cells["doubt"]
    return None


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the rows of a run, one per statistic; throughputs are in that of the mean.

    The throughput of a static batch is left out where it is the speed of its generation, without the prompt.
    """
    outcomes: dict[str, dict[str, Any]] = {
        name: {column: number_of(text) for column, text in part.items()} for name, part in cells["outcomes"].items()
    }
    mean = outcomes.setdefault("mean", {})
    for column in _THROUGHPUTS:
        values = [part.pop(column) for part in outcomes.values() if column in part]
        mean[column] = next((value for value in values if not math.isnan(value)), math.nan)
    if cells["load"] == "static_batch" and "tpot_s" in mean:
        speed = number_of(cells["concurrency"]) / mean["tpot_s"]
        if math.isclose(mean[_THROUGHPUTS[0]], speed, rel_tol=SPEED_TOLERANCE):
            mean[_THROUGHPUTS[0]] = math.nan
    stated: Row = {
        name: number_of(text) if name in NUMBER_COLUMNS else text
        for name, text in cells.items()
        if name in SCHEMA and text and name not in _SWITCHES
    }
    stated |= {"n_input_token": max(number_of(cells["n_input_token"]), 1.0), "note": _note(cells)}
    return offline_throughput(rows_by_statistic(stated | common, outcomes))


def _note(cells: Cells) -> str:
    thread = re.sub(r"^https?://[^/]+/", "", cells["thread"])
    return "; ".join(filter(None, (thread, cells["note"])))[:160].strip()
