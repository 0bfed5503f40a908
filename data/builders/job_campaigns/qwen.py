"""Fine-tuning of Qwen and its peers: the profile in Qwen's README and the benchmark of ms-swift."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.markdown import read_markdown_rows
from builders.campaigns.pages import number
from builders.job_campaigns.html_tables import HtmlRow, read_html_rows
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.units import BYTE_PER_GB, BYTE_PER_GIB

QWEN: Final = "training_2026_11/raw/qwen_finetune/README_profiling.md"
SWIFT: Final = "training_2026_11/raw/ms_swift/Benchmark.md"

LENGTHS: Final = (256, 512, 1024, 2048, 4096, 8192)
"""Sequence lengths of the columns of Qwen's table."""

QWEN_MODELS: Final = {"1.8B": "Qwen/Qwen-1_8B", "7B": "Qwen/Qwen-7B", "14B": "Qwen/Qwen-14B", "72B": "Qwen/Qwen-72B"}
_N_QWEN_HEAD: Final = 4
_QWEN_TARGETS: Final = "q k v o gate up down"
_FIGURES: Final = re.compile(r"([\d.]+)G? / ([\d.]+)s/it")

SWIFT_MODELS: Final = {
    "qwen-1_8b-chat": "Qwen/Qwen-1_8B", "qwen-7b-chat": "Qwen/Qwen-7B", "qwen-14b-chat": "Qwen/Qwen-14B",
    "qwen-72b-chat": "Qwen/Qwen-72B", "chatglm3-6b": "zai-org/chatglm3-6b", "yi-6b-chat": "01-ai/Yi-6B",
    "yi-34b-chat": "01-ai/Yi-34B", "openbuddy-zephyr-7b-chat": "mistralai/Mistral-7B-v0.1",
    "baichuan2-7b-chat": "baichuan-inc/Baichuan2-7B-Base", "baichuan2-13b-chat": "baichuan-inc/Baichuan2-13B-Base",
}  # fmt: skip
_SWIFT_DEFAULTS: Final[Cells] = {
    "n_token_per_sequence": 2048.0, "n_micro_batch_sequence": 1.0, "n_gradient_accumulation": 16.0,
    "recomputation": "full", "flash_attention": "on", "adapter_rank": 8.0, "weight_precision": "bf16",
}  # fmt: skip
_METHOD: Final = re.compile(r"\[(LoRA|FULL)\]")
_MACHINES: Final = re.compile(r"\s*\((\d)\*A100\)")
_SWITCHES: Final = {"✔": "on", "✘": "off"}


def build_qwen_finetune(root: Path) -> BuildResult:
    """Build the campaign of Qwen's README from the files under `root`.

    A cell holds memory and step time of one length. Memory of several accelerators is their sum.
    """
    rows = [row for row in read_html_rows(root / QWEN) if row.cells[2:3] in {("1",), ("2",)}]
    runs = [run for row in rows for run in _qwen(row)]
    shared = {"stack": "qwen", NODE_SIZE: 4.0}
    return build("qwen_finetune", len(runs), runs, shared=shared)


def build_ms_swift(root: Path) -> BuildResult:
    """Build ms-swift's campaign from the files under `root`.

    Samples are cut at the longest length; their mean is not stated, so that only memory is a measurement.
    """
    headings: dict[int, HtmlRow] = {}
    rows: list[SourceRow | RejectedRow] = []
    for row in read_html_rows(root / SWIFT):
        if row.table not in headings:
            headings[row.table] = row
        else:
            rows.append(_swift(row, dict(zip(headings[row.table].cells, row.cells, strict=False))))
    rows += [
        RejectedRow(line.reference, "no_sequence_length", "length and batch of the samples not stated")
        for line in read_markdown_rows(root / SWIFT, is_strict=False)
    ]
    return build("ms_swift", len(rows), rows, shared={"stack": "modelscope/ms-swift", NODE_SIZE: 8.0})


