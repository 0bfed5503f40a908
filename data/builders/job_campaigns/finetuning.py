"""Fine-tuning on one or few accelerators: Lightning's LitGPT and Hugging Face PEFT's comparison of methods."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.headers import read_cells
from builders.job_campaigns.names import MODEL_NAMES
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.errors import UnknownNameError
from roofcast.data.job_campaigns.models import job_catalog
from roofcast.data.measurements.job_schema import ADAPTER_TARGETS
from roofcast.data.units import BYTE_PER_GB, s_from_ms

LITGPT: Final = "raw/litgpt/tables.jsonl"
PEFT: Final = "raw/hf_peft_method_comparison/metamathqa_results.csv"

_MACHINE: Final = re.compile(r"(\d+)x(\w+)")
_MACHINES: Final = {"A100": "A100 40GB"}
"""Accelerators of Lightning's machines; their A100 have 40 GB."""

_METHODS: Final = {"full": "full", "lora": "lora", "qlora": "qlora", "galore": "full"}
_LORA_VARIANTS: Final = {"-dora": "dora", "-lorafa": "lora-fa", "-rslora": "rslora", "-bdlora": "bdlora",
                         "-mica": "mica"}  # fmt: skip
_S_PER_MIN: Final = 60.0
_STATE_BYTE: Final = 8.0
"""Bytes of a trained weight in LitGPT's ``bf16-true``: weight, gradient and two moments."""
_PEFT_RUN: Final = "run_info.train_config."
_PEFT_TRAIN: Final = "train_info."


def build_litgpt(root: Path) -> BuildResult:
    """Build LitGPT's campaign from the files under `root`."""
    pages = read_pages(root / LITGPT)
    return build(
        "litgpt",
        len(pages),
        (_litgpt(page) for page in pages),
        shared={"stack": "lightning/litgpt", "memory_kind": "allocated"},
    )


def build_peft(root: Path) -> BuildResult:
    """Build the campaign of PEFT's method comparison from the files under `root`.

    Training time covers 5,000 steps without evaluation, so step time = training time / steps.
    """
    with (root / PEFT).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return build(
        "hf_peft_method_comparison",
        len(rows),
        _peft(rows),
        EXACT_RTOL,
        shared={"stack": "huggingface/peft", "memory_kind": "reserved"},
    )


def _litgpt(page: PageRow) -> SourceRow | RejectedRow:
    if "thunder" in page.file:
        return _thunder(page)
    if "finetune_lora" in page.file:
        return _tutorial(page)
    config = page.cells.get("Config") or page.cells.get("col", "")
    runtime = page.cells.get("Training runtime", "")
    machine = _MACHINE.search(page.cells.get("Machine") or runtime)
    name, _, recipe = config.partition("/")
    method = _METHODS.get(recipe.partition(".")[0], "")
    minutes = number(runtime.partition("(")[0].strip())
    if minutes is None or machine is None:
        return RejectedRow(page.reference, "no_outcome", "time or machine not filled in")
    n_accelerator = float(machine[1])
    is_sharded = (method or "full") == "full" and n_accelerator > 1
    cells = read_cells(page.cells) | ({"sharding": "fsdp", "recomputation": "full"} if is_sharded else {})
    if method == "full" and "galore" not in recipe and n_accelerator == 1 and not _holds_states(name, cells):
        cells.pop("memory_byte_per_accelerator", None)
    return SourceRow(
        page.reference,
        cells
        | {
            "model": name, "accelerator": _MACHINES.get(machine[2], machine[2]), "n_accelerator": n_accelerator,
            "method": method or "full",
            "framework": "litgpt", "date": page.date, "compute_precision": "bf16", "duration_s": minutes * _S_PER_MIN,
            "weight_precision": "int4" if method == "qlora" else "bf16",
            "optimizer": "galore-adamw" if "galore" in recipe else "adamw", "packing": "padded",
            "note": f"{page.cells.get('Epochs', '?')} epochs of 2,000 Alpaca examples; {config}",
        },
    )  # fmt: skip


def _holds_states(name: str, cells: Cells) -> bool:
    """Return whether the memory holds 16-bit weights, gradients and both moments of an unsharded model.

    Where it does not, the configuration's devices were more than the machine that the table names.
    """
    try:
        spec = job_catalog().model(MODEL_NAMES.get(name.casefold(), name))
    except UnknownNameError:
        return True
    return float(str(cells.get("memory_byte_per_accelerator", np.inf))) >= _STATE_BYTE * spec.n_param


