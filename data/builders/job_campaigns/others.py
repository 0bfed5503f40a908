"""Smaller campaigns: NVIDIA's JAX Toolbox, XTuner and Colossal-AI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages
from builders.job_campaigns.headers import read_cells
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.units import FLOP_PER_TFLOP

JAX: Final = "raw/jax_toolbox/tables.jsonl"
XTUNER: Final = "raw/xtuner/tables.jsonl"
COLOSSAL: Final = "raw/colossalai/tables.jsonl"

_JAX_MODELS: Final = {
    "126M": "nvidia/gpt3-126m", "5B": "NeMo/gpt3_5b", "175B": "openai/gpt3-175b", "7B": "Llama-2-7b-hf",
    "T5-v1.1-small": "google/t5-v1_1-small", "T5-v1.1-large": "google/t5-v1_1-large",
    "T5-v1.1-xl": "google/flan-t5-xl", "T5-v1.1-xxl": "google/flan-t5-xxl",
}  # fmt: skip
"""Model of the same shape by size on the page."""

_SIZES: Final = {name: re.compile(rf"\b{name}[ =]?(\d+)", re.IGNORECASE) for name in ("tp", "pp", "ep", "mbs", "dp")}
_VPP: Final = re.compile(r"vpp(\d+)")
_RECOMPUTE: Final = {"select": "selective", "moe": "selective", "full": "full"}
_SETUPS: Final = ("配置", "Configuration", "并行配置", "Parallel Configuration")
_K: Final = re.compile(r"(\d+)([kM])")
_TOKENS: Final = {"k": 1024.0, "M": 1024.0**2}


def build_jax_toolbox(root: Path) -> BuildResult:
    """Build JAX Toolbox's campaign from the files under `root`."""
    pages = read_pages(root / JAX)
    return build(
        "jax_toolbox",
        len(pages),
        (_jax(page) for page in pages),
        shared={"stack": "nvidia/jax-toolbox", NODE_SIZE: 8.0},
    )


def build_xtuner(root: Path) -> BuildResult:
    """Build XTuner's campaign from the files under `root`; the hardware is named above its tables."""
    pages = read_pages(root / XTUNER)
    return build(
        "xtuner", len(pages), (_xtuner(page) for page in pages), shared={"stack": "internlm/xtuner", NODE_SIZE: 8.0}
    )


def build_colossalai(root: Path) -> BuildResult:
    """Build Colossal-AI's campaign from the files under `root`."""
    pages = read_pages(root / COLOSSAL)
    return build(
        "colossalai", len(pages), (_colossal(page) for page in pages), shared={"stack": "hpcaitech/colossalai"}
    )


def _sizes(text: str) -> dict[str, float]:
    """Parse parallel sizes and micro batch from a text such as ``tp2, pp8, mbs=4``."""
    matches = {name: pattern.search(text) for name, pattern in _SIZES.items()}
    return {name: float(match[1]) for name, match in matches.items() if match}


def _only(sizes: dict[str, float], *names: str) -> Cells:
    return {name: sizes[name] for name in names if name in sizes}


def _jax(page: PageRow) -> SourceRow | RejectedRow:
    rate = number(page.cells.get("Sequences/Sec"))
    size = page.cells.get("Size") or page.cells.get("size", "")
    if "vit" in page.file:
        return RejectedRow(page.reference, "unknown_model", "a vision transformer")
    cells = read_cells(page.cells)
    n_accelerator, per_device = cells.get("n_accelerator"), cells.get("n_micro_batch_sequence")
    llama, t5 = "LLaMA" in page.heading, "t5x" in page.file
    length = number(page.cells.get("Sequence Length")) or (4096.0 if llama else 512.0 if t5 else 2048.0)
    batch = float(str(n_accelerator)) * float(str(per_device)) if n_accelerator and per_device else None
    precision = page.cells.get("Precision", "").casefold()
    return SourceRow(page.reference, cells | {
        "model": _JAX_MODELS.get(size, size), "accelerator": page.cells.get("GPU", ""),
        "framework": "maxtext" if "maxtext" in page.file else "t5x" if t5 else "paxml", "date": page.date,
        "method": "lora" if "LoRA" in page.heading else "full" if "SFT" in page.heading else "pretrain",
        "compute_precision": "fp8" if "fp8" in precision else "bf16" if precision else "",
        "precision_recipe": "transformer-engine" if precision.startswith("te") else "",
        "n_token_per_sequence": length, "n_global_batch_sequence": batch,
        "throughput_token_per_s": rate * length if rate else None,
        **_jax_replicas(number(page.cells.get("DP")), number(page.cells.get("FSDP"))),
    })  # fmt: skip


