"""Pretraining on A100 and H200 clusters: InternEvo and KempnerForge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.markdown import MarkdownRow, read_markdown_rows
from builders.campaigns.pages import number
from builders.job_campaigns.source_rows import (
    NODE_SIZE,
    PER_ACCELERATOR,
    Cells,
    RejectedRow,
    SourceRow,
    build,
)
from roofcast.data.units import BYTE_PER_GB, BYTE_PER_GBIT, FLOP_PER_TFLOP

INTERNEVO: Final = "training_2026_11/raw/internevo/train_performance.md"
KEMPNER: Final = "training_2026_11/raw/kempner_forge"

_INTERN_MODELS: Final = {"7B": "internlm/internlm-7b", "20B": "internlm/internlm-20b"}
_GPUS: Final = re.compile(r"(\d+) GPUs")
_ZERO: Final = re.compile(r"\(tp=(\d), zero1=(-?\d)\)")
_ROCE: Final[Cells] = {"network": "roce", "node_bandwidth_byte_per_s": 400.0 * BYTE_PER_GBIT}

_KEMPNER_MODELS: Final = {
    "7B": "meta-llama/Meta-Llama-3-8B", "13B": "kempner/llama3-14.8b", "70B": "meta-llama/Meta-Llama-3-70B",
}  # fmt: skip
_KEMPNER_BATCHES: Final = {"7B": (4.0, 2.0), "13B": (4.0, 4.0), "70B": (2.0, 4.0)}
"""Micro batch and accumulation by model, from the section on batches."""

_N_EXPERT_REPLICA: Final = 4.0
_EXPERT_PASSES: Final = {1.0: 8.0, 2.0: 4.0}
"""Accumulation by micro batch in ``moe_ep_bench.sh``; 1 for larger ones."""

_SHARD: Final = re.compile(r"(TP|FSDP)=(\d+)")
_PACKED: Final = re.compile(r"E=(\d+),\s+(FSDP=8|FSDP2\+EP4),\s+(packed|unpacked)")
_USED: Final = re.compile(r"\**([\d.]+) GB\**")


def build_internevo(root: Path) -> BuildResult:
    """Build InternEvo's campaign from the files under `root`."""
    rows = [run for row in read_markdown_rows(root / INTERNEVO) for run in _intern(row)]
    return build("internevo", len(rows), rows, shared={"stack": "internlm/internevo", NODE_SIZE: 8.0})


def build_kempner_forge(root: Path) -> BuildResult:
    """Build KempnerForge's campaign from the files under `root`."""
    names = ("mfu_scaling.md", "moe_ep_benchmark.md", "moe_packed_benchmark.md")
    rows = [run for name in names for row in read_markdown_rows(root / KEMPNER / name) for run in _kempner(row)]
    shared = {
        "stack": "kempner", NODE_SIZE: 4.0, "network": "infiniband", "accelerator": "nvidia-h200-sxm-141gb",
        "framework": "kempnerforge", "method": "pretrain", "compute_precision": "bf16", "optimizer": "adamw",
        "pp": 1.0, "cp": 1.0, "packing": "packed", "offload": "none",
    }  # fmt: skip
    return build("kempner_forge", len(rows), rows, shared=shared)


def _intern(row: MarkdownRow) -> Iterator[SourceRow | RejectedRow]:
    cells = row.cells
    if "Activation Ckpt" in cells:
        yield SourceRow(row.reference, _intern_packed(cells))
    elif "Parallel Configuration" in cells:
        match = _ZERO.fullmatch(cells["Parallel Configuration"])
        for heading, text in cells.items():
            gpus = _GPUS.fullmatch(heading)
            if match and gpus:
                micro = 2.0 * float(match[1])
                plan = _intern_plan(float(gpus[1]), float(match[1]), match[2]) | {"n_micro_batch_sequence": micro}
                yield SourceRow(f"{row.reference}:{heading}", plan | _ROCE | {
                    "n_gradient_accumulation": 4.0, "recomputation": "none", "packing": "packed",
                    "n_token_per_sequence": 2048.0, PER_ACCELERATOR: number(text),
                    "n_global_batch_sequence": micro * 4.0 * float(gpus[1]) / float(match[1]),
                })  # fmt: skip
    elif "fsdp" in cells:
        yield SourceRow(row.reference, _intern_memory(cells))
    elif "GPU Number" in cells:
        yield RejectedRow(row.reference, "repeated_run", "summary of the tables below it")
    else:
        yield RejectedRow(row.reference, "not_training", "settings, or inference")


def _intern_plan(n_accelerator: float, tp: float, zero: str) -> Cells:
    return {
        "model": _INTERN_MODELS["7B"], "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": n_accelerator,
        "framework": "internevo", "method": "pretrain", "compute_precision": "bf16", "tp": tp, "pp": 1.0, "cp": 1.0,
        "dp": n_accelerator / tp, "sharding": "zero1", "offload": "none", "optimizer": "adamw", "date": "2024-03-28",
        "flash_attention": "on",
        "note": "" if zero == "-1" else f"optimizer states shared by groups of {zero}",
    }  # fmt: skip


def _intern_packed(cells: Mapping[str, str]) -> Cells:
    n, micro, passes = (number(cells[name]) or 1.0 for name in ("GPU Num", "Micro Bsz", "Micro Num"))
    rate = number(cells["TFLOPS"])
    recomputed = cells["Activation Ckpt"] == "TRUE"
    figure = "hardware_flop_per_s_per_accelerator" if recomputed else "model_flop_per_s_per_accelerator"
    return _intern_plan(n, number(cells["TP"]) or 1.0, cells["Zero1"]) | _ROCE | {
        "recomputation": "full" if recomputed else "none", "packing": "packed", "n_micro_batch_sequence": micro,
        "n_gradient_accumulation": passes, "n_global_batch_sequence": micro * passes * n,
        "n_token_per_sequence": number(cells["Seq Len"]), PER_ACCELERATOR: number(cells["TGS"]),
        figure: rate * FLOP_PER_TFLOP if rate else None,
    }  # fmt: skip


