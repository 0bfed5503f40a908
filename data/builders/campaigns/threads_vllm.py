"""vLLM's benchmark in public threads: issues, pull requests and pages of some 40 stacks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder
from builders.campaigns.threads import TABLES, read_runs

TABLE: Final = "threads_vllm.csv"

OWNERS: Final = {"tt": "tenstorrent", "tpu": "wyzhang"}
"""Owner by the first part of a stack's name, where it differs."""

ACCELERATORS: Final = {"H800 or H200 (which not told)": "", "TPU (type not told, 4 chips / 8 devices)": ""}

DOUBTFUL: Final = re.compile(r"taken as|inferred")


def build_threads_vllm(root: Path) -> BuildResult:
    """Build the campaign from its table under `root`.

    Raises
    ------
    SchemaError
        If the file is missing.
    """
    builder = CampaignBuilder("threads_vllm", accelerators=ACCELERATORS)
    for run in read_runs(root / TABLES / TABLE):
        n_published = len(run.outcomes)
        rejection = run.rejection()
        if DOUBTFUL.search(run.cells["doubt"]):
            rejection = ("doubtful", run.cells["doubt"])
        if rejection is not None:
            builder.reject(run.reference, *rejection, n_published)
        else:
            builder.add(run.reference, run.rows(_stack(run.cells["stack"])), n_published)
    return builder.build()


def _stack(name: str) -> str:
    """Return the stack of a name such as ``tt-n300``: owner and rig."""
    owner, _, rig = name.partition("-")
    return f"{OWNERS.get(owner, owner)}/{rig}"