def _jax_replicas(n_replica: float | None, n_shard: float | None) -> Cells:
    """Return data parallelism and sharding from the numbers of replicas (DP) and of shards per replica (FSDP)."""
    if n_replica is None or n_shard is None:
        return {}
    sharding = "ddp" if n_shard == 1 else "fsdp" if n_replica == 1 else "hsdp"
    return {"dp": n_replica * n_shard, "sharding": sharding}


def _xtuner(page: PageRow) -> SourceRow | RejectedRow:
    setup = next((page.cells[name] for name in _SETUPS if name in page.cells), None)
    if setup is None:
        return _xtuner_speed(page)
    if "float8" in page.file:
        return RejectedRow(page.reference, "unknown_model", "the page names no model")
    sizes = _sizes(setup)
    vpp, recompute = _VPP.search(setup), re.search(r"recompute=(\w+)", setup)
    return SourceRow(page.reference, read_cells(page.cells) | {
        "model": "Qwen/Qwen3-235B-A22B", "accelerator": "nvidia-h800-sxm-80gb", "framework": "megatron-lm",
        "method": "pretrain", "date": page.date, "compute_precision": "bf16", "sharding": "zero1", "note": setup,
        "software": "pai-megatron-patch 25.04", "vp": number(vpp[1]) if vpp else None,
        "recomputation": _RECOMPUTE.get(recompute[1], "") if recompute else "none",
        "n_micro_batch_sequence": sizes.get("mbs", 1.0),
    } | _only(sizes, "tp", "pp", "ep"))  # fmt: skip


def _xtuner_speed(page: PageRow) -> SourceRow:
    length = _K.fullmatch(page.cells["上下文长度"])
    speed = page.cells["速度 (tokens per second)"]
    flops = number(page.cells["吞吐量 (TFLOPs)"])
    model = page.cells["模型"]
    return SourceRow(page.reference, {
        "model": model.casefold() if model.startswith("Llama2") else model,
        "accelerator": "NVIDIA A100-SXM4-80GB", "n_accelerator": number(page.cells["GPU 数量"]), "method": "full",
        "framework": page.cells["col"].casefold().replace(" ", "-"), "date": page.date, "packing": "packed",
        "n_token_per_sequence": float(length[1]) * _TOKENS[length[2]] if length else None,
        "throughput_token_per_s_per_accelerator": number(speed),
        "model_flop_per_s_per_accelerator": flops * FLOP_PER_TFLOP if flops else None,
        "status": "out_of_memory" if "OOM" in speed else "ok",
    })  # fmt: skip


def _colossal(page: PageRow) -> SourceRow | RejectedRow:
    if "Batch Size per DP" not in page.cells:
        return RejectedRow(page.reference, "not_training", page.heading[-120:])
    cells = read_cells(page.cells)
    parallel = page.cells["Parallelism"]
    sizes = _sizes(parallel)
    n_split = sizes.get("tp", 1.0) * sizes.get("pp", 1.0)
    n_replica = sizes.get("dp", float(page.cells["GPUs"]) / n_split)
    per_replica = number(page.cells["Batch Size per DP"])
    rate, length = number(page.cells["Throughput"]), number(page.cells["Seqlen"])
    return SourceRow(page.reference, cells | {
        "model": f"llama2-{page.cells['Model Size'].casefold()}", "accelerator": page.cells["GPU"],
        "framework": "colossalai", "method": "pretrain", "date": page.date, "compute_precision": "bf16",
        "dp": n_replica,
        "sharding": match[0] if (match := re.match(r"zero\d", parallel)) else "",
        "n_global_batch_sequence": per_replica * n_replica if per_replica else None,
        "throughput_token_per_s": rate * length if rate and length else None, "note": parallel,
    } | _only(sizes, "tp", "pp", "ep"))  # fmt: skip
