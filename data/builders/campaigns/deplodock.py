"""CloudRift's deplodock: vllm bench serve against vLLM and SGLang in containers, one text file a run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, rows_by_statistic
from roofcast.data.errors import SchemaError
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "deplodock"

ACCELERATORS: Final = {
    "AMD Instinct MI350X": "amd-mi350x-288gb",
    "NVIDIA B200": "nvidia-b200-sxm-180gb", "b200": "nvidia-b200-sxm-180gb",
    "NVIDIA GeForce RTX 4090": "nvidia-rtx-4090-24gb", "rtx4090": "nvidia-rtx-4090-24gb",
    "NVIDIA GeForce RTX 5090": "nvidia-rtx-5090-32gb", "rtx5090": "nvidia-rtx-5090-32gb",
    "NVIDIA H200 141GB": "nvidia-h200-sxm-141gb", "h200": "nvidia-h200-sxm-141gb",
    "h100": "nvidia-h100-sxm-80gb", "l40s": "nvidia-l40s-48gb",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "nvidia-rtx-pro-6000-blackwell-maxq",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "nvidia-rtx-pro-6000-blackwell-server",
    "NVIDIA RTX PRO 6000 Workstation Edition": "nvidia-rtx-pro-6000-blackwell-workstation",
    "gcloud": "nvidia-rtx-pro-6000-blackwell-server",
    "pro6000": "",
}  # fmt: skip
"""Accelerator by the recipe's name, or by the beginning of the names of older files."""

MODELS: Final = {
    "QuantTrio/Qwen3-Coder-30B-A3B-Instruct-AWQ": "Qwen/Qwen3-30B-A3B",
    "QuantTrio/Qwen3-Coder-480B-A35B-Instruct-AWQ": "Qwen/Qwen3-Coder-480B-A35B-Instruct",
    "Qwen/Qwen3-Coder-Next-FP8": "Qwen/Qwen3-Coder-Next",
    "Qwen/Qwen3.5-122B-A10B-FP8": "Qwen/Qwen3.5-122B-A10B",
    "Qwen/Qwen3.6-27B-FP8": "Qwen/Qwen3.6-27B",
    "Qwen/Qwen3.6-35B-A3B-FP8": "Qwen/Qwen3.6-35B-A3B",
    "amd/Kimi-K2.5-MXFP4": "moonshotai/Kimi-K2.5",
    "cpatonn/GLM-4.5-Air-AWQ-4bit": "zai-org/GLM-4.5-Air",
    "cyankiwi/Qwen3.6-27B-AWQ-INT4": "Qwen/Qwen3.6-27B",
    "ibnzterrell/Meta-Llama-3.3-70B-Instruct-AWQ-INT4": "meta-llama/Llama-3.3-70B-Instruct",
    "nvidia/DeepSeek-V4-Pro-NVFP4": "deepseek-ai/DeepSeek-V4-Pro",
    "nvidia/Kimi-K2.5-NVFP4": "moonshotai/Kimi-K2.5",
    "zai-org/GLM-4.6-FP8": "zai-org/GLM-4.6",
}
PRECISIONS: Final = {"AWQ": "int4", "FP8": "fp8", "NVFP4": "fp4", "MXFP4": "fp4"}
"""Weight precision by a part of the checkpoint's name; others are those of the model."""

MODEL_PRECISIONS: Final = {"deepseek-ai/DeepSeek-V4-Flash": ""}
CACHES: Final = {"fp8": "fp8", "bf16": "bf16"}
YEARS: Final = {
    "rtx4900_rtx5900_pro6000_08_10_2025": "2025",
    "pro6000_l40s_h100_h200_11_2025": "2025-11",
    "pro6000_h100_h200_b200_01_2026": "2026-01",
}
STATISTICS: Final = {"mean": "Mean", "p50": "Median", "p99": "P99"}
LATENCIES: Final = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL", "e2e_s": "E2EL"}

_SECTION: Final = re.compile(r"^=+ ([A-Z][\w ]+?) =+$", re.MULTILINE)
_SERVICE: Final = re.compile(r"^  (?:vllm|sglang)_\d+:$", re.MULTILINE)
_LABEL: Final = re.compile(r"^([A-Z][\w /().]+?):\s+([\d.]+|nan)\s*$", re.MULTILINE)


def build_deplodock(root: Path) -> BuildResult:
    """Build the campaign from its text files under `root`, one published row a file.

    Raises
    ------
    SchemaError
        If the files are missing or one lacks the result, the containers or the command.
    """
    files = sorted((root / RAW).rglob("*_benchmark.txt"))
    if not files:
        raise SchemaError("", "holds no benchmark", RAW.name)
    builder = CampaignBuilder("deplodock", MODELS, ACCELERATORS)
    for file in files:
        _add(builder, file.relative_to(root / RAW), _sections(file))
    return builder.build()


def _sections(file: Path) -> dict[str, str]:
    parts = _SECTION.split(file.read_text(encoding="utf-8"))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    for name in ("Serving Benchmark Result", "Docker Compose Configuration", "Benchmark Command"):
        if name not in sections:
            raise SchemaError("", f"must have the section {name}", file.name)
    return sections


