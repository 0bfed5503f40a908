"""Validation runs of two simulators of pipelines: vTrain's on A100 and Sailor's on GH200."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, RejectedRow, SourceRow, build
from roofcast.data.units import s_from_ms

VTRAIN: Final = "training_2026_11/raw/vtrain"
SAILOR: Final = "training_2026_11/raw/sailor"

VTRAIN_MODELS: Final = {"3.6": "nvidia/gpt-3.6b", "18.4": "nvidia/gpt-18.4b", "39.1": "nvidia/gpt-39.1b",
                        "175": "openai/gpt3-175b"}  # fmt: skip
"""Model of the runs on many nodes by printed billions of parameters."""

_SIZES: Final = {
    "tensor parallelism": "tp", "pipeline parallelism": "pp", "data parallelism": "dp", "# GPUs": "n_accelerator",
    "global batch": "n_global_batch_sequence", "micro batch": "n_micro_batch_sequence",
    "sequence length": "n_token_per_sequence",
}  # fmt: skip
_SAILOR_MODELS: Final = {"OPT-350": "facebook/opt-350m", "GPT-NEO": "EleutherAI/gpt-neo-2.7B"}
_SAILOR_FILE: Final = re.compile(r"clariden_(OPT-350|GPT-NEO)_.*")
_GPU: Final = "GH-96"
_SAILOR_LENGTH: Final = 2048.0
_GRANULES: Final = re.compile(rf'"{_GPU}", (\d+)')


def build_vtrain(root: Path) -> BuildResult:
    """Build vTrain's campaign from the files under `root`."""
    rows = [row for kind in ("single", "multi") for row in _vtrain(root / VTRAIN, kind)]
    shared = {"stack": "via-research/vtrain", NODE_SIZE: 8.0}
    return build("vtrain", len(rows), rows, EXACT_RTOL, shared=shared)


def build_sailor(root: Path) -> BuildResult:
    """Build Sailor's campaign from the files under `root`: plans of one kind of accelerator."""
    files = sorted((root / SAILOR).glob("*.json"))
    shared = {"stack": "eth-easl/sailor", NODE_SIZE: 4.0}
    return build("sailor", len(files), map(_sailor, files), EXACT_RTOL, shared=shared)


def _vtrain(folder: Path, kind: str) -> Iterator[SourceRow]:
    file = folder / f"ground_truth_{kind}.csv"
    with file.open(encoding="utf-8-sig", newline="") as stream:
        for line, row in enumerate(csv.DictReader(stream), start=2):
            sizes: Cells = {name: float(row[heading]) for heading, name in _SIZES.items()}
            shape = f"vtrain/gpt-{row['# layers']}l-h{row['hidden size']}"
            yield SourceRow(f"{file.name}:{line}", sizes | {
                "model": VTRAIN_MODELS.get(row.get("Parameters (billion)", ""), shape),
                "accelerator": "nvidia-a100-sxm-80gb", "framework": "megatron-deepspeed", "method": "pretrain",
                "compute_precision": "fp16", "cp": 1.0, "recomputation": "full", "optimizer": "adam",
                "packing": "packed", "offload": "none", "flash_attention": "off", "sequence_parallel": "off",
                "pipeline_schedule": "1f1b" if float(row["pipeline parallelism"]) > 1.0 else "",
                "step_time_s": s_from_ms(float(row["iteration time (ms)"])), "stack": f"via-research/{kind}",
            })  # fmt: skip


def _sailor(file: Path) -> SourceRow | RejectedRow:
    match = _SAILOR_FILE.fullmatch(file.stem)
    plan: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if match is None:
        return RejectedRow(file.name, "unknown_accelerator", "accelerators of several kinds in one run")
    pipeline = plan["pipeline_list"][0]
    text = json.dumps(pipeline["tmp_per_stage"])
    granules = [int(size) for size in _GRANULES.findall(text)]
    tps, dps = {tp for stage in pipeline["tmp_per_stage"] for _, tp in stage}, set(pipeline["dp"])
    if len(tps) != 1 or len(dps) != 1 or len(plan["pipeline_list"]) != 1:
        return RejectedRow(file.name, "malformed", "stages of different sizes")
    tp, dp, pp = float(tps.pop()), float(dps.pop()), float(pipeline["num_stages"])
    return SourceRow(file.name, {
        "model": _SAILOR_MODELS[match[1]], "accelerator": "nvidia-gh200-96gb",
        "n_accelerator": float(sum(granules)), "framework": "megatron-deepspeed", "method": "pretrain",
        "tp": tp, "pp": pp, "dp": dp, "cp": 1.0, "n_micro_batch_sequence": float(plan["mbs"]),
        "n_global_batch_sequence": float(plan["gbs"]), "n_token_per_sequence": _SAILOR_LENGTH,
        "step_time_s": float(plan["real"]), "memory_byte_per_accelerator": float(plan["max_mem"]),
        "date": "2025-08-14", "note": f"layers per stage {[len(s) for s in pipeline['layers_per_stage']]}",
    })  # fmt: skip
