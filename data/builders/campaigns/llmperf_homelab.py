"""LLMPerf with 64 requests at once: Llama 3.1 8B on RunPod's GPUs and in a home lab."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder
from roofcast.data.errors import SchemaError

RAW: Final = Path("campaigns_2026_11") / "raw" / "llmperf_homelab"

SETS: Final = {
    "results.db": ("trelis/sglang", "sglang"),
    "results_vLLM.db": ("trelis/vllm", "vllm"),
    "results__results_cloud_single.db": ("tech_grandpa/runpod", ""),
    "results__results_homelab_single.db": ("tech_grandpa/homelab", ""),
    "results__results_various_models_mixed.db": ("tech_grandpa/homelab", ""),
}
"""Stack and engine of each data base; scripts/compare_frameworks.py of the repository names the engines of two."""

MODELS: Final = {
    "neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8": "meta-llama/Llama-3.1-8B",
    "unsloth/Meta-Llama-3.1-8B-Instruct": "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen2.5-Coder-14B-Instruct": "Qwen/Qwen2.5-14B-Instruct",
    "neuralmagic-ent/Qwen2.5-Coder-14B-Instruct-FP8-dynamic": "Qwen/Qwen2.5-14B-Instruct",
}
ACCELERATORS: Final = {
    "A100 SXM": "nvidia-a100-sxm-80gb", "A40": "nvidia-a40-48gb", "H100 SXM": "nvidia-h100-sxm-80gb",
    "H200 SXM": "nvidia-h200-sxm-141gb", "L4": "nvidia-l4-24gb", "L40": "nvidia-l40-48gb", "L40S": "nvidia-l40s-48gb",
    "MI300X": "amd-mi300x-192gb", "RTX 3090": "nvidia-rtx-3090-24gb", "RTX 4090": "nvidia-rtx-4090-24gb",
    "RTX 4000 Ada": "nvidia-rtx-4000-ada-20gb", "RTX 6000 Ada": "nvidia-rtx-6000-ada-48gb",
    "RTX A6000 Ada": "nvidia-rtx-6000-ada-48gb", "RTX A6000 ADA": "nvidia-rtx-6000-ada-48gb",
    "RTX A4000": "nvidia-rtx-a4000-16gb", "RTX A5000": "nvidia-rtx-a5000-24gb", "RTX A6000": "nvidia-rtx-a6000-48gb",
}  # fmt: skip

RUNPOD: Final = "(runpod) "

MIN_COUNT_RATIO: Final = 1.15
"""Least ratio of counted to requested output tokens where the requested number ended the answers: the client counts
with Llama 2's tokenizer, which takes 1.2 tokens for one of Llama 3's."""

N_LATENCY: Final = 3.0
"""Longest run in latencies of a request: two take the counted requests and those that their threads send next; the
client, which starts a process a request, may take one more, else fewer requests than it claims are in flight."""

S_PER_MIN: Final = 60.0


def build_llmperf_homelab(root: Path) -> BuildResult:
    """Build the campaign from its data bases under `root`: one row of medians for the repeats of a configuration.

    Raises
    ------
    SchemaError
        If a data base is missing or has no runs.
    """
    builder = CampaignBuilder("llmperf_homelab", MODELS, ACCELERATORS)
    for name in SETS:
        repeats: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for run in _runs(root / RAW / name):
            repeats[run["model"], run["gpu_info"]].append(run)
        for runs in repeats.values():
            _add(builder, name, runs)
    return builder.build()


def _runs(file: Path) -> list[dict[str, Any]]:
    """Return the runs of a data base, in the order of time."""
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        try:
            rows = connection.execute("select * from benchmark_runs order by timestamp").fetchall()
        except sqlite3.DatabaseError as error:
            raise SchemaError("", f"must be a data base of benchmark runs: {error}", file.name) from error
    return [dict(row) | json.loads(row["raw_results"]) for row in rows]


def _add(builder: CampaignBuilder, name: str, runs: list[dict[str, Any]]) -> None:
    """Add the median run of a configuration; without the first where the engine caches the prompts, all the same."""
    stack, engine = SETS[name]
    is_cached = engine != "vllm"
    accepted = []
    for position, run in enumerate(runs):
        rule = _rule_against(run, is_first=is_cached and position == 0)
        if rule is None:
            accepted.append(run)
        else:
            builder.reject(f"{name}:{run['id']}", *rule)
    if not accepted:
        return
    first = accepted[0]
    gpu = first["gpu_info"].removeprefix(RUNPOD)
    n_input, n_output = statistics.median(map(_n_input_token, accepted)), float(first["mean_output_tokens"])
    caching = {"prefix_caching": "on", "prefix_cache_ratio": 1 - 1 / n_input} if is_cached else {}
    row = {
        "model": first["model"], "accelerator": gpu, "n_accelerator": 1, "tp": 1, "pp": 1, "dp": 1, "n_node": 1,
        "engine": engine, "weight_precision": first["data_type"].lower(),
        "n_input_token": n_input, "n_output_token": n_output, "statistic": "mean",
        "concurrency": first["num_concurrent_requests"], "load": "closed_loop",
        "length_variation": first["stddev_output_tokens"] / n_output,
        "n_request": first["completed_requests"], "n_failed": first["results"]["number_errors"],
        "tpot_s": statistics.median(map(_tpot_s, accepted)), "date": first["timestamp"][:10],
        "stack": "tech_grandpa/runpod" if first["gpu_info"].startswith(RUNPOD) else stack, **caching,
    }  # fmt: skip
    builder.add(f"{name}:{first['id']}", [row], n_published=len(accepted))


def _rule_against(run: Mapping[str, Any], *, is_first: bool) -> tuple[str, str] | None:
    """Return rule and detail of a run that is set aside; None for one to keep."""
    if is_first:
        return "first_run", "its prompts are not in the cache yet, unlike later ones"
    if _count_ratio(run) < MIN_COUNT_RATIO:
        return "length_unknown", "answers end before the requested length"
    duration_s = run["completed_requests"] / run["completed_requests_per_min"] * S_PER_MIN
    if duration_s > N_LATENCY * run["mean_latency"]:
        detail = f"the run takes {duration_s:.3g} s, its requests {run['mean_latency']:.3g} s: they start one by one"
        return "client_bound", detail
    return None


def _count_ratio(run: Mapping[str, Any]) -> float:
    """Return output tokens as the client counts them, for one requested."""
    return float(run["results"]["number_output_tokens"]["mean"]) / float(run["mean_output_tokens"])


def _n_input_token(run: Mapping[str, Any]) -> float:
    return float(run["results"]["number_input_tokens"]["mean"]) / _count_ratio(run)


def _tpot_s(run: Mapping[str, Any]) -> float:
    return float(run["mean_latency"] - run["ttft"]) / (float(run["mean_output_tokens"]) - 1)