def _add(builder: CampaignBuilder, file: Path, sections: Mapping[str, str]) -> None:
    compose = sections["Docker Compose Configuration"]
    n_service = len(_SERVICE.findall(compose))
    if n_service != 1:
        builder.reject(str(file), "replicas", f"{n_service} engines behind a load balancer")
        return
    figures = {name: number_of(value) for name, value in _LABEL.findall(sections["Serving Benchmark Result"])}
    n_done = figures["Successful requests"]
    if not n_done > 0:
        builder.reject(str(file), "no_outcome", "no request succeeded")
        return
    command = sections["Benchmark Command"]
    n_request, n_output = _option(command, "num-prompts"), figures["Total generated tokens"] / n_done
    common = _deployment(compose) | {
        "model": _text_option(command, "model"), "accelerator": _accelerator(file, sections),
        "weight_precision": _precision(_text_option(command, "model")), "date": _date(file), "n_node": 1,
        "n_input_token": figures["Total input tokens"] / n_done, "n_output_token": n_output,
        "length_variation": 0.0 if n_output == _option(command, "random-output-len") else math.nan,
        "load": "closed_loop", "concurrency": figures["Maximum request concurrency"],
        "n_request": n_request, "n_failed": n_request - n_done, "duration_s": figures["Benchmark duration (s)"],
    }  # fmt: skip
    accelerator = ACCELERATORS.get(str(common["accelerator"]), "")
    common["stack"] = f"deplodock/{accelerator.removeprefix('nvidia-')}_{common['engine']}"
    builder.add(str(file), rows_by_statistic(common, _outcomes(figures)))


def _outcomes(figures: Mapping[str, float]) -> dict[str, Row]:
    outcomes: dict[str, Row] = {
        statistic: {
            ours: s_from_ms(figures.get(f"{name} {theirs} (ms)", math.nan)) for ours, theirs in LATENCIES.items()
        }
        for statistic, name in STATISTICS.items()
    }
    outcomes["mean"]["output_throughput_token_per_s"] = figures["Output token throughput (tok/s)"]
    return outcomes


def _deployment(compose: str) -> Row:
    """Return the engine's settings; of an option given twice the last holds, as for the engines."""
    service = compose[_SERVICE.search(compose).start() :].partition("healthcheck:")[0]  # type: ignore[union-attr]
    image = re.search(r"image: (\S+)", service)
    version = re.search(r":v(\d+\.\d+\.\d+)", image[1] if image else "")
    tp, pp, dp = (
        _first(1.0, *(_option(service, name) for name in names))
        for names in (
            ("tensor-parallel-size", "tp"),
            ("pipeline-parallel-size", "pp-size"),
            ("data-parallel-size", "dp"),
        )
    )
    is_sglang = "sglang" in (image[1] if image else "")
    is_eager = "--enforce-eager" in service or "--disable-cuda-graph" in service
    caching = {"--enable-prefix-caching": "on", "--disable-radix-cache": "off"}
    has_experts = "--enable-expert-parallel" in service
    return {
        "engine": "sglang" if is_sglang else "vllm", "engine_version": version[1] if version else "",
        "n_accelerator": tp * pp * dp, "tp": tp, "pp": pp, "dp": dp, "ep": tp * dp if has_experts else math.nan,
        "kv_precision": CACHES.get(_text_option(service, "kv-cache-dtype"), ""),
        "max_num_seqs": _first(math.nan, _option(service, "max-num-seqs"), _option(service, "max-running-requests")),
        "max_context_token": _first(math.nan, _option(service, "max-model-len"), _option(service, "context-length")),
        "graphs": "off" if is_eager else "",
        "prefix_caching": next((state for option, state in caching.items() if option in service), ""),
    }  # fmt: skip


def _text_option(text: str, name: str) -> str:
    values = re.findall(rf"--{name}[ =]([\w./:-]+)", text)
    return values[-1] if values else ""


def _option(text: str, name: str) -> float:
    return number_of(_text_option(text, name))


def _first(default: float, *values: float) -> float:
    return next((value for value in values if not math.isnan(value)), default)


def _accelerator(file: Path, sections: Mapping[str, str]) -> str:
    """Return the GPU's name in the recipe, or the beginning of the file's name."""
    match = re.search(r"^gpu_name: (.+)$", sections.get("Benchmark Task", ""), re.MULTILINE)
    return match[1].strip() if match else file.name.partition("_")[0]


def _precision(checkpoint: str) -> str:
    if checkpoint in MODEL_PRECISIONS:
        return MODEL_PRECISIONS[checkpoint]
    return next((precision for mark, precision in PRECISIONS.items() if mark in checkpoint.split("-")), "bf16")


def _date(file: Path) -> str:
    match = re.search(r"(20\d\d-\d\d-\d\d)_", str(file.parent))
    return match[1] if match else next((date for name, date in YEARS.items() if name in file.parts), "")
