"""AMD's ATOM engine and its plugins of vLLM and SGLang: the dashboard of nightly benchmarks on MI355X and MI300X."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row
from roofcast.data.errors import SchemaError
from roofcast.data.measurements.schema import OUTCOME_COLUMNS
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "rocm_atom" / "dashboard_used.jsonl"
FIELDS: Final = (
    "backend", "name", "accelerator", "n_accelerator", "tp", "n_input", "n_output", "concurrency", "time_ms",
    "figures", "commit",
)  # fmt: skip
RUN_COLUMNS: Final = (*OUTCOME_COLUMNS, "acceptance_ratio", "engine_version", "date", "software", "note")
"""Columns in which two runs of one configuration may differ; the dashboard has a run of it for every month."""

MODELS: Final = {
    "DeepSeek-R1": "deepseek-ai/DeepSeek-R1-0528",
    "DeepSeek-R1-0528": "deepseek-ai/DeepSeek-R1-0528",
    "DeepSeek-V3.2": "deepseek-ai/DeepSeek-V3.2",
    "DeepSeek-V4-Pro": "deepseek-ai/DeepSeek-V4-Pro",
    "GLM-4.7": "zai-org/GLM-4.7",
    "GLM-5": "zai-org/GLM-5",
    "GLM-5.1": "zai-org/GLM-5.1",
    "GLM-5.2": "zai-org/GLM-5.2",
    "Kimi-K2-Thinking": "moonshotai/Kimi-K2-Thinking",
    "Kimi-K2.5": "moonshotai/Kimi-K2.5",
    "Kimi-K2.7": "moonshotai/Kimi-K2.7-Code",
    "Llama-3.3-70B-Instruct": "meta-llama/Llama-3.3-70B-Instruct",
    "MiniMax-M2.5": "MiniMaxAI/MiniMax-M2.5",
    "MiniMax-M2.7": "MiniMaxAI/MiniMax-M2.7",
    "MiniMax-M3": "MiniMaxAI/MiniMax-M3",
    "Qwen3-Next-80B-A3B-Instruct": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen3.5-397B-A17B": "Qwen/Qwen3.5-397B-A17B",
    "gpt-oss-120b": "openai/gpt-oss-120b",
}
"""Model by the name of the run without its settings."""

PRECISIONS: Final = {"MXFP4": "fp4", "FP8": "fp8"}
CHECKPOINTS: Final = {"gpt-oss": "fp4", "DeepSeek-V4": "fp4", "DeepSeek": "fp8", "MiniMax": "fp8"}
"""Precision of checkpoints whose name states none, by the start of the name; bf16 for others."""

ENGINES: Final = {"ATOM": "atom", "ATOM-vLLM": "vllm", "ATOM-SGLang": "sglang"}
SETTINGS: Final[dict[str, Row]] = {
    "ATOM ": {"kv_precision": "fp8"},
    "ATOM-vLLM Qwen3-Next": {"chunk_size_token": 32768.0, "max_context_token": 16384.0},
    **{
        f"ATOM-vLLM {start}": {"chunk_size_token": 16384.0, "max_context_token": 16384.0}
        for start in (
            "DeepSeek-R1-FP8", "DeepSeek-R1-MXFP4", "DeepSeek-V3.2-FP8-aw", "GLM-4.7-FP8-aw", "GLM-5.1-FP8",
            "Kimi-K2-Thinking-MXFP4", "Kimi-K2.5-MXFP4-aw", "Qwen3.5-397B-A17B-FP8", "gpt-oss-120b",
        )
    },
    "ATOM-vLLM MiniMax-M2.5-aw": {
        "chunk_size_token": 16384.0, "max_context_token": 16384.0, "kv_precision": "fp8",
    },
}  # fmt: skip
"""Server settings by the start of back end and name: .github/benchmark/README.md, whose default cache is fp8, and
oot_benchmark_models.json of ROCm/ATOM at 016f4ee and 072a7d3."""

N_DRAFT: Final = {"Qwen3-Next": 1.0}
"""Draft tokens of runs whose name states none, by the start of the name (the same file)."""

STACK: Final = "rocm_vllm"
"""Owner of the ROCm repositories, whose vLLM image is the campaign of that name."""

RANGE_RATIO: Final = 0.8
"""The client draws lengths uniformly from this share of the nominal length to all of it, as the recipes state."""

FIXED_LENGTHS: Final = ((1000, 100), (5000, 500), (10000, 1000))
"""Nominal lengths that are not drawn: the ratio of input to output throughput is exactly theirs in every run."""

N_WAVE: Final = 10
"""Requests over concurrency where lengths are drawn, as the recipes state."""

BURST_MARK: Final = "-aw"
"""Mark of runs whose requests start and end together: output throughput times E2E is the concurrency."""

_SETTINGS: Final = re.compile(r"(-MTP-Mo|-MTP-MoE|-MoE|-MXFP4|-FP8|-aw|-mtp|-tp\d| MTP| DPA).*")
_SPECULATION: Final = re.compile(r"[ -]mtp(\d?)(?=$|-tp)", re.IGNORECASE)


def build_rocm_atom(root: Path) -> BuildResult:
    """Build the campaign from the dashboard's rows under `root`.

    Raises
    ------
    SchemaError
        If the file is missing or a line is malformed.
    """
    builder = CampaignBuilder("rocm_atom", MODELS)
    runs = sorted(_runs(root / RAW), key=lambda pair: float(pair[1]["time_ms"]))
    rows = [(reference, _row(run)) for reference, run in runs]
    last = {_configuration(row): reference for reference, row in rows}
    for reference, row in rows:
        if last[_configuration(row)] == reference:
            builder.add(reference, [row])
        else:
            builder.reject(reference, "later_run", f"repeated by {last[_configuration(row)]}")
    return builder.build()


def acceptance_ratio(n_token_per_step: float, n_draft: float) -> float:
    """Return the acceptance of one draft token, given those before it, from the mean tokens of a step.

    The tokens of a step are the sum of the ratio's powers from 0 to the number of draft tokens.

    Examples
    --------
    >>> round(acceptance_ratio(1.75, 2), 6)
    0.5
    """
    ratios = np.linspace(0.0, 1.0, 100_001)
    n_token = sum((ratios**power for power in range(1, int(n_draft) + 1)), np.ones_like(ratios))
    return float(np.interp(n_token_per_step, n_token, ratios))


def _configuration(row: Row) -> str:
    return repr(sorted((name, value) for name, value in row.items() if name not in RUN_COLUMNS))


def _runs(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SchemaError("", f"cannot be read: {error.strerror}", file.name) from error
    for number, line in enumerate(lines, start=1):
        try:
            yield f"{file.name}:{number}", dict(zip(FIELDS, json.loads(line), strict=True))
        except (ValueError, TypeError) as error:
            raise SchemaError("", f"must be a JSON list of {', '.join(FIELDS)}", file.name, number) from error


def _row(run: dict[str, Any]) -> Row:
    figures: dict[str, Any] = run["figures"]
    name, backend = str(run["name"]), str(run["backend"])
    extra = dict(part.split(": ", 1) for part in figures["extra"].split(" | "))
    version = re.search(r"(?:vllm|sglang)-v([\d.]+)", extra.get("Docker", ""))
    rocm = f"ROCm {extra['ROCm']}" if extra.get("ROCm", "unknown") != "unknown" else ""
    date = dt.datetime.fromtimestamp(run["time_ms"] / 1000, dt.UTC).date()
    speculation = _speculation(name, figures)
    return {
        "model": _SETTINGS.sub("", name), "accelerator": run["accelerator"], **_split(run),
        "engine": ENGINES[backend], "engine_version": version[1] if version else "",
        "weight_precision": _weight_precision(name), **_lengths(run), **_settings(backend, name),
        "load": "closed_loop",
        "concurrency": float(run["concurrency"]), "statistic": "mean", "ttft_s": s_from_ms(figures["TTFT (ms)"]),
        "tpot_s": s_from_ms(figures["TPOT (ms)"]),
        "output_throughput_token_per_s": float(figures["throughput (tok/s)"]),
        "total_throughput_token_per_s": float(figures["Total Tput (tok/s)"]), **speculation,
        "date": date.isoformat(), "software": " ".join(filter(None, [extra.get("Docker", ""), rocm])),
        "stack": f"{STACK}/{backend.lower().replace('-', '_')}", "note": name,
    }  # fmt: skip


def _split(run: dict[str, Any]) -> Row:
    name, n = str(run["name"]), int(run["n_accelerator"])
    dp, ep = (re.search(rf"-{kind}(\d+)", name) for kind in ("dp", "ep"))
    n_dp = n if name.endswith(" DPA") or " DPA " in name else int(dp[1]) if dp else 1
    split: Row = {"n_accelerator": n, "n_node": 1, "tp": int(run["tp"]) // n_dp, "dp": n_dp}
    return split | ({"ep": int(ep[1])} if ep else {})


def _weight_precision(name: str) -> str:
    stated = next((precision for mark, precision in PRECISIONS.items() if mark in name), "")
    return stated or next((p for start, p in CHECKPOINTS.items() if name.startswith(start)), "bf16")


def _lengths(run: dict[str, Any]) -> Row:
    n_input, n_output = float(run["n_input"]), float(run["n_output"])
    if (n_input, n_output) in FIXED_LENGTHS:
        is_burst = BURST_MARK in str(run["name"])
        return {
            "n_input_token": n_input, "n_output_token": n_output, "length_variation": 0.0,
            "n_request": float(run["concurrency"]) if is_burst else math.nan,
        }  # fmt: skip
    mean = (1.0 + RANGE_RATIO) / 2.0
    return {
        "n_input_token": mean * n_input, "n_output_token": mean * n_output,
        "length_variation": (1.0 - RANGE_RATIO) / math.sqrt(12.0) / mean,
        "n_request": float(N_WAVE * run["concurrency"]),
    }  # fmt: skip


def _settings(backend: str, name: str) -> Row:
    return next((row for start, row in SETTINGS.items() if f"{backend} {name}".startswith(start)), {})


def _speculation(name: str, figures: dict[str, Any]) -> Row:
    match = _SPECULATION.search(name)
    if not match:
        return {}
    listed = next((n for start, n in N_DRAFT.items() if name.startswith(start)), math.nan)
    n_draft = float(match[1]) if match[1] else listed
    row: Row = {"speculation": "mtp", "n_speculative_token": n_draft}
    if "Accept Length (tok/fwd)" in figures:
        row["acceptance_ratio"] = acceptance_ratio(figures["Accept Length (tok/fwd)"], n_draft)
    return row
