"""Engines of single machines in public threads: llama.cpp and its forks, MLX, Tenstorrent, SGLang and others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder
from builders.campaigns.threads import TABLES, ThreadRun, read_runs
from builders.campaigns.threads_vllm import TABLE as VLLM_TABLE

TABLE: Final = "threads_local_engines.csv"

ACCELERATORS: Final = {
    "Apple M1 Max": "apple-m1-max-64gb",
    "Apple M2 Ultra": "apple-m2-ultra-192gb",
    "Apple M3 Pro": "apple-m3-pro-36gb",
    "Apple M3 Ultra": "apple-m3-ultra-512gb",
    "Apple M4": "apple-m4-32gb",
    "Apple M4 Max": "apple-m4-max-128gb",
    "Apple M4 Pro": "apple-m4-pro-64gb",
    "Apple M5 Max": "apple-m5-max-128gb",
    "Apple M5 Pro": "apple-m5-pro-64gb",
}
"""Apple's chips count as the catalogue's variant, whatever their memory. The M4 Max machines have 64 GB or more, as
only those with 40 cores do."""

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


def build_threads_local_engines(root: Path) -> BuildResult:
    """Build the campaign from its table under `root`; a thread of `threads_vllm` is not read again.

    Raises
    ------
    SchemaError
        If a file is missing.
    """
    others = {(run.thread, run.cells["model"]) for run in read_runs(root / TABLES / VLLM_TABLE)}
    runs = list(read_runs(root / TABLES / TABLE))
    last = {_configuration(run): run.reference for run in runs if not run.cells["doubt"]}
    builder = CampaignBuilder("threads_local_engines", accelerators=ACCELERATORS)
    for run in runs:
        n_published = len(run.outcomes)
        rejection = run.rejection()
        if run.cells["doubt"]:
            rejection = ("doubtful", run.cells["doubt"])
        elif (run.thread, run.cells["model"]) in others:
            rejection = ("repeats_other_file", "the thread is in threads_vllm")
        elif rejection is None and last[_configuration(run)] != run.reference:
            rejection = ("other_setting", "the last run of a stack's configuration stands for it")
        if rejection is not None:
            builder.reject(run.reference, *rejection, n_published)
        else:
            builder.add(run.reference, run.rows(stack_of(run)), n_published)
    return builder.build()


def stack_of(run: ThreadRun) -> str:
    """Return the stack of a run: the thread's author or repository, and the machine.

    Examples
    --------
    >>> from builders.campaigns.threads import ThreadRun
    >>> stack_of(ThreadRun("", {"stack": "ik ubergarm 3090 Ti", "gpu": "NVIDIA GeForce RTX 3090 Ti"}))
    'ubergarm/rtx_3090_ti'
    """
    first, *rest = run.cells["stack"].split()
    if first == "ik":
        owner = rest[0]
    elif re.search(r"llama\.cpp \d+$", run.cells["stack"]):
        owner = "ggml-org"
    else:
        owner = OWNERS.get(first, first)
    machine = re.sub(
        r"^(NVIDIA|AMD|Intel|Tenstorrent) (GeForce |Radeon |Instinct |Blackhole )?", "", run.cells["gpu"]
    )
    return f"{owner.lower()}/{re.sub(r'[^a-z0-9]+', '_', machine.lower()).strip('_')}"


def _configuration(run: ThreadRun) -> tuple[str, ...]:
    return tuple(run.cells[name] for name in CONFIGURATION)
