"""Google's MaxText on TPU and GPU: tables of the README and of the recipes."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, ratio, read_pages
from builders.job_campaigns.headers import normalize_heading, read_cells
from builders.job_campaigns.source_rows import PER_ACCELERATOR, Cells, RejectedRow, SourceRow, build
from roofcast.data.units import FLOP_PER_TFLOP

MAXTEXT: Final = "raw/maxtext/tables.jsonl"
RECIPES: Final = "raw/tpu_recipes/tables.jsonl"
LOGS: Final = "raw/tpu_recipes/maxtext_log_lines.csv"

_SLICES: Final = re.compile(r"(\d+)x (v\d\w*)-(\d+)")
_TYPE: Final = re.compile(r"(v\d\w)-(\d+)")
_SIZE_COLUMN: Final = re.compile(r"(\d+B) (TFLOP/sec/chip|MFU)")
_MODEL_SIZE: Final = re.compile(r"For a (\d+)B model")
_CONFIGURATION: Final = re.compile(r"(\d+)(?: Chips)?.*, (BF16|bf16|FP8), SL=(\d+)")
_CORES_PER_CHIP: Final = {"v4": 2, "v5p": 2}
"""Cores per chip of the generations whose slice names count cores."""

_GENERATIONS: Final = {"trillium": "TPU v6e", "v5p": "TPU v5p", "a3ultra": "H200", "a4": "B200"}


def build_maxtext(root: Path) -> BuildResult:
    """Build MaxText's campaign from the files under `root`."""
    pages = read_pages(root / MAXTEXT)
    return build(
        "maxtext", len(pages), (row for page in pages for row in _maxtext(page)), shared={"stack": "google/maxtext"}
    )


def build_tpu_recipes(root: Path) -> BuildResult:
    """Build the recipes' campaign from the files under `root`."""
    pages = read_pages(root / RECIPES)
    with (root / LOGS).open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    rows = [*(_recipe(page) for page in pages), *_logged(lines)]
    return build("tpu_recipes", len(pages) + len(lines), rows, shared={"stack": "google/tpu-recipes"})


def _maxtext(page: PageRow) -> Iterator[SourceRow | RejectedRow]:
    shared: Cells = {"framework": "maxtext", "method": "pretrain", "date": page.date, "compute_precision": "bf16"}
    if "Benchmark Configuration" in page.cells:
        yield SourceRow(page.reference, shared | _tier(page))
    elif "Accelerator Type" in page.cells:
        slice_ = _TYPE.fullmatch(page.cells["Accelerator Type"])
        cells = read_cells(page.cells) | {"model": f"default-{page.cells['No. of params'].casefold()}"}
        yield SourceRow(page.reference, shared | cells | (_slice(1, slice_[1], slice_[2]) if slice_ else {}))
    else:
        yield from _scaling(page, shared)


def _scaling(page: PageRow, shared: Cells) -> Iterator[SourceRow]:
    slices = _SLICES.fullmatch(page.cells["Hardware"])
    shared = shared | (_slice(int(slices[1]), slices[2], slices[3]) if slices else {})
    sizes = {match[1] for heading in page.cells if (match := _SIZE_COLUMN.fullmatch(heading))}
    for size in sorted(sizes):
        yield SourceRow(f"{page.reference}:{size}", shared | {
            "model": f"default-{size.casefold()}",
            "model_flop_per_s_per_accelerator": _tera(page.cells[f"{size} TFLOP/sec/chip"]),
            "mfu_ratio": ratio(page.cells[f"{size} MFU"]),
        })  # fmt: skip
    if not sizes:
        match = _MODEL_SIZE.search(page.intro)
        yield SourceRow(page.reference, shared | read_cells(page.cells) | {
            "model": f"default-{match[1]}b" if match else "",
            "model_flop_per_s_per_accelerator": _tera(page.cells["TFLOP/sec/chip"]),
        })  # fmt: skip


def _tera(text: str) -> float | None:
    value = number(text)
    return None if value is None else value * FLOP_PER_TFLOP


def _slice(n_slice: int, generation: str, size: str) -> Cells:
    n_chip = int(size) // _CORES_PER_CHIP.get(generation, 1)
    return {"accelerator": f"TPU {generation}", "n_accelerator": float(n_slice * n_chip), "n_node": None}


def _tier(page: PageRow) -> Cells:
    match = _CONFIGURATION.match(page.cells["Benchmark Configuration"])
    return {
        "model": page.cells["Model"], "accelerator": "TPU v6e" if "Trillium" in page.heading else "TPU v5p",
        "n_accelerator": number(match[1]) if match else None,
        "n_token_per_sequence": number(match[3]) if match else None, "mfu_ratio": ratio(page.cells["MFU"]),
        PER_ACCELERATOR: number(page.cells["Approx tokens/sec/device"]),
    }  # fmt: skip


def _recipe(page: PageRow) -> SourceRow | RejectedRow:
    if not page.file.startswith("training/ironwood"):
        return RejectedRow(page.reference, "not_training", page.file)
    texts = {normalize_heading(heading): text for heading, text in page.cells.items()}
    precision = texts["precision"].casefold()
    return SourceRow(page.reference, read_cells(page.cells) | {
        "model": texts["modelid"], "accelerator": "TPU7x Ironwood", "framework": "maxtext", "method": "pretrain",
        "compute_precision": "fp8" if precision.startswith("fp8") else "bf16",
        "precision_recipe": "fp8-full" if precision == "fp8_full" else "", "date": page.date,
    })  # fmt: skip


def _logged(lines: list[dict[str, str]]) -> Iterator[SourceRow]:
    for line, row in enumerate(lines, start=2):
        _, generation, recipe, *_ = row["path"].split("/")
        step, rate = number(row["step_time_s"]), number(row["tokens_per_s_per_dev"])
        tokens = number(row["total_weights_tokens"])
        yield SourceRow(f"maxtext_log_lines.csv:{line}", {
            "model": re.sub(r"-max(text|Text)$", "", recipe, flags=re.IGNORECASE),
            "accelerator": _GENERATIONS[generation], "framework": "maxtext", "method": "pretrain",
            "n_accelerator": round(tokens / (step * rate)) if step and rate and tokens else None,
            "compute_precision": "fp8" if "/fp8/" in row["path"] else "bf16", "step_time_s": step,
            "model_flop_per_s_per_accelerator": _tera(row["tflops_per_dev"]), PER_ACCELERATOR: rate,
            "note": row["path"][:200],
        })  # fmt: skip
