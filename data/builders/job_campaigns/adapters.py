"""LoRA and QLoRA: Answer.AI's FSDP runs on consumer rigs, and Optimum Benchmark's Llama 2."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.markdown import MarkdownRow, read_markdown_rows
from builders.campaigns.pages import number
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.units import BYTE_PER_GIB

FSDP: Final = "training_2026_11/raw/fsdp_qlora/benchmarks_03_2024.md"
OPTIMUM: Final = "training_2026_11/raw/optimum_benchmark"

N_SAMPLE: Final = 1024.0
"""Dummy samples of full length that each run of the FSDP page trains on."""

_MODELS: Final = {
    "Mistral": "mistralai/Mistral-7B-v0.1", "7B": "meta-llama/Llama-2-7b-hf", "34B": "01-ai/Yi-34B",
    "70B": "meta-llama/Llama-2-70b-hf",
}  # fmt: skip
_RIGS: Final[dict[str, Cells]] = {
    "3090": {"accelerator": "nvidia-rtx-3090-24gb", "power_limit_w": 280.0, "stack": "answerdotai/3090"},
    "4090": {"accelerator": "nvidia-rtx-4090-24gb", "stack": "answerdotai/4090"},
}
_CLOUD: Final = {
    "A5000 24GB": "nvidia-rtx-a5000-24gb", "A6000 Ada 48GB": "nvidia-rtx-6000-ada-48gb",
    "A100 40GB SMX": "nvidia-a100-sxm-40gb", "H100 80GB SXM": "nvidia-h100-sxm-80gb",
}  # fmt: skip

_TRAINING: Final = "benchmark.training_arguments."
_OPTIMUM_GPUS: Final = {"A100": "nvidia-a100-sxm-80gb", "4090": "nvidia-rtx-4090-24gb"}
_OPTIMUM_FILES: Final = {
    "Llama-2-7b-hf_full_report.csv": "meta-llama/Llama-2-7b-hf",
    "Llama-2-13b-hf_full_report.csv": "meta-llama/Llama-2-13b-hf",
    "A100-80GB_full_report.csv": "", "RTX4090-24GB_full_report.csv": "", "full_report.csv": "",
}  # fmt: skip


def build_fsdp_qlora(root: Path) -> BuildResult:
    """Build Answer.AI's campaign from the files under `root`: the time of 1,024 samples on a few accelerators."""
    rows = list(read_markdown_rows(root / FSDP))
    shared = {"stack": "answerdotai/cloud", NODE_SIZE: 8.0}
    return build("fsdp_qlora", len(rows), _fsdp_rows(rows), EXACT_RTOL, shared=shared)


def build_optimum_benchmark(root: Path) -> BuildResult:
    """Build Optimum Benchmark's campaign from the files under `root`: Trainer on one accelerator, dummy data."""
    rows = [row for name in _OPTIMUM_FILES for row in _optimum_rows(root / OPTIMUM / name)]
    shared = {"stack": "huggingface/optimum-benchmark", NODE_SIZE: 1.0}
    return build("optimum_benchmark", len(rows), rows, EXACT_RTOL, shared=shared)


def _fsdp_rows(rows: list[MarkdownRow]) -> Iterator[SourceRow]:
    """Yield the runs; the section names rig and model, and the length is 2,048 where no column states it."""
    for row in rows:
        heading = " > ".join(row.headings)
        if "Accelerator" in row.cells:
            yield SourceRow(row.reference, _fsdp_cells(row.cells, _cloud(row.cells)))
            continue
        rig = next(cells for word, cells in _RIGS.items() if word in heading)
        model = next((name for word, name in _MODELS.items() if word in row.headings[-1]), _MODELS["34B"])
        length = number(row.cells.get("Context Length")) or 2048.0
        place = rig | {"model": model, "n_accelerator": 2.0, "n_token_per_sequence": length}
        yield SourceRow(row.reference, _fsdp_cells(row.cells, place))


