"""MLPerf Training, rounds 3.0 to 5.1: language models of the closed and open division."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import number
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.mlperf_systems import (
    name_stack,
    normalize_framework,
    read_network,
    read_precision,
)
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.units import BYTE_PER_GIB

RAW: Final = "raw/mlperf_training/mlperf_training_llm.csv"

ROUNDS: Final = {"v3.0": "2023-06", "v3.1": "2023-11", "v4.0": "2024-06", "v4.1": "2024-11", "v5.0": "2025-06",
                 "v5.1": "2025-11"}  # fmt: skip
"""Publication month by round."""

BENCHMARKS: Final[dict[str, Cells]] = {
    "gpt3": {"model": "gpt3-175b", "n_token_per_sequence": 2048, "method": "pretrain"},
    "llama2_70b_lora": {
        "model": "llama2-70b", "n_token_per_sequence": 8192, "method": "lora", "adapter_rank": 16,
        "packing": "packed", "adapter": "lora", "adapter_targets": "q k v o",
    },
    "llama31_405b": {"model": "llama3.1-405b", "n_token_per_sequence": 8192, "method": "pretrain"},
    "llama31_8b": {"model": "llama3.1-8b", "n_token_per_sequence": 8192, "method": "pretrain"},
    "bert": {"model": "bert-large", "n_token_per_sequence": 512, "method": "pretrain", "packing": "padded"},
}  # fmt: skip
"""Cells fixed by the rules of each benchmark: model, sequence length and method."""

_SWITCHES: Final = {"1": "on", "true": "on", "0": "off", "false": "off"}
_MAX_SAMPLE_PER_S: Final = 1e4
_SIZES: Final = ("tp", "pp", "cp")
_CONFIGURATION: Final = re.compile(r"/benchmarks/(\w+)/.*_(\d+)x(\d+)x[^/]*tp(\d+)pp(\d+)cp(\d+)")
"""Path of a submission's configuration: benchmark, nodes, accelerators per node and parallel sizes."""


def build_mlperf(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`."""
    with (root / RAW).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return build("mlperf_training", len(rows), _read_rows(rows), EXACT_RTOL)


def _read_rows(rows: list[dict[str, str]]) -> Iterator[SourceRow | RejectedRow]:
    for line, row in enumerate(rows, start=2):
        reference = f"mlperf_training_llm.csv:{line}"
        if row["benchmark"] not in BENCHMARKS:
            yield RejectedRow(reference, "unknown_model", f"{row['benchmark']} is no language model")
        elif row["status"] != "success":
            yield RejectedRow(reference, "no_outcome", "the submission has no successful run")
        else:
            yield SourceRow(reference, _cells(row))


def _cells(row: dict[str, str]) -> Cells:
    fixed = BENCHMARKS[row["benchmark"]]
    hints = json.loads(row["hints"] or "{}")
    minutes, batch = number(row["minutes"]), number(row["gbs"])
    memory = number(row["max_mem_gb"])
    precision, recipe = read_precision(row)
    cells: Cells = fixed | {
        "accelerator": row["accel"], "n_accelerator": number(row["n_accel"]), "n_node": number(row["nodes"]),
        "framework": normalize_framework(row["framework"], row["benchmark"]), "software": row["framework"][:80],
        "stack": name_stack(row["submitter"]), NODE_SIZE: number(row["accel_per_node"]), **read_network(row["net"]),
        "compute_precision": precision, "precision_recipe": recipe, "framework_version": f"mlperf-{row['round']}",
        "n_global_batch_sequence": batch, "n_gradient_accumulation": number(row["ga"]),
        "step_time_s": number(row["step_time_s"]), "duration_s": None if minutes is None else minutes * 60.0,
        "memory_byte_per_accelerator": None if memory is None else memory * BYTE_PER_GIB,
        "date": ROUNDS[row["round"]], "note": f"{row['submitter']} {row['system']} ({row['div']})"[:200],
        "vp": number(str(hints.get("vpp", ""))), "n_micro_batch_sequence": number(str(hints.get("mbs", ""))),
        "sequence_parallel": _SWITCHES.get(str(hints.get("sp", "")).casefold(), ""),
        **_sizes(row, hints),
    }  # fmt: skip
    rate = number(row["throughput"])
    if rate is not None and cells["step_time_s"] is None:
        length = float(str(fixed["n_token_per_sequence"]))
        in_tokens = rate > _MAX_SAMPLE_PER_S and row["benchmark"] == "gpt3"  # NVIDIA's NeMo logged tokens for GPT-3
        cells["throughput_token_per_s"] = rate if in_tokens else rate * length
    return cells


def _sizes(row: Mapping[str, str], hints: Mapping[str, object]) -> Cells:
    """Return the logged parallel sizes, else those of the only configuration with the same number of nodes.

    The table's columns are not used: they hold the submission's first configuration, maybe of another benchmark.
    """
    if "tp" in hints:
        return {size: number(str(hints.get(size, ""))) for size in _SIZES}
    run = row["benchmark"], number(row["nodes"]), number(row["accel_per_node"])
    matches = [match for path in row["configs"].split(";") if (match := _CONFIGURATION.search(path))]
    sizes = {match.groups()[3:] for match in matches if (match[1], float(match[2]), float(match[3])) == run}
    return dict(zip(_SIZES, map(number, sizes.pop()), strict=True)) if len(sizes) == 1 else {}
