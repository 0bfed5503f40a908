"""TorchAO: FP8 pretraining in torchtitan, low-bit optimizers, and quantised training on one card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import number
from builders.job_campaigns.source_rows import (
    NODE_SIZE,
    PER_ACCELERATOR,
    RejectedRow,
    SourceRow,
    build,
)
from roofcast.data.units import BYTE_PER_GB

RAW: Final = "training_2026_11/raw/torchao"
WORKFLOWS: Final = "docs_source_workflows_training.md"
OPTIMIZERS: Final = "torchao_optim_README.md"
QUANTIZED: Final = "torchao_prototype_quantized_training_README.md"

_SYSTEMS: Final = {"NVIDIA H100": "nvidia-h100-sxm-80gb", "AMD MI300x": "amd-mi300x-192gb"}
_RECIPES: Final = (
    ("rowwise_with_gw_hp", "fp8-row-gw-hp"), ("rowwise", "fp8-row"), ("tensorwise", "fp8-tensor"), ("none", ""),
)  # fmt: skip
_STATES: Final = {
    "PyTorch (fused)": ("adamw", "bf16"), "bnb 8-bit": ("adamw8bit", "int8"), "ao 8-bit": ("adamw8bit", "int8"),
    "ao 4-bit": ("adamw4bit", "int4"),
}  # fmt: skip
"""Optimizer and precision of its states in the fine-tuning of Llama 2 in pure BF16."""


def build_torchao(root: Path) -> BuildResult:
    """Build TorchAO's campaign from the files under `root`; the B200 table stands in torchtitan's campaign."""
    folder = root / RAW
    rows = [*_workflows(folder / WORKFLOWS), *_optimizers(folder / OPTIMIZERS), *_quantized(folder / QUANTIZED)]
    return build(
        "torchao", len(rows), rows, shared={"stack": "pytorch/torchao", NODE_SIZE: 8.0, "method": "pretrain"}
    )


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        yield f"{file.name}:{line}", text


def _workflows(file: Path) -> Iterator[SourceRow | RejectedRow]:
    system = ""
    for reference, text in _lines(file):
        if text.startswith("#"):
            system = text.strip("# ")
        if not text.startswith("| Llama3-8b"):
            continue
        if system not in _SYSTEMS:
            yield RejectedRow(reference, "duplicate", "torchtitan's campaign holds the table of B200")
            continue
        _, scaling, memory, rate, *_ = (cell.strip() for cell in text.strip("| ").split("|"))
        recipe = next(name for word, name in _RECIPES if scaling.startswith(word))
        yield SourceRow(reference, {
            "model": "meta-llama/Meta-Llama-3-8B", "accelerator": _SYSTEMS[system], "n_accelerator": 8.0,
            "framework": "torchtitan", "compute_precision": "fp8" if recipe else "bf16", "precision_recipe": recipe,
            "tp": 1.0, "pp": 1.0, "cp": 1.0, "dp": 8.0, "sharding": "fsdp", "recomputation": "selective",
            "compiled": "on", "offload": "none", "n_micro_batch_sequence": 1.0, "n_gradient_accumulation": 1.0,
            "n_global_batch_sequence": 8.0, "n_token_per_sequence": 8192.0, "packing": "packed",
            PER_ACCELERATOR: number(rate), "memory_byte_per_accelerator": float(memory) * BYTE_PER_GB,
            "memory_kind": "allocated", "optimizer": "adamw", "date": "2025-06-01",
        })  # fmt: skip


def _optimizers(file: Path) -> Iterator[SourceRow | RejectedRow]:
    """Yield the fine-tuning runs of Llama 2; batch and length of Alpaca's samples are not stated."""
    is_text = False
    for reference, text in _lines(file):
        is_text = "toks/s" in text or (is_text and "|" in text)
        name = text.partition("|")[0].strip()
        if is_text and name in _STATES:
            optimizer, states = _STATES[name]
            memory = number(text.split("|")[1])
            yield SourceRow(reference, {
                "model": "Llama-2-7b-hf", "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": 1.0,
                "framework": "torchtune", "method": "full", "compute_precision": "bf16", "weight_precision": "bf16",
                "optimizer": optimizer, "state_precision": states, "packing": "padded", "offload": "none",
                "throughput_token_per_s": number(text.split("|")[2]), "memory_kind": "allocated",
                "memory_byte_per_accelerator": memory * BYTE_PER_GB if memory else None, "date": "2024-09-01",
                "note": name,
            })  # fmt: skip


def _quantized(file: Path) -> Iterator[SourceRow | RejectedRow]:
    for reference, text in _lines(file):
        cells = [cell.strip() for cell in text.split("|")]
        if len(cells) >= 3 and cells[0].startswith(("BF16 ", "INT8 ")):
            yield _quantized_run(reference, cells)


def _quantized_run(reference: str, cells: list[str]) -> RejectedRow:
    part = "RTX 4090" if "~" in cells[1] else "RTX 4070 Ti SUPER"
    return RejectedRow(reference, "unknown_model", f"a Llama of about 1B whose shape is not stated, on {part}")
