"""jvr0x's DGX Spark benchmarks: vLLM and llama.cpp on one GB10 or two, over concurrency."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, rows_by_statistic
from roofcast.data.errors import SchemaError
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "dgx_spark_jvr0x"

MODELS: Final = (
    ("AgentWorld-35B-A3B|Ornith-1.0-35B|Qwen3.6-35B-A3B", "Qwen/Qwen3.6-35B-A3B"),
    ("Qwen3.6-27B|Qwopus3.6-27B", "Qwen/Qwen3.6-27B"),
    ("Qwen3-Coder-Next", "Qwen/Qwen3-Coder-Next"),
    ("gemma-4-12b-it", "google/gemma-4-12B-it"),
    ("gemma-4-26B-A4B", "google/gemma-4-26B-A4B-it"),
    ("Gemma-4-31B-IT", "google/gemma-4-31B-it"),
    ("gpt-oss-20b", "openai/gpt-oss-20b"),
    ("Kimi-Linear-48B", "moonshotai/Kimi-Linear-48B-A3B-Instruct"),
    ("Laguna-S-2.1", "poolside/Laguna-S-2.1"),
    ("MiMo-V2.5", "XiaomiMiMo/MiMo-V2.5"),
    ("MiniMax-M3", "MiniMaxAI/MiniMax-M3"),
    ("Mistral-Medium-3.5-128B", "mistralai/Mistral-Medium-3.5-128B"),
    ("Nemotron-3-Super-120B", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"),
    ("Nemotron-Labs-3-Puzzle-75B", "nvidia/NVIDIA-Nemotron-Labs-3-Puzzle-75B-A9B"),
    ("Nemotron-3-Nano-Omni", "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16"),
    ("Nemotron-3-Nano-30B", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
    ("DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash"),
    ("Step-3.7-Flash", "stepfun-ai/Step-3.7-Flash"),
)
"""Model by a part of the checkpoint's name; fine-tunes count as their base."""

PRECISIONS: Final = (
    ("NVFP4-DS-MLA", "fp4"), ("NVFP4", "fp4"), ("FP8", "fp8"), ("BF16", "bf16"), ("W4A16", "int4"), ("Q8_", "int8"),
    ("Q4_", "int4"), ("IQ4_", "int4"),
)  # fmt: skip
"""Weight precision by a part of the quantisation's name."""

CACHES: Final = {"fp8": "fp8", "bf16": "bf16", "nvfp4": "fp4", "nvfp4_ds_mla": "fp4", "q8_0": "int8"}
SPECULATIONS: Final = {"MTP": "mtp", "DFLASH": "draft", "DSPARK": "draft", "EAGLE3": "eagle"}
SWITCHES: Final = {"true": "on", "false": "off"}

N_PROMPT_WORD: Final = 768
"""Words of the prompt, 0.75 for each nominal token; the word is one token of each tokenizer."""

N_LEAD_TOKEN: Final = 22
"""Tokens of the prompt's number, its instruction and a chat template, about."""

MIN_WAVES: Final = 3
"""Least completed requests per request in flight of a window whose throughput counts: it counts whole requests."""

MIN_SAMPLES: Final = {"p50": 3, "p95": 20, "p99": 100}
"""Least number of requests of a percentile."""


def build_dgx_spark_jvr0x(root: Path) -> BuildResult:
    """Build the campaign from its JSON files under `root`, one published row per concurrency.

    Raises
    ------
    SchemaError
        If the files are missing or one is no result of the harness.
    """
    files = sorted((root / RAW).glob("*.json"))
    if not files:
        raise SchemaError("", "holds no JSON file", RAW.name)
    builder = CampaignBuilder("dgx_spark_jvr0x")
    for file in files:
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            run, series = document["run"], document["series"]
        except (ValueError, KeyError) as error:
            raise SchemaError("series", "must be a result of the harness", file.name) from error
        for part in series:
            _add(builder, file.name, run, part)
    return builder.build()


