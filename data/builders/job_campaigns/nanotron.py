"""Nanotron's sweep for the Ultra-Scale Playbook: plans of Llama shapes on 8 to 512 H100 and what did not fit."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import number
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.source_rows import (
    NODE_SIZE,
    PER_ACCELERATOR,
    Cells,
    RejectedRow,
    SourceRow,
    build,
)
from roofcast.data.units import BYTE_PER_GB, BYTE_PER_GIB, FLOP_PER_TFLOP

RAW: Final = "training_2026_11/raw/nanotron_ultrascale/bench_final2_mod_add.csv"

MODELS: Final = {"1.34G": "1.34b", "3.57G": "3.57b", "8.86G": "8.86b", "80G": "80b", "469G": "469b"}
"""Shape by the size in the name of a run."""

VOCABULARY: Final = "131072"
_REPEATED: Final = ("name", "status")
_STATUSES: Final = {"Success": "ok", "OOM": "out_of_memory"}


def build_nanotron(root: Path) -> BuildResult:
    """Build the campaign from the files under `root`.

    Each run logs its third step. Memory is the largest that the allocator of the logging rank reserved. The last of
    several runs of one configuration and outcome counts.
    """
    with (root / RAW).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    shared = {"stack": "huggingface/nanotron", NODE_SIZE: 8.0}
    return build("nanotron_ultrascale", len(rows), _read_rows(rows), EXACT_RTOL, shared=shared)


def _read_rows(rows: list[dict[str, str]]) -> Iterator[SourceRow | RejectedRow]:
    last = {_key(row): row["job_id"] for row in sorted(rows, key=lambda row: int(row["job_id"]))}
    for row in rows:
        reference = f"job {row['job_id']}"
        if row["status"] not in _STATUSES:
            yield RejectedRow(reference, "no_outcome", "the run failed for a cause that its log does not name")
        elif row["status"] == "Success" and row["oom_error"] == "True":
            yield RejectedRow(reference, "inconsistent", "a successful run whose log has an out-of-memory error")
        elif row["status"] == "Success" and int(row["pp"]) > 1 and row["after_pp_fix"] != "True":
            yield RejectedRow(reference, "superseded_release", "measured before the repair of the pipeline")
        elif last[_key(row)] != row["job_id"]:
            yield RejectedRow(reference, "repeated_run", f"job {last[_key(row)]} repeats the configuration")
        else:
            yield SourceRow(reference, _cells(row))


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in _REPEATED)


def _cells(row: dict[str, str]) -> Cells:
    dp, pp, tp, micro, passes = (number(row[name]) or 1.0 for name in ("dp", "pp", "tp", "mbs", "batch_accum"))
    rate, reserved = number(row["mTFLOPs"]), number(row["Mem Res (GB)"])
    reduced = number(row["AllReduce (GB/s)"])
    return {
        "model": _model(row), "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": dp * pp * tp,
        "framework": "nanotron", "method": "pretrain", "weight_precision": "bf16", "compute_precision": "bf16",
        "gradient_precision": "fp32", "state_precision": "fp32", "optimizer": "adamw", "packing": "packed",
        "flash_attention": "on", "recomputation": "none", "offload": "none", "sequence_parallel": "on",
        "tp": tp, "pp": pp, "cp": 1.0, "dp": dp, "pipeline_schedule": "1f1b" if pp > 1.0 else "",
        "sharding": {"0": "ddp", "1": "zero1"}[row["zero_stage"]],
        "n_micro_batch_sequence": micro, "n_gradient_accumulation": passes,
        "n_global_batch_sequence": dp * micro * passes, "n_token_per_sequence": number(row["seq_len"]),
        "all_reduce_bandwidth_byte_per_s": reduced * BYTE_PER_GB if reduced else None,
        PER_ACCELERATOR: number(row["tok/s/gpu"]),
        "model_flop_per_s_per_accelerator": rate * FLOP_PER_TFLOP if rate else None,
        "memory_byte_per_accelerator": reserved * BYTE_PER_GIB if reserved else None, "memory_kind": "reserved",
        "status": _STATUSES[row["status"]], "date": row["date"][:10],
        "note": "" if row["after_pp_fix"] == "True" or pp == 1.0 else "before the repair of the pipeline",
    }  # fmt: skip


def _model(row: dict[str, str]) -> str:
    if row["vocab_size"] != VOCABULARY:
        return f"{row['name'].partition('_')[0]} with a vocabulary of {row['vocab_size']}"
    size = MODELS.get(row["name"].partition("_")[0], row["name"])
    is_grouped = row["num_kv_heads"] not in {"", row["num_heads"], f"{row['num_heads']}.0"} or "gqa" in row["name"]
    return "nanotron/llama-70.6b-gqa" if size == "80b" and is_grouped else f"nanotron/llama-{size}"
