"""Rows of MLC's page: a column an engine; figures that stand in an earlier revision are no new row."""

from collections.abc import Iterator
from typing import Final

from builders.figures import number_of
from builders.published import Cells, Record
from builders.recipe import Row

ENGINES: Final = {
    "mlc": "mlc-llm", "exllama v2": "exllama-v2", "exllama": "exllama", "llama.cpp": "llama.cpp", "vllm": "vllm",
}  # fmt: skip
"""Engine by column prefix; longer prefixes come first."""

LENGTHS_FROM: Final = "2023-10-05"
"""First day on which the page states prompt and output lengths."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with the speeds that are new."""
    seen = set()
    for record in published:
        cells = record.cells
        if cells["@date"] < LENGTHS_FROM:
            yield record.rejected("no_lengths", "this revision does not say how long prompt and output are")
            continue
        speeds = {_engine(name): text for name, text in record.columns.items() if name not in {"Model", "GPU"}}
        run = (cells["Model"], cells["GPU"].replace("*", "x"), "FP16" in cells["@heading"])
        new = {engine: text for engine, text in speeds.items() if text != "N/A" and (*run, engine, text) not in seen}
        seen |= {(*run, *speed) for speed in new.items()}
        if new:
            yield record.having(speeds=new)
        else:
            yield record.rejected("repeats_revision", "all figures stand in earlier revisions")


def rows(cells: Cells, _common: Row) -> Iterator[Row]:
    """Yield the row of each engine."""
    for engine, text in cells["speeds"].items():
        yield {"engine": engine, "tpot_s": 1 / number_of(text)}


def _engine(column: str) -> str:
    return next(name for start, name in ENGINES.items() if column.lower().startswith(start))
