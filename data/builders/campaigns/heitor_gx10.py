"""Small models on one ASUS GX10 (GB10): vLLM with 1 to 32 requests at once, by the repository's own client."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row
from roofcast.data.errors import SchemaError
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "heitor_gx10" / "AsusGx10" / "benchmarks"
SMALL: Final = "small-models"

SERVERS: Final[dict[str, Row]] = {
    "gemma-4-e4b": {
        "model": "google/gemma-4-E4B-it", "weight_precision": "fp4", "kv_precision": "fp8",
        "max_context_token": 16384,
    },
    "qwen3-4b": {"model": "Qwen/Qwen3-4B", "weight_precision": "fp4", "max_context_token": 32768},
    "qwen3-8b": {"model": "Qwen/Qwen3-8B", "weight_precision": "fp4", "max_context_token": 32768},
    "llama31-8b": {"model": "meta-llama/Llama-3.1-8B", "weight_precision": "fp4", "max_context_token": 32768},
    "phi4-mini": {"model": "microsoft/Phi-4-mini-instruct", "weight_precision": "bf16", "max_context_token": 32768},
    "ministral-8b": {
        "model": "mistralai/Ministral-8B-Instruct-2410", "weight_precision": "bf16", "max_context_token": 32768,
    },
}  # fmt: skip
"""Server by label: `serve_small.sh` and the table of FINDINGS-small-models.md, which names checkpoint and format."""

N_DECODE_PROMPT: Final = 20
N_TTFT_PROMPT: Final = 9
"""Words and marks of the client's two prompts (bench_small.py), without the chat template's tokens."""

N_TTFT_OUTPUT: Final = 32
"""Largest output of the requests whose TTFT is measured."""


def build_heitor_gx10(root: Path) -> BuildResult:
    """Build the campaign from its result files under `root`.

    Raises
    ------
    SchemaError
        If there are none.
    """
    files = sorted((root / RAW).rglob("*.json"))
    if not files:
        raise SchemaError("", "no result file", RAW.name)
    builder = CampaignBuilder("heitor_gx10", stack="heitor")
    for file in files:
        run = json.loads(file.read_text(encoding="utf-8"))
        rejection = _rejection(file, run)
        if rejection is not None:
            builder.reject(file.name, *rejection, n_published=max(_n_point(run), 1))
        else:
            for workload, row in _points(run):
                builder.add(f"{file.name} {workload}", [row])
    return builder.build()


def _n_point(run: dict[str, Any]) -> int:
    """Return the number of points of a result: two of a single stream, and those of the sweep."""
    names = ("ttft_ms", "decode_tps", "single_stream")
    return sum(name in run for name in names) + len(run.get("concurrency", ()))


def _rejection(file: Path, run: dict[str, Any]) -> tuple[str, str] | None:
    if file.parent.name != SMALL:
        return "no_lengths", "the client of the large models and its request lengths are not published"
    if ".coresident" in file.name:
        return "shared_accelerator", "another model is loaded on the same accelerator"
    if _n_point(run) == 0:
        return "no_outcome", "the server did not answer"
    return None


def _points(run: dict[str, Any]) -> Iterator[tuple[str, Row]]:
    common: Row = {
        **SERVERS[run["label"]], "accelerator": "nvidia-gb10-dgx-spark", "n_accelerator": 1, "n_node": 1,
        "tp": 1, "pp": 1, "dp": 1, "engine": "vllm", "software": "vllm/vllm-openai:cu130-nightly", "max_num_seqs": 64,
        "statistic": "mean", "date": dt.datetime.fromtimestamp(run["ts"], dt.UTC).date().isoformat(),
    }  # fmt: skip
    single: Row = {"load": "closed_loop", "concurrency": 1, "n_request": run["runs"]}
    decode: Row = {"n_input_token": N_DECODE_PROMPT, "n_output_token": run["max_tokens"]}
    ttft_s = s_from_ms(run["ttft_ms"]["mean"])
    yield (
        "ttft",
        common | single | {"n_input_token": N_TTFT_PROMPT, "n_output_token": N_TTFT_OUTPUT, "ttft_s": ttft_s},
    )
    yield "decode", common | single | decode | {"tpot_s": 1 / run["decode_tps"]["mean"]}
    for text, point in run["concurrency"].items():
        n_request = int(text)
        yield (
            f"c{text}",
            common
            | {
                "load": "static_batch", "concurrency": n_request, "n_request": n_request,
                "n_input_token": N_DECODE_PROMPT, "n_output_token": point["tot_tokens"] / n_request,
                "duration_s": point["wall_s"], "output_throughput_token_per_s": point["agg_tps"],
            },
        )  # fmt: skip
