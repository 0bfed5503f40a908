"""NVIDIA's NeMo Framework Launcher: examples on H100, and the README's scaling on A100 SuperPODs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow, number, read_pages
from builders.job_campaigns.headers import read_cells
from builders.job_campaigns.recipes import RECIPES, UNSTATED_PRECISION, method_of
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build

RAW: Final = "raw/nemo_framework_launcher/perf_tables.jsonl"

_PRECISION: Final = re.compile(r"\b(BF16|FP8)\b")
_DRAFT: Final = ("Est. time to train (1T tokens, 1K GPUs)", "Est. time to train (40M tokens)")
_FAMILY: Final = re.compile(r"\b(mT5|T5|BERT)\b")
_CONVERGENCE: Final = {r"\#GPUs", "GBS", "Seq Length"}
_EXAMPLES: Final = "examples/README.md"
_N_PER_NODE: Final = 8
_PROPORTION_RTOL: Final = 1e-4
_MISPRINTS: Final[Mapping[tuple[str | None, ...], str]] = {
    ("2022-06-03", "519211", "20768"): "the row of perfect scaling, misprinted; corrected on the next day",
}
"""Misprinted scaling rows, identified by first day and the two cells."""

_RECOUNTED: Final = ("GPT3-175B", "697", "[750*]")
"""Model, tokens/s and start of TFLOP/s of a row that the next day's page replaces with other FLOP/s."""

SCALED: Final = {"GPT": "NeMo/gpt3_5b", "T5": "nvidia/t5-3b", "mT5": "nvidia/mt5-3b", "BERT": "nvidia/bert-4b"}
"""Model of the scaling table by family of the section; the second table under GPT is of the 175B model."""

CONVERGED: Final = {
    ("GPT", 160): "NeMo/gpt3_5b", ("T5", 32): "nvidia/t5-220m", ("T5", 160): "nvidia/t5-3b",
    ("mT5", 32): "nvidia/mt5-170m", ("mT5", 64): "nvidia/mt5-390m", ("mT5", 160): "nvidia/mt5-3b",
}  # fmt: skip
"""Model of a convergence table by family and number of accelerators, from the sentence above it."""


def build_launcher(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`.

    The README's scaling tables have blank headings; the collected rows hold the last column and the one under
    ``Nodes``: two runs per row. Their sections name DGX SuperPODs of A100 with 80 GB.
    """
    pages = read_pages(root / RAW)
    return build(
        "nemo_framework_launcher",
        len(pages),
        _read_rows(pages),
        shared={"stack": "nvidia/nemo-launcher", NODE_SIZE: 8.0},
    )


def read_examples(root: Path) -> Iterator[SourceRow | RejectedRow]:
    """Yield the rows of the examples' page in all revisions."""
    yield from (_example(page) for page in read_pages(root / RAW) if page.file == _EXAMPLES)


def _read_rows(pages: list[PageRow]) -> Iterator[SourceRow | RejectedRow]:
    nodes: dict[str, tuple[float, float]] = {}
    for page in pages:
        section = page.heading.rpartition(" > ")[2]
        if page.file == _EXAMPLES:
            yield _example(page)
        elif (misprint := _MISPRINTS.get((page.date, page.cells.get("Nodes"), page.cells.get("col")))) is not None:
            yield RejectedRow(page.reference, "superseded", misprint)
        elif page.cells.keys() >= _CONVERGENCE:
            yield _converged(page)
        elif page.cells.keys() == {"col", "Nodes"}:
            yield from _scaling(page, nodes)
        elif "LDDL" in section:
            yield RejectedRow(page.reference, "unknown_accelerator", "the section names no system")
        else:
            yield RejectedRow(page.reference, "not_training", section)


def _example(page: PageRow) -> SourceRow | RejectedRow:
    if any(heading in page.cells for heading in _DRAFT):
        return RejectedRow(page.reference, "placeholder", "draft of the page, replaced on the same day")
    figures = [page.cells.get(name, "") for name in ("Model", "Tokens / sec / GPU", "Model TFLOP / sec / GPU")]
    if (*figures[:2], figures[2][: len(_RECOUNTED[2])]) == _RECOUNTED:
        return RejectedRow(page.reference, "superseded", "FLOP/s recomputed by the source on the next day")
    match = _PRECISION.search(page.intro)
    compute, recipe = RECIPES[page.cells.get("Precision") or (match[1] if match else UNSTATED_PRECISION)]
    return SourceRow(page.reference, read_cells(page.cells) | {
        "model": page.cells.get("Model", ""), "accelerator": page.cells.get("GPU", "H100"),
        "framework": "nemo-framework-launcher", "date": page.date,
        "method": method_of(page.cells.get("Mode", page.heading)),
        "compute_precision": compute, "precision_recipe": recipe,
        "packing": "packed" if "packed" in page.intro else "",
    })  # fmt: skip


def _family(page: PageRow) -> str:
    match = _FAMILY.search(page.heading)
    return match[1] if match else "GPT"


def _superpod(page: PageRow, model: str) -> Cells:
    return {
        "model": model, "accelerator": "nvidia-a100-sxm-80gb", "framework": "nemo-framework-launcher",
        "date": page.date, "method": "pretrain", "compute_precision": "bf16",
        "n_token_per_sequence": 2048.0 if _family(page) == "GPT" else 512.0,
    }  # fmt: skip


def _converged(page: PageRow) -> SourceRow | RejectedRow:
    n_accelerator = int(number(page.cells[r"\#GPUs"]) or 0)
    model = CONVERGED.get((_family(page), n_accelerator))
    if model is None:
        return RejectedRow(page.reference, "malformed", "the accelerators are those of no model in the section")
    return SourceRow(page.reference, _superpod(page, model) | {
        "n_accelerator": float(n_accelerator), "n_global_batch_sequence": number(page.cells["GBS"]),
        "throughput_token_per_s": number(page.cells["Throughput (Tokens/sec)"]),
    })  # fmt: skip


def _scaling(page: PageRow, nodes: dict[str, tuple[float, float]]) -> Iterator[SourceRow | RejectedRow]:
    """Yield the runs of a row of a scaling table; a row of node counts is stored in `nodes`."""
    model = "openai/gpt3-175b" if "5B_GPT_3_throughput" in page.intro else SCALED[_family(page)]
    few, many = number(page.cells["Nodes"]), number(page.cells["col"])
    if few is None or many is None:
        yield RejectedRow(page.reference, "not_a_run", "speed-up over the fewest nodes")
        return
    if many.is_integer() and many <= 128:
        nodes[model] = few, many
        yield RejectedRow(page.reference, "not_a_run", "numbers of nodes above a table")
        return
    n_few, n_many = nodes[model]
    if abs(many / few / (n_many / n_few) - 1.0) < _PROPORTION_RTOL:
        yield RejectedRow(page.reference, "not_a_run", "what perfect scaling would give")
        return
    for column, n_node, rate in (("Nodes", n_few, few), ("last", n_many, many)):
        yield SourceRow(f"{page.reference}:{column}", _superpod(page, model) | {
            "n_node": n_node, "n_accelerator": n_node * _N_PER_NODE, "throughput_token_per_s": rate,
        })  # fmt: skip
