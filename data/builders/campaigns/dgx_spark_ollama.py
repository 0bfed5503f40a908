"""Kleybrink's benchmarks of Ollama on a DGX Spark: 21 prompts to 16 LLMs, one at a time."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of

FILE: Final = Path("campaigns_2026_11") / "raw" / "dgx_spark_ollama" / "20260320_224129_raw_numbers.csv"
"""The second of two files, which repeats the rows of the first."""

MODELS: Final = {
    "glm-4.7-flash": "zai-org/GLM-4.7-Flash",
    "gpt-oss:120b": "openai/gpt-oss-120b",
    "gpt-oss:20b": "openai/gpt-oss-20b",
    "lfm2:24b": "LiquidAI/LFM2-24B-A2B",
    "nemotron-3-nano:30b": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "nemotron-3-nano:4b": "nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16",
    "nemotron-3-super:120b": "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
    "nemotron-cascade-2:30b": "nvidia/Nemotron-Cascade-2-30B-A3B",
    "qwen3-coder-next:latest": "Qwen/Qwen3-Coder-Next",
    "qwen3.5:0.8b": "Qwen/Qwen3.5-0.8B",
    "qwen3.5:122b": "Qwen/Qwen3.5-122B-A10B",
    "qwen3.5:27b": "Qwen/Qwen3.5-27B",
    "qwen3.5:2b": "Qwen/Qwen3.5-2B",
    "qwen3.5:35b": "Qwen/Qwen3.5-35B-A3B",
    "qwen3.5:4b": "Qwen/Qwen3.5-4B",
    "qwen3.5:9b": "Qwen/Qwen3.5-9B",
}
PRECISIONS: Final = {"gpt-oss:120b": "fp4", "gpt-oss:20b": "fp4"}
"""Weight precision of tags that are not of 4-bit integers by default."""

UNSURE_PRECISION: Final = ("qwen3.5:0.8b", "qwen3.5:2b")
"""Tags of small models, for which Ollama's default may be of 8 bits."""

MIN_OUTPUT_TOKEN: Final = 20
"""Least length of an answer whose time per token counts."""

MAX_OVERHEAD_S: Final = 1.0
"""Largest part of TTFT beside the prompt's evaluation; more is the loading of the weights."""


def build_dgx_spark_ollama(root: Path) -> BuildResult:
    """Build the campaign from its table under `root`: one row of means for the repeats of a prompt.

    Raises
    ------
    SchemaError
        If the file is missing.
    """
    builder = CampaignBuilder("dgx_spark_ollama", MODELS)
    repeats: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for reference, cells in records_of(root / FILE):
        if not cells["eval_count"]:
            builder.reject(reference, "timed_out", f"no answer within {number_of(cells['wall_latency_s']):g} s")
        elif cells["model"] in UNSURE_PRECISION:
            builder.reject(reference, "unknown_precision", "the tag's quantisation is not stated")
        elif number_of(cells["eval_count"]) < MIN_OUTPUT_TOKEN:
            builder.reject(reference, "short_answer", f"{cells['eval_count']} tokens")
        else:
            repeats[cells["model"], cells["think"], cells["prompt_name"]].append(cells)
    for key, runs in repeats.items():
        builder.add(" ".join(key), [_row(runs)], n_published=len(runs))
    return builder.build()


def _row(runs: list[dict[str, str]]) -> Row:
    def mean(name: str) -> float:
        return statistics.mean(number_of(cells[name]) for cells in runs)

    tag, n_output = runs[0]["model"], mean("eval_count")
    has_loaded = mean("ttft_s") - mean("prompt_eval_duration_s") > MAX_OVERHEAD_S
    latencies = {} if has_loaded else {"ttft_s": mean("ttft_s"), "e2e_s": mean("wall_latency_s")}
    return {
        "model": tag, "accelerator": "nvidia-gb10-dgx-spark", "n_accelerator": 1, "tp": 1, "n_node": 1,
        "engine": "ollama", "weight_precision": PRECISIONS.get(tag, "int4"), "max_num_seqs": 2,
        "n_input_token": mean("prompt_eval_count"), "n_output_token": n_output, "load": "closed_loop",
        "concurrency": 1, "n_request": len(runs), "statistic": "mean", "date": "2026-03-20",
        "tpot_s": mean("eval_duration_s") / n_output, **latencies, "stack": "kleybrink/dgx_spark",
    }  # fmt: skip
