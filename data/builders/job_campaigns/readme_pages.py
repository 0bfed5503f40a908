"""Small tables of READMEs: PaddleNLP, EasyContext, Megatron-LLaMA, and TinyGPT on A10 nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import number
from builders.job_campaigns.source_rows import (
    NODE_SIZE,
    PER_ACCELERATOR,
    Cells,
    RejectedRow,
    SourceRow,
    build,
)
from roofcast.data.units import BYTE_PER_GB, BYTE_PER_GBIT, BYTE_PER_MIB

FOLDER: Final = "training_2026_11/raw"

PADDLE_MODELS: Final = {
    "FlagAlpha/Llama2-Chinese-13b-Chat": "Llama-2-13b-hf", "FlagAlpha/Llama2-Chinese-7b-Chat": "Llama-2-7b-hf",
    "baichuan-inc/Baichuan2-13B-Base": "baichuan-inc/Baichuan2-13B-Base",
    "baichuan-inc/Baichuan2-7B-Base": "baichuan-inc/Baichuan2-7B-Base", "facebook/llama-13b": "huggyllama/llama-13b",
    "facebook/llama-7b": "huggyllama/llama-7b", "idea-ccnl/ziya-llama-13b-v1": "huggyllama/llama-13b",
    "linly-ai/chinese-llama-2-7b": "Llama-2-7b-hf", "meta-llama/Llama-2-13b": "Llama-2-13b-hf",
    "meta-llama/Llama-2-7b": "Llama-2-7b-hf", "qwen/qwen-7b": "Qwen/Qwen-7B",
}  # fmt: skip
"""Model of the same shape by name on the page."""

_EASY: Final = re.compile(r"(\d+)K (data parallel|ring) (\d+)")
_OKE: Final = re.compile(r"\| \*\*(\w+)\*\*\s+\| (\d)\s+\| \**([\d,]+)\**\s+\| [\d.]+\s+\| \**([\d.]+)\**\s+\|.*")
_OKE_SHARDINGS: Final = {"DDP": "ddp", "FSDP": "fsdp", "ZERO2": "zero2", "ZERO3": "zero3"}
_MEGATRON: Final = re.compile(r"(\w+) (256): (\d+), (512): (\d+)")


def build_paddlenlp(root: Path) -> BuildResult:
    """Build PaddleNLP's campaign from the files under `root`: the later page repeats the runs of the older."""
    rows = list(_paddle(root / FOLDER / "paddlenlp" / "tables.txt"))
    shared: Cells = {
        "stack": "paddlepaddle/paddlenlp", NODE_SIZE: 8.0, "accelerator": "nvidia-a100-sxm-80gb",
        "n_accelerator": 8.0, "framework": "paddlenlp", "method": "pretrain", "compute_precision": "bf16",
        "n_token_per_sequence": 4096.0, "sharding": "zero2", "pp": 1.0, "cp": 1.0, "flash_attention": "on",
        "memory_kind": "allocated", "software": "CUDA 11.8, NCCL 2.15", "packing": "packed", "offload": "none",
    }  # fmt: skip
    return build("paddlenlp", len(rows), rows, shared=shared)


def build_readme_tables(root: Path) -> BuildResult:
    """Build the campaign of EasyContext's and Megatron-LLaMA's READMEs from the files under `root`."""
    folder = root / FOLDER / "readme_tables"
    rows = [*_easy_context(folder / "easycontext.txt"), *_megatron_llama(folder / "megatron_llama.txt")]
    shared: Cells = {
        NODE_SIZE: 8.0, "accelerator": "nvidia-a100-sxm-80gb", "compute_precision": "bf16", "packing": "packed",
        "optimizer": "adamw",
    }  # fmt: skip
    return build("readme_tables", len(rows), rows, shared=shared)


def build_a10_oke(root: Path) -> BuildResult:
    """Build the campaign of TinyGPT on nodes of one A10 from the files under `root`."""
    file = root / FOLDER / "a10_oke" / "README_results.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = [_oke(f"{file.name}:{line}", match) for line, text in enumerate(lines, 1) if (match := _OKE.match(text))]
    shared: Cells = {
        "stack": "deepaksatna", NODE_SIZE: 1.0, "network": "ethernet",
        "node_bandwidth_byte_per_s": 24.6 * BYTE_PER_GBIT, "model": "tinygpt/117m", "accelerator": "nvidia-a10-24gb",
        "method": "pretrain", "n_micro_batch_sequence": 1.0, "n_gradient_accumulation": 4.0, "tp": 1.0, "pp": 1.0,
        "n_token_per_sequence": 2048.0, "packing": "packed", "date": "2026-01-06", "offload": "none",
    }  # fmt: skip
    return build("a10_oke", len(rows), rows, shared=shared)


