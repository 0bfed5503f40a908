"""MosaicML's LLM Foundry: throughput of MPT models by size, sequence length and number of A100 and H100."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.headers import normalize_heading, read_cells
from builders.job_campaigns.source_rows import NODE_SIZE, PER_ACCELERATOR, Cells, SourceRow, build
from roofcast.data.units import BYTE_PER_GBIT

RAW: Final = "raw/mosaic_llm_foundry/train_throughput_tables.jsonl"

_ACCELERATORS: Final = {"a100_40gb": "A100 40GB", "a100_80gb": "A100 80GB", "h100_80gb": "H100 80GB"}
_PRECISIONS: Final = {"amp_bf16": "bf16", "bf16": "bf16", "amp_fp8": "fp8", "fp8": "fp8", "amp_fp16": "fp16"}
_SHARDINGS: Final = {"FULL_SHARD": "fsdp", "SHARD_GRAD_OP": "zero2", "NO_SHARD": "ddp"}

_INTERCONNECT: Final = re.compile(r"(\d+) Gbps node-node interconnect \(RoCE\)")


def build_llm_foundry(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`.

    Revisions repeat every digit of a run, so rows that differ in any digit are separate measurements.
    """
    pages = read_pages(root / RAW)
    return build(
        "mosaic_llm_foundry", len(pages), _read_rows(pages), EXACT_RTOL, shared={"stack": "mosaicml", NODE_SIZE: 8.0}
    )


def _read_rows(pages: list[PageRow]) -> Iterator[SourceRow]:
    for page in pages:
        aligned = _align(page.cells)
        texts = {normalize_heading(heading): text for heading, text in aligned.items()}
        cells = read_cells(aligned)
        if "throughput_token_per_s" in cells:
            cells.pop(PER_ACCELERATOR, None)  # the same figure with fewer digits
        yield SourceRow(page.reference, cells | _context(texts) | _network(page.heading) | {"date": page.date})


def _network(heading: str) -> Cells:
    match = _INTERCONNECT.search(heading)
    bandwidth = float(match[1]) * BYTE_PER_GBIT if match else None
    return {"network": "roce", "node_bandwidth_byte_per_s": bandwidth} if bandwidth else {}


def _align(cells: dict[str, str]) -> dict[str, str]:
    """Return the cells under the right headings: revisions of October 2023 lack the heading of model FLOP/s."""
    if number(cells.get("Precision")) is None:
        return cells
    headings = list(cells)
    position = headings.index("MicroBatchSize")
    complete = [*headings[:position], "Model TFLOP", *headings[position:]]
    return dict(zip(complete, cells.values(), strict=False))


def _context(texts: dict[str, str]) -> Cells:
    recompute = texts.get("actckpt", texts.get("activationcheckpointing", "")).casefold()
    offload = texts.get("actcpuoffload", texts.get("activationcpuoffload", "")).casefold()
    precision = texts.get("precision", "")
    return {
        "model": f"mpt-{texts['model'].removeprefix('gpt')}",
        "accelerator": _ACCELERATORS.get(texts.get("gputype", texts.get("gpu", "")), ""),
        "framework": "llm-foundry",
        "compute_precision": _PRECISIONS.get(precision, ""),
        "precision_recipe": _recipe(precision, texts.get("mpmode", "")),
        "sharding": _SHARDINGS.get(texts.get("shardstrategy", texts.get("shardingstrategy", "")), ""),
        "recomputation": {"true": "full", "false": "none"}.get(recompute, ""),
        "offload": {"true": "activations", "false": "none"}.get(offload, ""),
        "method": "pretrain",
    }


def _recipe(precision: str, mode: str) -> str:
    """Return autocast or plain precision, with FSDP's mixed-precision mode (all tensors, or weights only)."""
    return f"{'amp' if precision.startswith('amp') else 'plain'}-{mode.casefold()}"
