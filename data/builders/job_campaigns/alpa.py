"""Alpa's OSDI artifact: GPT on up to 64 V100, by automatic plans, Megatron-LM, and plain data parallelism."""

from __future__ import annotations

import ast
import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.units import BYTE_PER_GBIT, BYTE_PER_GIB, FLOP_PER_TFLOP

FOLDER: Final = "training_2026_11/raw/alpa_osdi22"
END_TO_END: Final = "results_e2e_ref.tsv"
ABLATION: Final = "results_intra_ablation_ref.tsv"

MODELS: Final = {1: "350M", 2: "760M", 4: "1.3B", 8: "2.6B", 16: "6.7B", 32: "15B", 64: "39B"}
"""Size of the end-to-end runs by number of accelerators."""

WIDTHS: Final = {1: 2048, 2: 3072, 4: 4096, 8: 5760}
"""Width of the eight-layer model of the ablation by number of accelerators, from ``exp_intra_ablation.py``."""

_METHODS: Final[dict[str, Cells]] = {
    "megatron": {"framework": "megatron-lm"}, "parax.auto": {}, "parax.intra_only": {"pp": 1.0},
    "parax.inter_only": {"tp": 1.0, "dp": 1.0}, "parax.auto_sharding": {"pp": 1.0},
    "parax.data_parallel": {"pp": 1.0, "tp": 1.0, "sharding": "ddp"}, "parax.heuristic": {"pp": 1.0},
    "parax.zero_2": {"pp": 1.0, "tp": 1.0, "sharding": "zero2"},
    "parax.zero_3": {"pp": 1.0, "tp": 1.0, "sharding": "zero3"},
}  # fmt: skip


def build_alpa(root: Path) -> BuildResult:
    """Build Alpa's campaign from the files under `root`; a negative latency is a run that did not fit."""
    rows = [row for name in (END_TO_END, ABLATION) for row in _read_rows(root / FOLDER / name)]
    shared: Cells = {
        "stack": "alpa", NODE_SIZE: 8.0, "accelerator": "nvidia-v100-sxm2-16gb", "framework": "alpa",
        "method": "pretrain", "compute_precision": "fp16", "recomputation": "full", "n_token_per_sequence": 1024.0,
        "network": "ethernet", "node_bandwidth_byte_per_s": 25.0 * BYTE_PER_GBIT, "cp": 1.0, "offload": "none",
        "optimizer": "adam", "packing": "packed", "flash_attention": "off", "sequence_parallel": "off",
    }  # fmt: skip
    return build("alpa_osdi22", len(rows), rows, EXACT_RTOL, shared=shared)


def _read_rows(file: Path) -> Iterator[SourceRow | RejectedRow]:
    counts: Counter[tuple[str, int]] = Counter()
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        parts = text.split("\t")
        if len(parts) != 8:
            continue
        _, _, nodes, per_node, model, method, figures, stamp = parts
        reference, n_accelerator = f"{file.name}:{line}", int(nodes) * int(per_node)
        if model != "gpt":
            yield RejectedRow(reference, "unknown_model", f"{model}: mixtures with experts in every second layer")
            continue
        counts[method, n_accelerator] += 1
        outcome = _outcome(ast.literal_eval(figures))
        if not outcome:
            yield RejectedRow(reference, "no_outcome", "FLOP/s of a plan that is not stated")
            continue
        cells = _METHODS[method] | outcome | {
            "n_accelerator": float(n_accelerator), "n_node": float(nodes), "note": method,
            "date": dt.datetime.fromtimestamp(int(stamp), dt.UTC).date().isoformat(), **_case(file, n_accelerator),
        }  # fmt: skip
        if method == "parax.auto_sharding":
            cells["note"] = f"{method}, mesh {counts[method, n_accelerator]}"
        if cells.get("sharding"):
            cells["dp"] = float(n_accelerator)
        if method == "parax.inter_only":
            cells["pp"] = float(n_accelerator)
        yield SourceRow(reference, cells)


def _case(file: Path, n_accelerator: int) -> Cells:
    if file.name == END_TO_END:
        return {"model": f"alpa/gpt-{MODELS[n_accelerator]}", "n_global_batch_sequence": 1024.0}
    return {
        "model": f"alpa/gpt-8l-h{WIDTHS[n_accelerator]}", "n_global_batch_sequence": 8.0,
        "n_gradient_accumulation": 1.0,
    }  # fmt: skip


def _outcome(figures: dict[str, object]) -> Cells:
    latencies, memory, rate = figures.get("latencies"), figures.get("peak_mem"), figures.get("tflops")
    if not isinstance(latencies, list):
        return {}
    if latencies[0] < 0.0:
        return {"status": "out_of_memory"}
    return {
        "step_time_s": float(f"{fmean(latencies):.8g}"), "memory_kind": "allocated",
        "memory_byte_per_accelerator": float(str(memory)) * BYTE_PER_GIB if memory else None,
        "hardware_flop_per_s_per_accelerator": float(str(rate)) * FLOP_PER_TFLOP if rate else None,
    }  # fmt: skip