def _paddle(file: Path) -> Iterator[SourceRow | RejectedRow]:
    date = "2023-11-27"
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if text.startswith("older"):
            date = "2023-09-01"
        parts = text.split("|")
        if len(parts) != 4 or parts[0] not in PADDLE_MODELS:
            continue
        name, plan, rate, memory = parts
        tp = 2.0 if plan.startswith("tp2") else 1.0
        yield SourceRow(f"{file.name}:{line}", {
            "model": PADDLE_MODELS[name], PER_ACCELERATOR: number(rate), "tp": tp, "dp": 8.0 / tp, "date": date,
            "memory_byte_per_accelerator": float(memory) * BYTE_PER_MIB, "note": f"{name}, {plan}",
            **(_paddle_batch(tp) if "7b" in name.casefold() or tp == 1.0 else {}),
        })  # fmt: skip


def _paddle_batch(tp: float) -> Cells:
    """Return batch and recomputation of the configurations of Llama 2 7B and of Baichuan2 13B."""
    micro = 2.0 if tp == 2.0 else 1.0
    return {
        "n_micro_batch_sequence": micro, "n_gradient_accumulation": 8.0, "n_global_batch_sequence": 64.0,
        "recomputation": "none" if tp == 2.0 else "full",
    }  # fmt: skip


def _easy_context(file: Path) -> Iterator[SourceRow]:
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        match = _EASY.fullmatch(text)
        if match:
            is_ring = match[2] == "ring"
            length = float(match[1]) * (1000.0 if match[1] == "700" else 1024.0)
            yield SourceRow(f"{file.name}:{line}", {
                "stack": "easycontext", "model": "Llama-2-7b-hf", "n_accelerator": 8.0, "framework": "easycontext",
                "method": "full", "tp": 1.0, "pp": 1.0, "cp": 8.0 if is_ring else 1.0, "dp": 1.0 if is_ring else 8.0,
                "sharding": "zero3", "offload": "optimizer+parameters", "recomputation": "full",
                "flash_attention": "on", "n_micro_batch_sequence": 1.0, "n_token_per_sequence": length,
                "n_gradient_accumulation": 1.0, "n_global_batch_sequence": 1.0 if is_ring else 8.0,
                "throughput_token_per_s": float(match[3]), "date": "2024-04-01",
            })  # fmt: skip


def _megatron_llama(file: Path) -> Iterator[SourceRow | RejectedRow]:
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        for match in _MEGATRON.finditer(text):
            for n_accelerator, rate in ((match[2], match[3]), (match[4], match[5])):
                yield SourceRow(f"{file.name}:{line}:{match[1]}:{n_accelerator}", {
                    "stack": "alibaba/megatron-llama", "model": "huggyllama/llama-13b", PER_ACCELERATOR: float(rate),
                    "n_accelerator": float(n_accelerator), "framework": "megatron-lm", "method": "pretrain",
                    "network": "infiniband", "node_bandwidth_byte_per_s": 800.0 * BYTE_PER_GBIT,
                    "sharding": "zero1", "note": match[1], "date": "2023-09-01",
                })  # fmt: skip
        if text.startswith("13B on 4x8"):
            yield RejectedRow(f"{file.name}:{line}", "no_outcome", "hours for 10 billion tokens at a rounded rate")


def _oke(reference: str, match: re.Match[str]) -> SourceRow:
    n_accelerator = float(match[2])
    return SourceRow(reference, {
        "n_accelerator": n_accelerator, "dp": n_accelerator, "sharding": _OKE_SHARDINGS[match[1]],
        "framework": "deepspeed" if match[1].startswith("ZERO") else "pytorch",
        "n_global_batch_sequence": 4.0 * n_accelerator, "throughput_token_per_s": number(match[3]),
        "memory_byte_per_accelerator": float(match[4]) * BYTE_PER_GB,
    })  # fmt: skip
