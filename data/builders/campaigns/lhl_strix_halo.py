"""llama-bench sweeps of one Strix Halo: 15 GGUF files on HIP, rocWMMA and Vulkan builds of llama.cpp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row
from builders.campaigns.llama_bench import generation_row, gguf_precision, prompt_row, unknown_precision
from roofcast.data.errors import SchemaError

RAW: Final = Path("campaigns_2026_11") / "raw" / "lhl_strix_halo" / "llm-bench"
ACCELERATOR: Final = "amd-strix-halo-128gb"

MODELS: Final = {
    "GLM-4.5-Air-UD-Q4_K_XL": "zai-org/GLM-4.5-Air",
    "Hunyuan-A13B-Instruct-UD-Q6_K_XL": "tencent/Hunyuan-A13B-Instruct",
    "Llama-4-Scout-17B-16E-Instruct-UD-Q4_K_XL": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "Mistral-Small-3.1-24B-Instruct-2503-UD-Q4_K_XL": "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
    "Qwen3-235B-A22B-Instruct-2507-UD-Q3_K_XL": "Qwen/Qwen3-235B-A22B-Instruct-2507",
    "Qwen3-30B-A3B-UD-Q4_K_XL": "Qwen/Qwen3-30B-A3B",
    "Qwen3-32B-Q8_0": "Qwen/Qwen3-32B",
    "dots.llm1.inst-UD-Q4_K_XL": "rednote-hilab/dots.llm1.inst",
    "gemma-3-27b-it-UD-Q4_K_XL": "google/gemma-3-27b-it",
    "gpt-oss-120b-F16": "openai/gpt-oss-120b",
    "gpt-oss-20b-F16": "openai/gpt-oss-20b",
    "llama-2-7b.Q4_0": "meta-llama/Llama-2-7b-hf",
    "llama-2-7b.Q4_K_M": "meta-llama/Llama-2-7b-hf",
    "shisa-v2-llama3.1-8b.i1-Q4_K_M": "meta-llama/Llama-3.1-8B",
    "shisa-v2-llama3.3-70b.i1-Q4_K_M": "meta-llama/Llama-3.3-70B-Instruct",
}
"""Model by folder of a GGUF file; the fine-tunes of Shisa have the architecture of their base."""

PRECISIONS: Final = {"gpt-oss-120b-F16": "fp4", "gpt-oss-20b-F16": "fp4"}
"""Precision that differs from the name's: the experts stay in MXFP4."""

Entry = tuple[str, dict[str, Any]]
"""Reference of a run, and its line."""

Workload = tuple[str, str, int]
"""Build, mode (pp or tg) and number of tokens."""


def build_lhl_strix_halo(root: Path) -> BuildResult:
    """Build the campaign from its result files under `root`.

    Raises
    ------
    SchemaError
        If there are none.
    """
    files = sorted((root / RAW).glob("*/results.jsonl"))
    if not files:
        raise SchemaError("", "no results.jsonl", RAW.name)
    builder = CampaignBuilder("lhl_strix_halo")
    for file in files:
        name = file.parent.name
        lines = file.read_text(encoding="utf-8").splitlines()
        runs = [(f"{name}:{number}", json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]
        representatives = {key: max(subset, key=_rank)[0] for key, subset in _by_workload(runs).items()}
        for reference, run in runs:
            precision = PRECISIONS.get(name) or gguf_precision(name)
            rejection = unknown_precision(precision)
            if reference != representatives[_workload(run)]:
                rejection = ("other_setting", "another setting of the same model, build and workload stands for it")
            if rejection is not None:
                builder.reject(reference, *rejection)
            else:
                builder.add(reference, [_row(name, precision, run)])
    return builder.build()


def _workload(run: dict[str, Any]) -> Workload:
    return run["build"], run["mode"], run["value"]


def _by_workload(runs: list[Entry]) -> dict[Workload, list[Entry]]:
    groups: dict[Workload, list[Entry]] = {}
    for reference, run in runs:
        groups.setdefault(_workload(run), []).append((reference, run))
    return groups


def _rank(entry: Entry) -> tuple[int, bool, bool, bool, str]:
    """Return the rank of a run among settings: newest engine, flash attention, default batch, hipBLASLt, last run."""
    run, bench = entry[1], entry[1]["bench_raw"]
    return bench["build_number"], bool(run["fa"]), not run["b"], bool(run["hipblaslt"]), bench["test_time"]


def _row(name: str, precision: str, run: dict[str, Any]) -> Row:
    bench = run["bench_raw"]
    build = run["build"].removeprefix("llama.cpp-")
    cells = prompt_row if run["mode"] == "pp" else generation_row
    hipblaslt = ", hipBLASLt" if run["hipblaslt"] else ""
    return {
        "model": MODELS[name], "accelerator": ACCELERATOR, "tp": 1, "pp": 1, "dp": 1,
        "engine": "llama.cpp", "engine_version": f"b{bench['build_number']}", "weight_precision": precision,
        "kv_precision": "fp16", "flash_attention": bool(bench["flash_attn"]), "chunk_size_token": bench["n_ubatch"],
        "date": bench["test_time"][:10], "stack": f"lhl/{build}", "note": f"{name}, {build}{hipblaslt}",
        **cells(run["value"], run["tokens_per_sec"]),
    }  # fmt: skip
