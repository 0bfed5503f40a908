"""Megatron Bridge: a cell such as ``1 (16)`` holds two runs.

By the text below the tables, brackets mean the other FP8 scaling (blocks of 32, on H100 of 128); the next release
prints ``FP8-CS (FP8-MX)`` in such rows.
"""

from collections.abc import Iterator

from builders.figures import split_brackets
from builders.published import Record


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the run outside the brackets of each row, and the one inside; a draft is one row."""
    for record in published:
        cells = record.cells
        figures = {name: text for name, text in record.columns.items() if name not in {"Model", "System", "model"}}
        outside, inside = split_brackets(figures)
        yield record.having(**outside, scaling="FP8-CS")
        is_draft = cells["release"] == "25.11" and "Precision" not in cells
        if inside is not None and not is_draft:
            blocks = "FP8-SC" if "DGX-H100" in {cells.get("System"), cells.get("system")} else "FP8-MX"
            yield Record(f"{record.reference}()", {**cells, **inside, "scaling": blocks}, n_published=0)
