"""Launcher's README: a scaling table has blank headings, so that its rows hold the last column and ``Nodes``.

A row of node counts is above the rows of rates, which are two runs each.
"""

from collections.abc import Iterator
from typing import Final

from builders.figures import number
from builders.published import Record

_PROPORTION_RTOL: Final = 1e-4
_MISPRINT: Final = ("2022-06-03", "519211", "20768")
"""First day, ``Nodes`` and last column of a row that the next day's page corrects."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs of the scaling tables, with nodes and rate, and other rows unchanged."""
    nodes: dict[object, tuple[float, float]] = {}
    for record in published:
        cells = record.cells
        if "Nodes" not in cells:
            yield record
            continue
        table = cells.get("family"), "5B_GPT_3_throughput" in cells["@intro"]
        few, many = number(cells["Nodes"]), number(cells["col"])
        if (cells["@date"], cells["Nodes"], cells["col"]) == _MISPRINT:
            yield record.rejected("superseded", "the row of perfect scaling, misprinted; corrected on the next day")
        elif few is None or many is None:
            yield record.rejected("not_a_run", "speed-up over the fewest nodes")
        elif many.is_integer() and many <= 128:
            nodes[table] = few, many
            yield record.rejected("not_a_run", "numbers of nodes above a table")
        elif abs(many / few / (nodes[table][1] / nodes[table][0]) - 1.0) < _PROPORTION_RTOL:
            yield record.rejected("not_a_run", "what perfect scaling would give")
        else:
            for i_run, (column, rate) in enumerate((("Nodes", few), ("last", many))):
                run = {**cells, "n_node": nodes[table][i_run], "rate": rate}
                yield Record(f"{record.reference}:{column}", run, n_published=1 - i_run)