def _add(builder: CampaignBuilder, name: str, run: Mapping[str, Any], series: Mapping[str, Any]) -> None:
    common = _deployment(series, n_node=2 if "x2" in run["hardware"]["name"] else 1) | {
        "n_input_token": N_PROMPT_WORD + N_LEAD_TOKEN, "n_output_token": run["workload"]["output_tokens"],
        "load": "closed_loop", "length_variation": 0.0, "duration_s": run["sweep"]["measure_s"],
        "date": run["timestamp"][:10],
    }  # fmt: skip
    for point in series["points"]:
        reference = f"{name}: {point['concurrency']}"
        if point.get("_failures"):
            builder.reject(reference, "failed_requests", f"{point['_failures']} requests failed")
            continue
        load = {"concurrency": point["concurrency"], "n_request": point["samples"]}
        builder.add(reference, rows_by_statistic(common | load, _outcomes(point, common)))


def _deployment(series: Mapping[str, Any], n_node: int) -> Row:
    config = series["config"]
    is_vllm = series["backend"].startswith("vLLM")
    image = config.get("image", "")
    build = "aeon" if "aeon" in (image + series["backend"]).lower() else ("vllm" if is_vllm else "llama.cpp")
    cache = str(config.get("kv_cache_dtype", "")).partition(" (")[0]
    prefix = str(config.get("prefix_caching", "")).lower()
    return {
        "model": _first_match(MODELS, config["checkpoint"]), "accelerator": "nvidia-gb10-dgx-spark",
        "n_accelerator": n_node, "n_node": n_node, "tp": n_node, "pp": 1, "dp": 1,
        "engine": "vllm" if is_vllm else "llama.cpp", "engine_version": _version(image, series["backend"]),
        "weight_precision": _first_match(PRECISIONS, series["quant"]), "kv_precision": CACHES.get(cache, ""),
        "max_num_seqs": config.get("max_num_seqs", config.get("parallel", math.nan)),
        "max_context_token": config.get("max_model_len", config.get("ctx", math.nan)),
        "chunk_size_token": config.get("max_num_batched_tokens", math.nan),
        "chunked_prefill": SWITCHES.get(str(config.get("chunked_prefill", "")).lower(), ""),
        "graphs": SWITCHES.get(str(config.get("cuda_graphs", "")).lower().removesuffix(" (enforce_eager false)"), ""),
        "prefix_caching": "on" if prefix.startswith("on") else SWITCHES.get(prefix, ""),
        "prefix_cache_ratio": 0.0 if prefix.startswith("on") else math.nan,
        "stack": f"jvr0x/{build}", **_speculation(config.get("speculative", "")),
    }  # fmt: skip


def _first_match(names: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in names if re.search(pattern, text, re.IGNORECASE)), text)


def _version(image: str, backend: str) -> str:
    """Return the version in the image's tag, else that in the name of the backend; blank without either."""
    match = re.search(r"v(\d+\.\d+\.\d+)$", image) or re.search(r"vLLM (\d+\.\d+)", backend)
    return match[1] if match else ""


def _speculation(text: str) -> Row:
    kind = next((kind for mark, kind in SPECULATIONS.items() if text.upper().startswith(mark)), "")
    match = re.search(r"(\d+) tokens?", text)
    return {"speculation": kind, "n_speculative_token": float(match[1])} if kind and match else {}


def _outcomes(point: Mapping[str, Any], common: Row) -> dict[str, Row]:
    """Return the outcomes of a point; a gap between chunks is one between tokens only without speculation."""
    n_output = float(str(common["n_output_token"]))
    gaps_ms = {} if common.get("speculation") else point["itl_ms"]
    outcomes: dict[str, Row] = {
        name: {"ttft_s": s_from_ms(point["ttft_ms"][name]), "itl_s": s_from_ms(gaps_ms.get(name, math.nan))}
        for name, least in MIN_SAMPLES.items()
        if point["samples"] >= least
    }
    has_throughput = point["samples"] >= MIN_WAVES * point["concurrency"]
    is_single = common["n_node"] == 1
    outcomes["mean"] = {
        "tpot_s": n_output / (n_output - 1) / point["per_session_tok_s"],
        "output_throughput_token_per_s": float(point["agg_tok_s"]) if has_throughput else math.nan,
        "power_w": float(point.get("gpu", {}).get("power_draw_w", math.nan)) if is_single else math.nan,
    }
    return outcomes
