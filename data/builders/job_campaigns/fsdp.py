"""Trainers over PyTorch FSDP: IBM's fms-fsdp and the Vector Institute's vectorlm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, ratio, read_pages
from builders.job_campaigns.source_rows import NODE_SIZE, PER_ACCELERATOR, Cells, RejectedRow, SourceRow, build

FMS: Final = "raw/fms_fsdp/tables.jsonl"
VECTORLM: Final = "raw/vectorlm/tables.jsonl"

_FMS_MODELS: Final = {
    "7b": "Llama-2-7b-hf",
    "13b": "Llama-2-13b-hf",
    "34b": "fms-fsdp/llama2_34b",
    "70b": "Llama-2-70b-hf",
}
_RECOMPUTE: Final = {"False": "none", "No AC": "none", "True": "full", "Full AC": "full", "Selective AC": "selective"}
_N_FMS: Final = {"A100": 128.0, "H100": 96.0}

_RUN: Final = re.compile(r"\((full_rank|lora)\) (.+) x(\d+)")
_WITH_LENGTH: Final = re.compile(r"(.+) \((\d+)\)")
_WITH_BATCH: Final = re.compile(r"([\d.]+) \(batch: (\d+)\)")


def build_fms_fsdp(root: Path) -> BuildResult:
    """Build fms-fsdp's campaign from the files under `root`."""
    pages = read_pages(root / FMS)
    return build(
        "fms_fsdp",
        len(pages),
        (row for page in pages for row in _fms(page)),
        shared={"stack": "ibm/fms-fsdp", NODE_SIZE: 8.0},
    )


def build_vectorlm(root: Path) -> BuildResult:
    """Build vectorlm's campaign from the files under `root`."""
    pages = read_pages(root / VECTORLM)
    return build(
        "vectorlm",
        len(pages),
        (row for page in pages for row in _vectorlm(page)),
        shared={"stack": "vector-institute"},
    )


def _fms(page: PageRow) -> Iterator[SourceRow | RejectedRow]:
    if "Model Size" not in page.cells:
        yield RejectedRow(page.reference, "not_training", page.heading)
        return
    shared: Cells = {
        "model": _FMS_MODELS[page.cells["Model Size"].casefold()], "framework": "fms-fsdp", "method": "pretrain",
        "sharding": page.cells.get("Sharding Strategy", "").casefold(), "compute_precision": "bf16",
        "recomputation": _RECOMPUTE.get(page.cells.get("Activation Checkpointing", ""), ""),
        "n_micro_batch_sequence": number(page.cells.get("Batch Size") or page.cells.get("Batch size")),
        "n_token_per_sequence": 4096, "date": page.date,
    }  # fmt: skip
    for part, n_accelerator in _N_FMS.items():
        cells = shared | {"accelerator": f"{part} 80GB", "n_accelerator": n_accelerator}
        figures: Cells = {}
        for heading, text in page.cells.items():
            if "hroughput" in heading and (part in heading or (part == "A100" and "H100" not in heading)):
                figures[PER_ACCELERATOR] = number(text)
            if heading.startswith(("MFU", "HFU")) and part in heading:
                figures[f"{heading[:3].casefold()}_ratio"] = ratio(text)
        if figures and PER_ACCELERATOR not in figures:
            detail = "utilisation of a run whose tokens per second stand in the table above"
            yield RejectedRow(f"{page.reference}:{part}", "repeated_run", detail)
        elif figures:
            yield SourceRow(f"{page.reference}:{part}", cells | figures)


def _vectorlm(page: PageRow) -> Iterator[SourceRow | RejectedRow]:
    run = _RUN.fullmatch(page.cells["col"])
    if run is None:
        yield RejectedRow(page.reference, "malformed", page.cells["col"][:100])
        return
    for heading, text in page.cells.items():
        if heading == "col":
            continue
        reference = f"{page.reference}:{heading}"
        if text == "nan" and heading == "gemma-2b" and run[1] == "full_rank":
            yield RejectedRow(reference, "no_outcome", "not supported by the trainer, as the page says")
            continue
        length, batch = _WITH_LENGTH.fullmatch(heading), _WITH_BATCH.fullmatch(text)
        yield SourceRow(
            reference,
            {
                "model": length[1] if length else heading,
                "accelerator": run[2].replace("Tesla ", "").replace("NVIDIA A40", "A40"),
                "n_accelerator": float(run[3]), "framework": "vectorlm", "date": page.date, "sharding": "fsdp",
                "method": "lora" if run[1] == "lora" else "full",
                "n_token_per_sequence": float(length[2]) if length else None,
                "n_micro_batch_sequence": float(batch[2]) if batch else None,
                "throughput_token_per_s": number(batch[1] if batch else text),
                "status": "out_of_memory" if text == "nan" else "ok",
            },
        )  # fmt: skip
