"""NVIDIA's NeMo family: Megatron Bridge, NeMo, NeMo Framework Launcher and NeMo AutoModel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from roofcast.data.campaigns.built import Built
from roofcast.data.training_campaigns.candidates import Aside, Candidate, Cells, build
from roofcast.data.training_campaigns.headers import plain, read_cells
from roofcast.data.training_campaigns.pages import PageRow, number, read_pages, split_brackets

BRIDGE: Final = "raw/nemo_megatron_bridge/perf_summary_tables.jsonl"
NEMO: Final = "raw/nemo/perf_tables.jsonl"
LAUNCHER: Final = "raw/nemo_framework_launcher/perf_tables.jsonl"
AUTOMODEL: Final = "raw/nemo_automodel/tables.jsonl"

_RELEASE: Final = re.compile(r"(\d\d\.\d\d(?:\.\d\d)?) NeMo Container")
_SYSTEM: Final = re.compile(r"DGX-\w+")
_MODEL: Final = re.compile(r"Model: (.+)$")
_PRECISION: Final = re.compile(r"\b(BF16|FP8)\b")
_NAMED: Final = re.compile(r"LLAMA\d-\d+B|GPT3 20B")
_VARIANT: Final = re.compile(r"\s*\(([^)]*)\)")

RECIPES: Final = {
    "BF16": ("bf16", ""),
    "FP8": ("fp8", ""),
    "FP8-CS": ("fp8", "fp8-tensor"),
    "FP8-MX": ("fp8", "mxfp8"),
    "MXFP8": ("fp8", "mxfp8"),
    "FP8-SC": ("fp8", "fp8-block"),
    "NVFP4": ("fp4", "nvfp4"),
}
"""Precision as printed to that of the multiplications and the scaling: one scale a tensor, a block of 128, of 32."""

_METHODS: Final = (
    ("lora", "lora"),
    ("peft", "lora"),
    ("sft", "full"),
    ("fine-tuning", "full"),
    ("finetuning", "full"),
)
_DRAFT: Final = ("Est. time to train (1T tokens, 1K GPUs)", "Est. time to train (40M tokens)")
_NOT_TRAINING: Final = re.compile(r"Inference|Accuracy|latency|MNLI|XNLI|Runtime key", re.IGNORECASE)


def build_megatron_bridge(root: Path) -> Built:
    """Return Megatron Bridge's campaign built from the files under `root`.

    A cell such as ``1 (16)`` holds two runs. The page says below its tables that brackets mean the other scaling of
    the same FP8 (blocks of 32, on H100 of 128), and its next release prints ``FP8-CS (FP8-MX)`` beside such cells.
    """
    pages = read_pages(root / BRIDGE)
    return build("nemo_megatron_bridge", len(pages), (found for page in pages for found in _bridge(page)))


def build_nemo(root: Path) -> Built:
    """Return NeMo's campaign built from the files under `root`."""
    pages = read_pages(root / NEMO)
    return build("nemo", len(pages), (_nemo(page) for page in pages))


def build_launcher(root: Path) -> Built:
    """Return NeMo Framework Launcher's campaign built from the files under `root`."""
    pages = read_pages(root / LAUNCHER)
    return build("nemo_framework_launcher", len(pages), (_launcher(page) for page in pages))


def build_automodel(root: Path) -> Built:
    """Return NeMo AutoModel's campaign built from the files under `root`."""
    pages = read_pages(root / AUTOMODEL)
    return build("nemo_automodel", len(pages), (_automodel(page) for page in pages))


