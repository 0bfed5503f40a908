"""Rows of result files of ``vllm bench serve``, by the importer of users' files."""

import re
from collections.abc import Iterable
from typing import Any

from builders.published import Cells, Record, RejectionError
from builders.recipe import Row
from roofcast.data.errors import SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.overrides import is_blank
from roofcast.data.measurements.schema import OUTCOME_COLUMNS

OWN: frozenset[str] = frozenset({"stack", "software", "note"})
"""Columns of which the recipe's value replaces the importer's."""


def records(published: Iterable[Record]) -> Iterable[Record]:
    """Yield the records with the place of their file."""
    return (record.having(file=record.cells["@source"]) for record in published)


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the rows of a result file; the recipe's columns fill what the file does not state.

    Raises `RejectionError` if the file contradicts itself.
    """
    overrides: dict[str, Any] = {name: value for name, value in common.items() if name not in OWN}
    if "model" in overrides and "/" not in cells["model_id"]:  # a name that the server was given
        overrides[f"model:{cells['model_id']}"] = overrides.pop("model")
    try:
        table = read_measurements("vllm_bench", [cells["file"]], "", overrides=overrides)
    except SchemaError as error:
        raise RejectionError("implausible", re.sub(r"; .*", "", error.problem)) from error
    read = ({str(n): v for n, v in row.items() if not is_blank(v)} for row in table.to_dict("records"))
    return offline_throughput({n: v for n, v in row.items() if n not in OWN & common.keys()} for row in read)


def offline_throughput(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a run; of an offline run its throughput alone, for its latencies count from the start.

    Examples
    --------
    >>> offline_throughput([{"load": "offline", "statistic": "mean", "ttft_s": 9.0, "request_throughput_per_s": 2.0}])
    [{'load': 'offline', 'statistic': 'mean', 'request_throughput_per_s': 2.0}]
    >>> offline_throughput([{"load": "offline", "statistic": "p50", "ttft_s": 9.0}])
    []
    """
    run = []
    for row in rows:
        is_offline = row.get("load") == "offline"
        cells = {n: v for n, v in row.items() if not (is_offline and n in OUTCOME_COLUMNS and "throughput" not in n)}
        if OUTCOME_COLUMNS.keys() & cells.keys():
            run.append(cells)
    return run