def _qwen(row: HtmlRow) -> Iterator[SourceRow | RejectedRow]:
    size, method, nodes, per_node = row.cells[:_N_QWEN_HEAD]
    n_accelerator = float(nodes) * float(per_node)
    settings = _qwen_method(method)
    for length, text in zip(LENGTHS, row.cells[_N_QWEN_HEAD:], strict=True):
        reference, match = f"{row.reference}:{length}", _FIGURES.fullmatch(text)
        if match is None:
            yield RejectedRow(reference, "no_outcome", "not run, as the text above the table says")
            continue
        yield SourceRow(reference, settings | {
            "model": QWEN_MODELS[size], "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": n_accelerator,
            "n_node": float(nodes), "framework": "transformers", "software": "PyTorch 2.0, CUDA 11.8, DeepSpeed",
            "compute_precision": "bf16", "n_micro_batch_sequence": 1.0, "n_gradient_accumulation": 8.0,
            "n_global_batch_sequence": 8.0 * n_accelerator, "n_token_per_sequence": float(length),
            "recomputation": "full", "flash_attention": "on", "optimizer": "adamw", "dp": n_accelerator,
            "packing": "packed", "step_time_s": float(match[2]), "date": "2023-09-25",
            "memory_byte_per_accelerator": float(match[1]) * BYTE_PER_GB / n_accelerator, "note": method,
        })  # fmt: skip


def _qwen_method(method: str) -> Cells:
    if method == "Full-parameter":
        return {"method": "full", "weight_precision": "bf16"}
    quantized = method == "Q-LoRA"
    targets = f"{_QWEN_TARGETS} embedding head" if "emb" in method else _QWEN_TARGETS
    return {
        "method": "qlora" if quantized else "lora", "adapter": "lora", "adapter_rank": 64.0,
        "adapter_targets": targets, "weight_precision": "int4" if quantized else "bf16",
        "sharding": "zero3" if "Zero3" in method else "",
    }  # fmt: skip


def _swift(row: HtmlRow, cells: Mapping[str, str]) -> SourceRow | RejectedRow:
    heading = next((name for name in cells if _METHOD.search(name)), "")
    memory = cells.get("GPU Memory (GiB)", "")
    if not heading or not memory:
        return RejectedRow(row.reference, "no_sequence_length", "length and batch of the samples not stated")
    method = "lora" if "[LoRA]" in heading else "full"
    n_machine = _MACHINES.search(" ".join(row.cells))
    n_accelerator = float(n_machine[1]) if n_machine else max(1.0, memory.count("+") + 1.0)
    parts = [number(part) for part in memory.split("+")]
    used = [part for part in parts if part is not None]
    quantization = cells.get("Quantization", "bf16")
    weights = quantization.partition(" ")[0]
    settings = _SWIFT_DEFAULTS | _swift_settings(cells)
    micro, passes = float(str(settings["n_micro_batch_sequence"])), float(str(settings["n_gradient_accumulation"]))
    return SourceRow(row.reference, settings | {
        "model": SWIFT_MODELS.get(_MACHINES.sub("", cells[heading]), cells[heading]),
        "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": n_accelerator, "framework": "ms-swift",
        "software": "torch 2.1.1, flash_attn 2.3.4, bitsandbytes 0.41.3", "compute_precision": "bf16",
        "method": "full" if method == "full" else "lora" if weights == "bf16" else "qlora",
        "weight_precision": weights, "precision_recipe": quantization.partition("(")[2].rstrip(")"),
        "adapter_rank": None if method == "full" else settings["adapter_rank"],
        "adapter": "" if method == "full" else "lora", "packing": "padded",
        "n_global_batch_sequence": micro * passes, "optimizer": "adamw", "date": "2024-01-01",
        "memory_byte_per_accelerator": max(used) * BYTE_PER_GIB if used else None,
        "status": "out_of_memory" if memory == "OOM" else "ok",
        "tp": 1.0, "pp": n_accelerator, "dp": 1.0,
        "note": "layers divided over the accelerators" if n_accelerator > 1.0 else "",
    })  # fmt: skip


def _swift_settings(cells: Mapping[str, str]) -> Cells:
    """Return the settings that a table varies."""
    result: Cells = {}
    columns = {
        "Max Length": "n_token_per_sequence", "Batch Size": "n_micro_batch_sequence", "LoRA Rank": "adapter_rank",
        "Gradient Accumulation Steps": "n_gradient_accumulation",
    }  # fmt: skip
    for heading, text in cells.items():
        column = columns.get(heading.partition(" [")[0])
        if column and number(text):
            result[column] = number(text)
        elif heading == "Use Flash Attn":
            result["flash_attention"] = _SWITCHES.get(text, "")
        elif heading == "LoRA Target Modules":
            result["adapter_targets"] = _QWEN_TARGETS if text.startswith("ALL") else "q k v"
        elif heading.startswith("Trainable Params") and number(text):
            result["n_param_trained"] = round(float(text) * 1e6)
        elif heading == "Gradient Checkpointing":
            result["recomputation"] = {"on": "full", "off": "none"}.get(_SWITCHES.get(text, ""), "")
    return result