def _bridge(page: PageRow) -> Iterator[Candidate | Aside]:
    release = _first(_RELEASE, page.heading)
    if "Precision" not in page.cells and release == "25.11":
        yield Aside(page.reference, "superseded", "first draft of the 25.11 tables, replaced on the same day")
        return
    if "Model TFLOP / sec / GPU" not in page.cells:
        yield Aside(page.reference, "malformed", "a cell is missing, so that the others stand under wrong headings")
        return
    model = page.cells.get("Model") or _first(_MODEL, page.heading)
    numbers = {heading: text for heading, text in page.cells.items() if heading not in {"Model", "System"}}
    outside, inside = split_brackets(numbers)
    system = page.cells.get("System") or _first(_SYSTEM, page.heading)
    shared: Cells = {
        "model": _VARIANT.sub("", model).strip(), "note": "; ".join(_VARIANT.findall(model)),
        "accelerator": system, "framework": "megatron-bridge", "framework_version": release,
        "software": f"NeMo container {release}", "date": page.date, "method": _method(page.heading),
    }  # fmt: skip
    named = "Precision" in page.cells
    blocks = "FP8-SC" if system == "DGX-H100" else "FP8-MX"
    yield Candidate(page.reference, shared | _bridge_cells(outside, "" if inside is None or named else "FP8-CS"))
    if inside is not None:
        yield Candidate(f"{page.reference}()", shared | _bridge_cells(inside, "" if named else blocks))


def _bridge_cells(texts: dict[str, str], precision: str) -> Cells:
    compute, recipe = RECIPES.get(precision or texts.get("Precision", ""), ("", ""))
    return _with_sharding(texts) | {"compute_precision": compute, "precision_recipe": recipe}


def _with_sharding(texts: dict[str, str]) -> Cells:
    cells = read_cells(texts)
    sharded = number(texts.get("FSDP"))
    if sharded is not None:
        cells["sharding"] = "fsdp" if sharded else "ddp"
    return cells


def _nemo(page: PageRow) -> Candidate | Aside:
    precision = page.cells.get("Precision") or _first(_PRECISION, f"{page.intro} {page.heading}")
    compute, recipe = RECIPES.get(precision, ("", ""))
    task = page.cells.get("Task", "")
    context: Cells = {
        "model": page.cells.get("Model") or _first(_NAMED, f"{page.heading} {page.intro}"),
        "accelerator": _first(_SYSTEM, f"{page.heading} {page.intro}") or "DGX-H100",
        "framework": "nemo", "date": page.date, "method": _method(task or page.heading),
        "compute_precision": compute, "precision_recipe": recipe,
        "packing": "packed" if "Packed Sequence Length" in page.cells else "",
    }  # fmt: skip
    cells = read_cells(page.cells)
    if "batchsize" in {plain(heading) for heading in page.cells}:
        cells["n_global_batch_sequence"] = number(page.cells["Batch Size"])
    return Candidate(page.reference, cells | context)


def _launcher(page: PageRow) -> Candidate | Aside:
    place = f"{page.heading} {page.file} {' '.join(page.cells)}"
    if page.file != "examples/README.md":
        kind = "not_training" if _NOT_TRAINING.search(place) else "unknown_accelerator"
        return Aside(page.reference, kind, page.heading[-120:])
    if any(heading in page.cells for heading in _DRAFT):
        return Aside(page.reference, "placeholder", "draft of the page, replaced on the same day")
    precision = page.cells.get("Precision") or _first(_PRECISION, page.intro)
    compute, recipe = RECIPES.get(precision, ("", ""))
    context: Cells = {
        "model": page.cells.get("Model", ""),
        "accelerator": page.cells.get("GPU", "H100"),
        "framework": "nemo-framework-launcher", "date": page.date,
        "method": _method(page.cells.get("Mode", page.heading)),
        "compute_precision": compute, "precision_recipe": recipe,
        "packing": "packed" if "packed" in page.intro else "",
    }  # fmt: skip
    return Candidate(page.reference, read_cells(page.cells) | context)


def _automodel(page: PageRow) -> Candidate | Aside:
    if "Model" not in page.cells and "Technique" not in page.cells:
        return Aside(page.reference, "not_training", page.heading[-120:])
    context: Cells = {
        "model": _VARIANT.sub("", page.cells.get("Model", "Llama-3.2-1B")).replace("2-node", "").strip(),
        "accelerator": "DGX-H100",
        "framework": "nemo-automodel", "date": page.date, "method": _method(page.heading),
        "compute_precision": "bf16" if "BF16" in page.heading else "",
        "note": page.cells.get("Technique", page.cells.get("Kernel Optimizations", "")).removeprefix("+ "),
    }  # fmt: skip
    return Candidate(page.reference, _with_sharding(page.cells) | context)


def _method(text: str) -> str:
    return next((method for word, method in _METHODS if word in text.casefold()), "pretrain")


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[match.lastindex or 0] if match else ""
