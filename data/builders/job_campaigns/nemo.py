"""NVIDIA's NeMo family: Megatron Bridge, NeMo and NeMo AutoModel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages, split_brackets
from builders.job_campaigns.headers import normalize_heading, read_cells
from builders.job_campaigns.launcher import read_examples
from builders.job_campaigns.recipes import RECIPES, UNSTATED_PRECISION, method_of
from builders.job_campaigns.releases import superseded_by
from builders.job_campaigns.source_rows import NODE_SIZE, PER_ACCELERATOR, Cells, RejectedRow, SourceRow, build

BRIDGE: Final = "raw/nemo_megatron_bridge/perf_summary_tables.jsonl"
NEMO: Final = "raw/nemo/perf_tables.jsonl"
AUTOMODEL: Final = "raw/nemo_automodel/tables.jsonl"

_RELEASE: Final = re.compile(r"(\d\d\.\d\d(?:\.\d\d)?) NeMo Container")
_SYSTEM: Final = re.compile(r"DGX-\w+")
_MODEL: Final = re.compile(r"Model: (.+)$")
_PRECISION: Final = re.compile(r"\b(BF16|FP8)\b")
_NAMED: Final = re.compile(r"LLAMA\d-\d+B|GPT3 20B")
_VARIANT: Final = re.compile(r"\s*\(([^)]*)\)")

_RECOUNTED: Final = ("2025-12-04", "GPT OSS 120B", "5630", "223")
"""First day, model, tokens and TFLOP/s of a row that its page replaces with other FLOP/s on the same day."""

_NODE_SIZES: Final = {"DGX-H100": 8.0, "DGX-B200": 8.0, "DGX-B300": 8.0}
"""Accelerators of a node by system; those of a rack-scale system share one NVLink domain."""

_LONG: Final = "LLAMA2-7B (FP8)"
"""Model and precision of the table of long inputs, from ``performance_long_sequence.md`` of the same repository."""


def build_megatron_bridge(root: Path) -> BuildResult:
    """Build Megatron Bridge's campaign from the files under `root`.

    A cell such as ``1 (16)`` holds two runs. By the text below the tables, brackets mean the other FP8 scaling
    (blocks of 32, on H100 of 128); the next release prints ``FP8-CS (FP8-MX)`` in such rows.
    """
    pages = read_pages(root / BRIDGE)
    rows = (row for page in pages for row in _bridge(page))
    return build(
        "nemo_megatron_bridge", len(pages), rows, shared={"stack": "nvidia/megatron-bridge"}, revise=superseded_by
    )


def build_nemo(root: Path) -> BuildResult:
    """Build NeMo's campaign from the files under `root`.

    Its first pages repeat runs of the launcher's examples, which are rejected here as duplicates.
    """
    pages = read_pages(root / NEMO)
    examples = {_figures(row): row.reference for row in read_examples(root) if isinstance(row, SourceRow)}
    return build(
        "nemo",
        len(pages),
        (_unless_example(_nemo(page), examples) for page in pages),
        shared={"stack": "nvidia/nemo"},
    )


def build_automodel(root: Path) -> BuildResult:
    """Build NeMo AutoModel's campaign from the files under `root`."""
    pages = read_pages(root / AUTOMODEL)
    return build(
        "nemo_automodel",
        len(pages),
        (_automodel(page) for page in pages),
        shared={"stack": "nvidia/nemo-automodel", NODE_SIZE: 8.0},
    )


def _bridge(page: PageRow) -> Iterator[SourceRow | RejectedRow]:
    release = _first(_RELEASE, page.heading)
    if "Precision" not in page.cells and release == "25.11":
        yield RejectedRow(page.reference, "superseded", "first draft of the 25.11 tables, replaced on the same day")
        return
    figures = (page.cells.get(name) for name in ("Model", "Tokens / sec / GPU", "Model TFLOP / sec / GPU"))
    if (page.date, *figures) == _RECOUNTED:
        yield RejectedRow(page.reference, "superseded", "FLOP/s recomputed by the source on the same day")
        return
    if "Model TFLOP / sec / GPU" not in page.cells:
        yield RejectedRow(
            page.reference, "malformed", "a cell is missing, so that the others stand under wrong headings"
        )
        return
    model = page.cells.get("Model") or _first(_MODEL, page.heading)
    numbers = {heading: text for heading, text in page.cells.items() if heading not in {"Model", "System"}}
    outside, inside = split_brackets(numbers)
    system = page.cells.get("System") or _first(_SYSTEM, page.heading)
    shared: Cells = {
        "model": _VARIANT.sub("", model).strip(), "note": "; ".join(_VARIANT.findall(model)),
        "accelerator": system, "framework": "megatron-bridge", "framework_version": release,
        "software": f"NeMo container {release}", "date": page.date, "method": method_of(page.heading),
        NODE_SIZE: _NODE_SIZES.get(system),
    }  # fmt: skip
    has_precision = "Precision" in page.cells
    blocks = "FP8-SC" if system == "DGX-H100" else "FP8-MX"
    yield SourceRow(page.reference, shared | _bridge_cells(outside, "" if has_precision else "FP8-CS"))
    if inside is not None:
        yield SourceRow(f"{page.reference}()", shared | _bridge_cells(inside, "" if has_precision else blocks))


