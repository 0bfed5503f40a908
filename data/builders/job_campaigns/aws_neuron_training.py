"""AWS Neuron's tables of all revisions: the last setting of a figure counts, on the day of its first."""

import re
from collections.abc import Iterator
from typing import Final

from builders.figures import number
from builders.published import Record

N_CORE_PER_CHIP: Final = 2.0
_SIZE: Final = re.compile(r"\b(TP|PP|DP)=(\d+)|(\d+)(?:xNC|Nodes)?\((TP|DP)\)")
_FIGURE: Final = ("Model", "nodes", "precision", "Performance [seq/sec]")
_SETTING: Final = ("Topology", "batch", "Microbatch")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the figures with sizes per chip.

    If a figure later has another batch or topology, all else equal, its setting was corrected: earlier ones are
    superseded.
    """
    rows = [record.having(Model=record.cells["Model"].replace("GTP3", "GPT3")) for record in published]
    by_day = sorted(rows, key=lambda row: row.cells["_first_seen"])
    last = {_key(row, _FIGURE): _key(row, _SETTING) for row in by_day}
    first = {_key(row, _FIGURE): row.cells["_first_seen"] for row in reversed(by_day)}
    for row in rows:
        day, seen = first[_key(row, _FIGURE)], row.cells["_first_seen"]
        later = "" if _key(row, _SETTING) == last[_key(row, _FIGURE)] else "yes"
        corrected = "" if seen == day else f"; setting as corrected on {seen}"
        yield row.having(day=day, later=later, corrected=corrected, **_sizes(row))


def _key(row: Record, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(row.cells.get(name, "") for name in names)


def _sizes(row: Record) -> dict[str, float | None]:
    sizes = {"tp": 1.0, "pp": 1.0, "dp": 1.0}
    for name, size, bracketed, bracketed_name in _SIZE.findall(row.cells["Topology"]):
        sizes[(name or bracketed_name).lower()] *= float(size or bracketed)
    micro = number(row.cells["Microbatch"])
    if sizes["tp"] > 1:
        return sizes | {"tp": sizes["tp"] / N_CORE_PER_CHIP, "micro": micro}
    return sizes | {"dp": sizes["dp"] / N_CORE_PER_CHIP, "micro": micro and micro * N_CORE_PER_CHIP}
