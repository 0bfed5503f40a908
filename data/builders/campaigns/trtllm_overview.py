"""Parallelism, throughput and copies of TensorRT-LLM's performance pages."""

import re
from collections.abc import Iterator
from typing import Any, Final

from builders.figures import number_of
from builders.published import Cells, Record
from roofcast.data.errors import SchemaError

_HEAD: Final = re.compile(
    r"(?P<table>High Throughput|Peak Throughput|Low Latency).*> (?P<gpu>\w+) GPUs \((?P<p>FP\d+)\)"
)
_RUN: Final = ("version", "model", "gpu", "tp", "pp", "isl", "osl", "value")
_THROUGHPUTS: Final = ("Throughput (out tok/s)", "Throughput (out tok/s/GPU)")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the tidy rows of a known precision first, then the others, then the old tables, without copies."""
    every = [Record(re.sub(":(?=[0-9]+$)", ", line ", record.reference), record.cells) for record in published]
    pages = [record for record in every if "@page" in record.cells]
    tidy = [record for record in every if "@page" not in record.cells]
    seen: dict[tuple[Any, ...], Record] = {}
    for record in sorted(tidy, key=lambda r: r.cells["precision"] not in {"FP16", "FP8", "FP4"}):
        original = seen.setdefault(tuple(record.cells[name] for name in _RUN), record)
        if original is record:
            yield record.having(**_offline(record.cells))
        else:
            yield record.rejected("duplicate", f"the measurement of {original.reference}")
    for record in pages:
        head = _HEAD.search(record.cells["@heading"])
        if head is None or "/blogs/" in record.cells["@page"]:
            yield record
            continue
        static = {**record.columns, **head.groupdict(), **_static(record.cells, head["table"])}
        content = tuple(static.get(name) for name in ("Model", "gpu", "p", "TP (1)", "Input Length", "Output Length",
                                                      "Batch Size", "throughput", "latency"))  # fmt: skip
        original = seen.setdefault(content, record)
        if original is record:
            yield record.having(**static)
        else:
            detail = f"the measurement of line {original.cells['@line']}, in a later revision"
            yield record.rejected("duplicate", detail)


def parallelism_of(text: str) -> dict[str, int]:
    """Return ranks and parallelism of a cell; a plain number is tensor parallelism.

    ``DEP4`` is data-parallel attention and expert parallelism on four accelerators.

    Raises `SchemaError` if the cell has neither form.

    Examples
    --------
    >>> parallelism_of("DEP4")
    {'n_rank': 4, 'tp_rank': 1, 'dp_rank': 4, 'ep_rank': 4}
    """
    match = re.fullmatch(r"(DEP)?(\d+)", text)
    if match is None:
        raise SchemaError("tp", f"must be a number or such as DEP4, got {text!r}", "perf_overview_tidy.csv")
    n = int(match[2])
    return {"n_rank": n} | ({"tp_rank": 1, "dp_rank": n, "ep_rank": n} if match[1] else {"tp_rank": n, "dp_rank": 1})


def _offline(cells: Cells) -> dict[str, Any]:
    ranks = parallelism_of(cells["tp"])
    factor = {"total_output_tok_s": 1, "output_tok_s_per_gpu": ranks["n_rank"] * int(cells["pp"])}[cells["metric"]]
    return {"ep_rank": "", **ranks, "throughput": float(cells["value"]) * factor}


def _static(cells: Cells, table: str) -> dict[str, float]:
    value = next((number_of(cells[name]) for name in _THROUGHPUTS if name in cells), None)
    if value is None:
        return {"latency": number_of(cells["1st Token Latency (ms)"])}
    return {"throughput": value * (int(cells["TP (1)"]) if table == "Peak Throughput" else 1)}