def _intern_memory(cells: Mapping[str, str]) -> Cells:
    n, tp, pp = (number(cells[name]) or 1.0 for name in ("Number of GPU", "tp", "pp"))
    is_fsdp, memory = cells["fsdp"] == "True", number(cells["GPU Memory (GB)"])
    return _intern_plan(n, tp, "-1") | {
        "model": _INTERN_MODELS[cells["model"]], "accelerator": "nvidia-a800-sxm-80gb", "pp": pp,
        "dp": n / tp / pp, "sharding": "fsdp" if is_fsdp else "zero1", "recomputation": "full",
        "n_micro_batch_sequence": 1.0, "n_gradient_accumulation": 4.0, "n_token_per_sequence": 2048.0,
        "n_global_batch_sequence": 4.0 * n / tp / pp, "sequence_parallel": "off", "date": "2023-11-21",
        "memory_byte_per_accelerator": memory * BYTE_PER_GB if memory else None, "packing": "packed",
    }  # fmt: skip


def _kempner(row: MarkdownRow) -> Iterator[SourceRow | RejectedRow]:
    cells, heading = row.cells, row.headings[-1]
    if "Parallelism" in cells and "GPUs" in cells:
        yield SourceRow(row.reference, _kempner_dense(cells))
    elif "AC" in cells:
        yield _kempner_experts(row.reference, cells, "Before" in heading)
    elif "Cell" in cells and (match := _PACKED.match(cells["Cell"])):
        n_expert, micro = int(match[1]), number(cells["batch"]) or 1.0
        ep = 4.0 if "EP4" in match[2] else 1.0
        n_replica = 8.0 / ep
        yield SourceRow(row.reference, _kempner_outcome(cells) | {
            "model": f"kempner/llama3-moe-{n_expert}x-2048", "n_accelerator": 8.0, "tp": 1.0, "ep": ep,
            "sharding": "fsdp", "recomputation": "full", "n_token_per_sequence": 4096.0, "compiled": "off",
            "n_micro_batch_sequence": micro, "n_global_batch_sequence": n_replica * micro,
            "dp": n_replica if ep == 1.0 else None, "date": "2026-04-13", "note": f"experts {match[3]}",
        })  # fmt: skip
    else:
        yield RejectedRow(row.reference, "not_a_run", "settings, or figures of another table")


def _kempner_dense(cells: Mapping[str, str]) -> Cells:
    sizes = {name: float(size) for name, size in _SHARD.findall(cells["Parallelism"])}
    micro, passes = _KEMPNER_BATCHES[cells["Model"]]
    n_accelerator = float(cells["GPUs"])
    dp = sizes.get("FSDP", n_accelerator / sizes.get("TP", 1.0))
    return _kempner_outcome(cells) | {
        "model": _KEMPNER_MODELS[cells["Model"]], "n_accelerator": n_accelerator, "tp": sizes.get("TP", 1.0),
        "dp": dp, "ep": 1.0, "sharding": "fsdp" if dp > 1.0 else "", "recomputation": "full", "date": "2026-04-05",
        "n_micro_batch_sequence": micro, "n_gradient_accumulation": passes, "n_token_per_sequence": 4096.0,
        "n_global_batch_sequence": micro * passes * dp, "compiled": "off" if cells["#"] == "8" else "on",
    }  # fmt: skip


def _kempner_experts(reference: str, cells: Mapping[str, str], is_deferred: bool) -> SourceRow | RejectedRow:
    """Return a run of eight experts over two ranks, which share the batches of a replica."""
    outcome = _kempner_outcome(cells)
    micro = number(cells["batch_size"].strip("*")) or 1.0
    passes = _EXPERT_PASSES.get(micro, 1.0)
    is_oom = "OOM" in cells["Mem/GPU"]
    if is_oom:
        outcome = {"status": "out_of_memory"}
    note = "experts gathered for all layers at once" if is_deferred else "experts gathered layer by layer"
    return SourceRow(reference, outcome | {
        "model": "kempner/llama3-moe-8x-2048", "n_accelerator": 32.0, "tp": 4.0, "ep": 2.0,
        "n_global_batch_sequence": _N_EXPERT_REPLICA * micro * passes,
        "sharding": "fsdp", "recomputation": cells["AC"].strip("*"), "n_micro_batch_sequence": micro,
        "n_token_per_sequence": 4096.0, "compiled": "off", "date": "2026-04-10", "note": note,
    })  # fmt: skip


def _kempner_outcome(cells: Mapping[str, str]) -> Cells:
    texts = {name.partition(" (")[0]: text.strip("*") for name, text in cells.items()}
    step, mfu = number(texts["Step Time"].removesuffix("s")), number(texts["MFU"])
    used = _USED.fullmatch(texts["Mem/GPU"]) if "Mem/GPU" in texts else None
    memory = float(used[1]) if used else number(texts.get("Peak Mem"))
    return {
        "throughput_token_per_s": number(texts["tok/s"]), "step_time_s": step,
        "mfu_ratio": mfu / 100.0 if mfu else None,
        "memory_byte_per_accelerator": memory * BYTE_PER_GB if memory else None,
    }  # fmt: skip
