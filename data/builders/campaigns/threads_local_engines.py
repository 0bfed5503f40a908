"""Engines of single machines in public threads: which runs repeat another table."""

from collections.abc import Iterator

from builders.campaigns.extracted_rows import join_runs
from builders.campaigns.threads import rows
from builders.published import Record

__all__ = ["records", "rows"]


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs of the table, and whether `threads_vllm` has its thread."""
    every = list(join_runs(published))
    others = {_thread(run) for run in every if run.cells["@file"] == "threads_vllm.csv"}
    for run in every:
        if run.cells["@file"] != "threads_vllm.csv":
            yield run.having(is_other=_thread(run) in others)


def _thread(run: Record) -> tuple[str, str]:
    return run.cells["source_url"].partition("#")[0], run.cells["model"]
