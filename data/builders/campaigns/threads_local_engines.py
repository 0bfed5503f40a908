"""Engines of single machines in public threads: which runs repeat another table, or another setting."""

from collections.abc import Iterator
from typing import Final

from builders.campaigns.extracted_rows import join_runs
from builders.campaigns.threads import rows
from builders.published import Record

__all__ = ["records", "rows"]

CONFIGURATION: Final = (
    "stack", "model", "gpu", "n_accelerator", "engine", "weight_precision", "kv_precision", "n_input_token",
    "n_output_token", "concurrency", "request_rate", "load",
)  # fmt: skip
"""Columns of a configuration; versions, kinds of quantisation and flags differ within one."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs of the table, and whether `threads_vllm` has its thread, and it is the last of its kind."""
    every = list(join_runs(published))
    others = {_thread(run) for run in every if run.cells["@file"] == "threads_vllm.csv"}
    runs = [run for run in every if run.cells["@file"] != "threads_vllm.csv"]
    last = {_configuration(run): run.reference for run in runs if not run.cells["doubt"]}
    for run in runs:
        is_last = last.get(_configuration(run)) == run.reference
        yield run.having(is_other=_thread(run) in others, is_last=is_last)


def _thread(run: Record) -> tuple[str, str]:
    return run.cells["source_url"].partition("#")[0], run.cells["model"]


def _configuration(run: Record) -> tuple[str, ...]:
    return tuple(run.cells[name] for name in CONFIGURATION)
