"""LLM Foundry: revisions of October 2023 lack the heading of model FLOP/s."""

from collections.abc import Iterator

from builders.figures import number
from builders.published import Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the rows with the cells under the right headings."""
    for record in published:
        if number(record.cells.get("Precision")) is None:
            yield record
            continue
        headings = [*record.columns]
        position = headings.index("MicroBatchSize")
        complete = [*headings[:position], "Model TFLOP", *headings[position:]]
        yield record.having(**dict(zip(complete, record.columns.values(), strict=False)))