def _cloud(cells: Mapping[str, str]) -> Cells:
    return {
        "accelerator": _CLOUD[cells["Accelerator"]], "n_accelerator": float(cells["GPUs"]),
        "model": _MODELS["70B"], "n_token_per_sequence": 2048.0,
    }  # fmt: skip


def _fsdp_cells(cells: Mapping[str, str], place: Mapping[str, object]) -> Cells:
    n_accelerator = float(str(place["n_accelerator"]))
    micro, seconds = number(cells.get("Batch Size")) or 1.0, number(cells["Time (s)"])
    memory = number(cells.get("Peak Memory (GiB)"))
    is_quantized = cells.get("Train Type", "QLoRA") == "QLoRA"
    offloads = cells.get("CPU+Activation Offload") == "True", cells.get("CPU Offload") == "True"
    length = float(str(place["n_token_per_sequence"]))
    return {
        **place, "framework": "fsdp_qlora", "method": "qlora" if is_quantized else "lora", "adapter": "lora",
        "adapter_rank": 64.0, "adapter_targets": "q k v gate up down", "compute_precision": "bf16",
        "weight_precision": "int4" if is_quantized else "bf16", "packing": "packed", "optimizer": "adamw",
        "sharding": "ddp" if cells.get("DDP") == "True" else "fsdp", "dp": n_accelerator,
        "offload": "optimizer+parameters" if any(offloads) else "none", "recomputation": "full",
        "n_micro_batch_sequence": micro, "n_global_batch_sequence": micro * n_accelerator,
        "n_gradient_accumulation": 1.0, "duration_s": seconds,
        "throughput_token_per_s": N_SAMPLE * length / seconds if seconds else None,
        "memory_byte_per_accelerator": memory * BYTE_PER_GIB if memory else None, "memory_kind": "reserved",
        "date": "2024-03-01", "note": "parameters and activations offloaded" if offloads[0] else "",
    }  # fmt: skip


def _optimum_rows(file: Path) -> Iterator[SourceRow | RejectedRow]:
    with file.open(encoding="utf-8", newline="") as stream:
        for i_row, row in enumerate(csv.DictReader(stream), start=1):
            yield _optimum(f"{file.name}#{i_row}", row, _OPTIMUM_FILES[file.name])


def _optimum(reference: str, row: Mapping[str, str], model: str) -> SourceRow | RejectedRow:
    rate, micro = (
        number(row["training.throughput(samples/s)"]),
        number(row[f"{_TRAINING}per_device_train_batch_size"]),
    )
    if rate is None or micro is None:
        return RejectedRow(reference, "no_outcome", "the report holds no throughput")
    gpus = row.get("environment.gpus") or row.get("environment.gpu", "")
    n_accelerator = float(max(1, gpus.count("NVIDIA")))
    name = row["experiment_name"]
    quantization = next((kind for kind in ("bnb", "gptq") if kind in name), "")
    is_adapter = bool(row["backend.peft_strategy"])
    length = number(row["benchmark.dataset_shapes.sequence_length"])
    return SourceRow(reference, {
        "model": model or row["model"].replace("TheBloke/Llama-2-7B-GPTQ", "meta-llama/Llama-2-7b-hf"),
        "accelerator": _OPTIMUM_GPUS["4090" if "4090" in gpus else "A100"],
        "n_accelerator": n_accelerator, "framework": "transformers", "software": "optimum-benchmark",
        "method": "qlora" if quantization else "lora" if is_adapter else "full",
        "adapter": "lora" if is_adapter else "",
        "adapter_rank": number(row["backend.peft_config.r"]) if is_adapter else None,
        "adapter_targets": "q v" if is_adapter else "", "weight_precision": "int4" if quantization else "fp16",
        "precision_recipe": quantization, "compute_precision": "fp16", "n_micro_batch_sequence": micro,
        "n_global_batch_sequence": micro * n_accelerator, "n_token_per_sequence": length, "packing": "packed",
        "n_gradient_accumulation": 1.0, "recomputation": "none", "offload": "none", "optimizer": "adamw",
        "throughput_token_per_s": rate * length if length else None, "date": "2023-12-04", "compiled": "off",
        "note": name,
    })  # fmt: skip
