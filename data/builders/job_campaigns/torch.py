"""PyTorch's trainers: pretraining with torchtitan and fine-tuning with torchtune."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages
from builders.job_campaigns.headers import read_cells
from builders.job_campaigns.source_rows import NODE_SIZE, PER_ACCELERATOR, Cells, RejectedRow, SourceRow, build

TITAN: Final = "raw/torchtitan/perf_tables.jsonl"
TUNE: Final = "raw/torchtune/tables.jsonl"

_MODEL: Final = re.compile(r"Llama ?3(?:\.1)? (8|70|405)b", re.IGNORECASE)
_GPUS: Final = re.compile(r"\b(\d+)x? (?:power limited )?(?:H100s|GPUs?|B200 GPUs)", re.IGNORECASE)
_LOCAL: Final = re.compile(r"(?:local batch size|, batch size) (\d+)", re.IGNORECASE)
_GLOBAL: Final = re.compile(r"global batch size (\d+)", re.IGNORECASE)
_SIZES: Final = {"tp": re.compile(r"TP[ =]?(\d+)"), "pp": re.compile(r"PP ?(\d+)"), "cp": re.compile(r"CP (\d+)")}
_LENGTH: Final = re.compile(r"sequence length (\d+)", re.IGNORECASE)
_LINK: Final = re.compile(r"\[\+? ?([^\]]+)\]\([^)]*\)")

_PRECISIONS: Final = (
    ("mxfp8", "fp8", "mxfp8"),
    ("rowwise", "fp8", "fp8-row"),
    ("float8", "fp8", "fp8-tensor"),
    ("bfloat16", "bf16", ""),
)

_SCHEDULES: Final = {"1F1B": "1f1b", "Interleaved 1F1B": "interleaved"}

TITAN_LENGTH: Final = 8192
"""Default sequence length of torchtitan's Llama 3 configurations."""


def build_torchtitan(root: Path) -> BuildResult:
    """Build torchtitan's campaign from the files under `root`."""
    pages = read_pages(root / TITAN)
    return build(
        "torchtitan",
        len(pages),
        (row for page in pages for row in _titan(page)),
        shared={"stack": "pytorch/torchtitan"},
    )


def build_torchtune(root: Path) -> BuildResult:
    """Build torchtune's campaign from the files under `root`; each row adds a technique to the row above."""
    pages = read_pages(root / TUNE)
    return build("torchtune", len(pages), (_tune(page) for page in pages), shared={"stack": "pytorch/torchtune"})


def _titan(page: PageRow) -> Iterator[SourceRow | RejectedRow]:
    context = f"{page.heading} {page.intro}"
    if not page.file.startswith(("benchmarks/asyncTP", "benchmarks/llama3", "docs/performance", "docs/mxfp8")):
        yield RejectedRow(page.reference, "not_training", page.file)
        return
    rates = {name: text for name, text in page.cells.items() if "tokens/s" in name}
    for name, text in rates.items() or {"": None}.items():
        cells = read_cells(page.cells) | _titan_context(page, f"{context} {' '.join(page.cells.values())}")
        if text is not None:
            cells |= {PER_ACCELERATOR: number(text), "note": f"{cells['note']} {name}".strip()}
        yield SourceRow(f"{page.reference}{':' + name if len(rates) > 1 else ''}", cells)


def _titan_context(page: PageRow, place: str) -> Cells:
    model = _MODEL.search(place) or re.search(r"llama3-(8)b", page.file)
    name = f"Llama-3.1-{model[1]}B" if model else ""
    if "mxfp8" in page.file:
        name = "Llama-4-Scout-17B-16E-Instruct" if "MoE" in page.heading else "Llama-3.1-8B"
    technique = next(
        (page.cells[n] for n in ("Techniques", "Schedule", "Quantization", "Scaling Method") if n in page.cells), ""
    )
    words = f"{place} {technique}".casefold()
    precision = next(
        ((p, r) for text in (technique.casefold(), words) for word, p, r in _PRECISIONS if word in text), ("bf16", "")
    )
    sizes = {size: number(match[1]) for size, pattern in _SIZES.items() if (match := pattern.search(place))}
    gpus, local, n_global = _GPUS.search(place), _LOCAL.search(place), _GLOBAL.search(place)
    length = _LENGTH.search(place)
    nodes = number(page.cells.get("NUM_NODES"))
    n_accelerator = nodes * 8 if nodes else number(gpus[1]) if gpus else None
    is_dense_b200 = "mxfp8" in page.file and "MoE" not in page.heading
    return {
        "model": name, "accelerator": _titan_accelerator(page), "n_accelerator": n_accelerator, "n_node": nodes,
        "framework": "torchtitan", "date": page.date, "method": "pretrain",
        "sharding": "fsdp",
        "compute_precision": precision[0], "precision_recipe": precision[1],
        "recomputation": _recomputation(words),
        **_titan_batch(number(local[1]) if local else None, n_accelerator, sizes),
        **({"n_global_batch_sequence": number(n_global[1])} if n_global else {}),
        "compiled": "on" if "torch.compile" in words else "off" if page.cells.get("Techniques") == "FSDP" else "",
        "pipeline_schedule": _SCHEDULES.get(page.cells.get("Schedule", ""), "1f1b" if "+ 1F1B" in place else ""),
        "memory_kind": "reserved", "stack": "trainy/torchtitan" if "trainy" in page.file else "",
        NODE_SIZE: None if "MoE" in page.heading else 8.0,
        "note": f"{technique}{'; power limited' if is_dense_b200 else ''}"[:200],
        "n_token_per_sequence": number(page.cells.get("Sequence Length"))
        or (number(length[1]) if length else TITAN_LENGTH),
        **sizes,
    }  # fmt: skip


def _titan_batch(local: float | None, n_accelerator: float | None, sizes: Mapping[str, float | None]) -> Cells:
    """Return the batches that follow from the local batch: that of a replica, which a pipeline cuts up further."""
    if local is None or n_accelerator is None:
        return {}
    n_split = math.prod(size or 1.0 for size in sizes.values())
    micro = {"n_micro_batch_sequence": local} if (sizes.get("pp") or 1.0) == 1.0 else {}
    return {"n_global_batch_sequence": local * n_accelerator / n_split, **micro}


def _recomputation(words: str) -> str:
    if "selective" in words or " sac" in words:
        return "selective"
    return "full" if "full ac" in words else ""


def _titan_accelerator(page: PageRow) -> str:
    if "h200" in page.file:
        return "H200"
    if "mxfp8" in page.file:
        return "GB200" if "MoE" in page.heading else "B200"
    return "nvidia-h100-sxm-96gb"  # HBM2e parts, by the hardware section of the report


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
