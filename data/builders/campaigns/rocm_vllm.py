"""How often a revision of ROCm's page answers a question, and the latency of a batch in seconds."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from builders.figures import number_of
from builders.published import Record
from roofcast.data.units import s_from_ms

_KEY: Final = ("kind", "batch", "isl", "osl", "num_prompts", "max_num_seqs")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with the key of their run, number of answers, latency and generated tokens."""
    runs = [(record, _run(record)) for record in published]
    n_answer = Counter(_revision(record) + run for record, run in runs)
    for record, run in runs:
        answered = record.having(run=run, n_answer=n_answer[_revision(record) + run])
        cells = record.cells
        if cells["kind"] == "latency":
            value = number_of(cells["value"])
            n_token = number_of(cells["batch"]) * number_of(cells["osl"])
            answered = answered.having(
                latency_s=s_from_ms(value) if cells["unit"] == "ms" else value, n_token=n_token
            )
        yield answered


def _revision(record: Record) -> tuple[str, ...]:
    return record.cells["first_seen"], record.cells["last_seen"]


def _run(record: Record) -> tuple[str, ...]:
    return record.cells["model"].partition(" (")[0], *(record.cells[name] for name in _KEY)
