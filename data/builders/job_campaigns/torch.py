"""PyTorch's torchtune: fine-tuning on one A100."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages
from builders.job_campaigns.headers import read_cells
from builders.job_campaigns.source_rows import Cells, RejectedRow, SourceRow, build

TUNE: Final = "raw/torchtune/tables.jsonl"

_LINK: Final = re.compile(r"\[\+? ?([^\]]+)\]\([^)]*\)")


def build_torchtune(root: Path) -> BuildResult:
    """Build torchtune's campaign from the files under `root`; each row adds a technique to the row above."""
    pages = read_pages(root / TUNE)
    return build("torchtune", len(pages), (_tune(page) for page in pages), shared={"stack": "pytorch/torchtune"})


def _tune(page: PageRow) -> SourceRow | RejectedRow:
    if "Technique" not in page.cells:
        return RejectedRow(page.reference, "not_training", page.heading[-120:])
    technique = _LINK.sub(r"\1", page.cells["Technique"]).removeprefix("+ ")
    order = list(_TUNE_STEPS)
    position = order.index(technique) if technique in order else order.index("Chunked Cross Entropy")
    steps = order[: position + 1]
    cells: Cells = read_cells(page.cells)
    for step in steps:
        cells |= _TUNE_STEPS[step]
    return SourceRow(
        page.reference,
        cells
        | {
            "model": "Llama-3.2-3B", "accelerator": "A100", "n_accelerator": 1.0, "framework": "torchtune",
            "compute_precision": "bf16", "n_micro_batch_sequence": 2.0, "n_token_per_sequence": 4096,
            "throughput_token_per_s": number(page.cells["Tokens Per Second"]), "date": page.date, "note": technique,
            "memory_kind": "allocated" if "Peak Memory Active (GiB)" in page.cells else "",
        },
    )  # fmt: skip


_TUNE_STEPS: Final[dict[str, Cells]] = {
    "Baseline": {
        "method": "full",
        "packing": "padded",
        "recomputation": "none",
        "offload": "none",
        "optimizer": "adamw",
        "compiled": "off",
        "loss": "full",
    },
    "Packed Dataset": {"packing": "packed"},
    "Compile": {"compiled": "on"},
    "Chunked Cross Entropy": {"loss": "chunked"},
    "Activation Checkpointing": {"recomputation": "full"},
    "Fuse optimizer step into backward": {},
    "Activation Offloading": {"offload": "activations"},
    "8-bit AdamW": {"optimizer": "adamw8bit", "state_precision": "int8"},
    "LoRA": {"method": "lora"},
    "QLoRA": {"method": "qlora", "weight_precision": "int4"},
}