def _bridge_cells(texts: dict[str, str], precision: str) -> Cells:
    compute, recipe = RECIPES.get(precision or texts.get("Precision", ""), ("", ""))
    return _with_sharding(texts) | {"compute_precision": compute, "precision_recipe": recipe}


def _with_sharding(texts: dict[str, str]) -> Cells:
    cells = read_cells(texts)
    sharded = number(texts.get("FSDP"))
    if sharded is not None:
        cells["sharding"] = "fsdp" if sharded else "ddp"
    return cells


def _figures(row: SourceRow) -> tuple[object, ...]:
    """Return model, method, number of accelerators and tokens per second per accelerator."""
    cells = row.cells
    n_accelerator, total = cells.get("n_accelerator"), cells.get("throughput_token_per_s")
    rate = float(str(total)) / float(str(n_accelerator)) if total and n_accelerator else cells.get(PER_ACCELERATOR)
    return str(cells["model"]).casefold(), cells["method"], n_accelerator, rate


def _unless_example(row: SourceRow, examples: Mapping[tuple[object, ...], str]) -> SourceRow | RejectedRow:
    figures = _figures(row)
    original = examples.get(figures) if figures[-1] else None
    if original is None:
        return row
    return RejectedRow(row.reference, "duplicate", f"the same as the launcher's {original}")


def _nemo(page: PageRow) -> SourceRow:
    heading = f"{page.heading} {_LONG}" if "Long Input Sequences" in page.heading else page.heading
    precision = page.cells.get("Precision") or _first(_PRECISION, f"{page.intro} {heading}")
    if "Performance Benchmarks" in page.heading:
        precision = precision or UNSTATED_PRECISION
    compute, recipe = RECIPES.get(precision, ("", ""))
    task = page.cells.get("Task", "")
    context: Cells = {
        "model": page.cells.get("Model") or _first(_NAMED, f"{heading} {page.intro}"),
        "accelerator": _first(_SYSTEM, f"{page.heading} {page.intro}") or "DGX-H100",
        "framework": "nemo", "date": page.date, "method": method_of(task or page.heading),
        "compute_precision": compute, "precision_recipe": recipe,
        "packing": "packed" if "Packed Sequence Length" in page.cells else "",
    }  # fmt: skip
    cells = read_cells(page.cells)
    if "batchsize" in {normalize_heading(heading) for heading in page.cells}:
        cells["n_global_batch_sequence"] = number(page.cells["Batch Size"])
    return SourceRow(page.reference, cells | context)


def _automodel(page: PageRow) -> SourceRow | RejectedRow:
    if "Model" not in page.cells and "Technique" not in page.cells:
        return RejectedRow(page.reference, "not_training", page.heading[-120:])
    context: Cells = {
        "model": _VARIANT.sub("", page.cells.get("Model", "Llama-3.2-1B")).replace("2-node", "").strip(),
        "accelerator": "DGX-H100",
        "framework": "nemo-automodel", "date": page.date, "method": method_of(page.heading),
        "compute_precision": "bf16" if "BF16" in page.heading else "",
        "note": page.cells.get("Technique", page.cells.get("Kernel Optimizations", "")).removeprefix("+ "),
    }  # fmt: skip
    return SourceRow(page.reference, _with_sharding(page.cells) | _accumulation(page.cells) | context)


def _accumulation(texts: Mapping[str, str]) -> Cells:
    """Return the micro batches per step; AutoModel counts local batches, which a pipeline splits further."""
    passes, local, micro = (number(texts.get(name)) for name in ("GA", "LBS", "MBS"))
    return {"n_gradient_accumulation": passes * local / micro} if passes and local and micro else {}


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[match.lastindex or 0] if match else ""
