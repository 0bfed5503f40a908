"""Joins the summary's line of a run to its table of requests."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from builders.figures import number_of
from builders.published import Record
from roofcast.data.importers.request_samples import statistics_of, variation_of


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each run, with lengths and token times of its requests that succeeded."""
    tables: dict[str, list[Record]] = defaultdict(list)
    for record in published:
        tables[record.cells["@file"]].append(record)
    for run in tables["summary.csv"]:
        name = f"{run.cells['label']}_c{run.cells['concurrency']}.csv"
        requests = [request.cells for request in tables[name] if request.cells["ok"] == "True"]
        lengths, gaps_s = (
            np.array([number_of(r[column]) for r in requests]) for column in ("output_tokens", "tpot_s")
        )
        cells = {"n_output_token": float(lengths.mean()), "length_variation": variation_of(lengths)}
        yield Record(name, {**run.cells, **cells, "statistics": statistics_of({"tpot_s": gaps_s})})
