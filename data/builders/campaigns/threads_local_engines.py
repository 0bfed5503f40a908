"""Engines of single machines in public threads: llama.cpp and its forks, MLX, Tenstorrent, SGLang and others."""

import re
from collections.abc import Iterator
from typing import Final

from builders.campaigns.threads import read_runs, rejection_of, rows
from builders.published import Cells, Record

__all__ = ["records", "rows"]

OWNERS: Final = {
    "awni": "ml-explore", "bonsai": "prism-ml", "InferenceX": "inferencex", "JohannesGaessler": "ggml-org",
    "KT": "kvcache-ai", "mlx-lm": "ml-explore", "normiebench": "brand-o",
}  # fmt: skip
"""Owner by the first word of a stack's name, where it differs; llama.cpp's own threads are one owner."""

CONFIGURATION: Final = (
    "stack", "model", "gpu", "n_accelerator", "engine", "weight_precision", "kv_precision", "n_input_token",
    "n_output_token", "concurrency", "request_rate", "load",
)  # fmt: skip
"""Columns of a configuration; versions, kinds of quantisation and flags differ within one."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs of the table with their stacks; a thread of `threads_vllm` is not read again."""
    every = list(read_runs(published))
    others = {(run.cells["thread"], run.cells["model"]) for run in every if run.cells["@file"] == "threads_vllm.csv"}
    runs = [run for run in every if run.cells["@file"] != "threads_vllm.csv"]
    last = {_configuration(run): run.reference for run in runs if not run.cells["doubt"]}
    for run in runs:
        rejection = rejection_of(run.cells)
        if run.cells["doubt"]:
            rejection = ("doubtful", run.cells["doubt"])
        elif (run.cells["thread"], run.cells["model"]) in others:
            rejection = ("repeats_other_file", "the thread is in threads_vllm")
        elif rejection is None and last[_configuration(run)] != run.reference:
            rejection = ("other_setting", "the last run of a stack's configuration stands for it")
        yield run.rejected(*rejection) if rejection else run.having(stack_name=stack_of(run.cells))


def stack_of(cells: Cells) -> str:
    """Return the stack of a run: the thread's author or repository, and the machine.

    Examples
    --------
    >>> stack_of({"stack": "ik ubergarm 3090 Ti", "gpu": "NVIDIA GeForce RTX 3090 Ti"})
    'ubergarm/rtx_3090_ti'
    """
    first, *rest = cells["stack"].split()
    if first == "ik":
        owner = rest[0]
    elif re.search(r"llama\.cpp \d+$", cells["stack"]):
        owner = "ggml-org"
    else:
        owner = OWNERS.get(first, first)
    machine = re.sub(r"^(NVIDIA|AMD|Intel|Tenstorrent) (GeForce |Radeon |Instinct |Blackhole )?", "", cells["gpu"])
    return f"{owner.lower()}/{re.sub(r'[^a-z0-9]+', '_', machine.lower()).strip('_')}"


def _configuration(run: Record) -> tuple[str, ...]:
    return tuple(run.cells[name] for name in CONFIGURATION)