def _thunder(page: PageRow) -> SourceRow | RejectedRow:
    step = number(page.cells["ms/iter @ step 10"])
    if step is None:
        return RejectedRow(page.reference, "no_outcome", "not supported, or not yet measured")
    setting = page.cells["Setting"]
    compiler = page.cells.get("Compiler") or page.cells.get("Compiler/JIT", "")
    executors = page.cells.get("Executors", "")
    return SourceRow(
        page.reference,
        read_cells(page.cells)
        | {
            "model": "TinyLlama-1.1B-intermediate-step-1431k-3T", "accelerator": "A100 40GB", "method": "pretrain",
            "framework": "litgpt", "date": page.date, "step_time_s": s_from_ms(step), "compute_precision": "bf16",
            "sharding": {"Fully-sharded ZeRO 3": "fsdp", "Replicated": "ddp"}.get(setting, ""),
            "note": "; ".join(part for part in (setting, compiler, executors) if part not in {"", "-"})[:200],
        },
    )  # fmt: skip


def _tutorial(page: PageRow) -> SourceRow:
    settings, memory = page.cells["Settings"], number(page.cells["Training Memory"])
    quantized = "bnb" in settings
    minutes = number(page.cells["Training Time"])
    return SourceRow(
        page.reference,
        {
            "model": "Llama-2-7b-hf" if "Llama 2 7B" in page.intro else "stablelm-base-alpha-3b",
            "accelerator": "A100 40GB", "n_accelerator": 1.0, "method": "qlora" if quantized else "lora",
            "framework": "litgpt", "date": page.date, "n_micro_batch_sequence": 1.0,
            "weight_precision": "int4" if quantized else "bf16" if "bf16-true" in settings else "fp32",
            "compute_precision": "bf16", "memory_byte_per_accelerator": memory * BYTE_PER_GB if memory else None,
            "duration_s": minutes * _S_PER_MIN if minutes else None,
            "status": "out_of_memory" if "OutOfMemory" in page.cells["Training Memory"] else "ok",
            "note": f"1,000 iterations; {settings.replace('--', '')}",
        },
    )  # fmt: skip


def _adapter(kind: str, name: str) -> str:
    """Return the variant of an adapter; variants of LoRA stand only in the name of the experiment."""
    variant = next((text for word, text in _LORA_VARIANTS.items() if name.endswith(word)), "")
    return variant if kind == "LORA" and variant else kind.casefold().replace("_", "-")


def _targets(modules: str) -> str:
    """Return the projections of a JSON list of modules; blank if one of them is no projection.

    Examples
    --------
    >>> _targets('["v_proj", "q_proj"]'), _targets('["norm"]'), _targets("self_attn")
    ('q v', '', '')
    """
    names = set(re.findall(r'"(\w+)"', modules))
    targets = {name.removesuffix("_proj") for name in names if name.endswith("_proj")}
    return " ".join(t for t in ADAPTER_TARGETS if t in targets) if len(targets) == len(names) else ""


def _peft(rows: list[dict[str, str]]) -> Iterator[SourceRow]:
    for i_row, row in enumerate(rows, start=1):
        kind = row["run_info.peft_config.peft_type"]
        name = row["run_info.experiment_name"]
        seconds, steps = number(row[f"{_PEFT_TRAIN}train_time"]), number(row[f"{_PEFT_RUN}max_steps"])
        is_full = "full" in name.split("/")[0]
        yield SourceRow(
            f"metamathqa_results.csv#{i_row}",
            {
                "model": row[f"{_PEFT_RUN}model_id"], "accelerator": row["meta_info.system_info.accelerator"],
                "n_accelerator": 1.0, "framework": "peft",
                "framework_version": row["meta_info.package_info.peft-version"],
                "software": f"torch {row['meta_info.package_info.torch-version']}, "
                f"transformers {row['meta_info.package_info.transformers-version']}",
                "method": "full" if is_full else "lora" if kind == "LORA" else "adapter",
                "adapter": "" if is_full else _adapter(kind, name),
                "adapter_rank": number(row["run_info.peft_config.r"]),
                "adapter_targets": _targets(row["run_info.peft_config.target_modules"]),
                "n_param_trained": number(row[f"{_PEFT_TRAIN}num_trainable_params"]), "compute_precision": "bf16",
                "compiled": "on" if row[f"{_PEFT_RUN}compile"] == "True" else "off", NODE_SIZE: 1.0,
                "weight_precision": "bf16", "n_micro_batch_sequence": number(row[f"{_PEFT_RUN}batch_size"]),
                "n_global_batch_sequence": number(row[f"{_PEFT_RUN}batch_size"]),
                "optimizer": row[f"{_PEFT_RUN}optimizer_type"].casefold(), "packing": "padded",
                "recomputation": "full" if row[f"{_PEFT_RUN}use_gc"] == "True" else "none",
                "step_time_s": seconds / steps if seconds and steps else None, "duration_s": seconds,
                "memory_byte_per_accelerator": number(row[f"{_PEFT_TRAIN}accelerator_memory_max"]),
                "date": row["run_info.created_at"][:10], "note": f"{name}; sequences of at most 768 tokens"[:200],
            },
        )  # fmt: skip
