"""ML.ENERGY's benchmark v3: token gaps, throughput and power of vLLM on H100 and B200 in the steady state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, rows_by_statistic
from roofcast.data.errors import SchemaError
from roofcast.data.units import s_from_ms

RAW: Final = Path("campaigns_2026_11") / "raw" / "ml_energy"

ACCELERATORS: Final = {"H100": "nvidia-h100-sxm-80gb", "B200": "nvidia-b200-sxm-180gb"}
"""An H100 draws up to 694 W in these runs, which the SXM module alone does."""

PRECISIONS: Final = {"bfloat16": "bf16", "fp8": "fp8", "mxfp4": "fp4"}

PROMPT_CHARACTERS: Final = {"gpqa": 841.15}
"""Mean characters of a prompt by task: GPQA Diamond's 198 questions in EvalScope's template
(https://evalscope.readthedocs.io/en/v1.6.0/benchmarks/gpqa_diamond.html). The others are not published."""

CHARACTERS_PER_TOKEN: Final = 4.0
"""Rule of English text (https://platform.openai.com/tokenizer)."""

ENGINE_VERSION: Final = "0.11.1"

_STATISTICS: Final = {"p50": "median_itl_ms", "p90": "p90_itl_ms", "p95": "p95_itl_ms", "p99": "p99_itl_ms"}


def build_ml_energy(root: Path) -> BuildResult:
    """Build the campaign from the leaderboard's files under `root`.

    Raises
    ------
    SchemaError
        If there is no file, or one is malformed.
    """
    builder = CampaignBuilder("ml_energy", accelerators=ACCELERATORS)
    files = sorted((root / RAW).glob("*.json"))
    if not files:
        raise SchemaError("", "has no files", str(RAW))
    for file in files:
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            configurations = document["configurations"]
        except (ValueError, KeyError, TypeError) as error:
            raise SchemaError("", "must be a JSON object with configurations", file.name) from error
        for position, configuration in enumerate(configurations):
            _add(builder, f"{file.name}:{position}", document, configuration)
    return builder.build()


def _add(builder: CampaignBuilder, reference: str, document: dict[str, Any], run: dict[str, Any]) -> None:
    task = document["task"]
    if task not in PROMPT_CHARACTERS:
        builder.reject(reference, "no_lengths", f"input lengths of {task} are not published")
        return
    common: Row = {
        "model": document["model_id"].removesuffix("-FP8"), "accelerator": run["gpu_model"], "n_node": 1,
        "engine": "vllm", "engine_version": ENGINE_VERSION,
        "weight_precision": PRECISIONS[document["weight_precision"]], **_split(run),
        "n_input_token": PROMPT_CHARACTERS[task] / CHARACTERS_PER_TOKEN,
        "n_output_token": run["avg_output_len"], **_output_lengths(run["output_length_distribution"]),
        "load": "closed_loop", "concurrency": run["avg_batch_size"], "max_num_seqs": float(run["max_num_seqs"]),
        "stack": f"ml_energy/{run['gpu_model'].lower()}", "note": task,
    }  # fmt: skip
    outcomes: dict[str, Row] = {name: {"itl_s": s_from_ms(run[column])} for name, column in _STATISTICS.items()}
    outcomes["mean"] = {
        "output_throughput_token_per_s": run["output_throughput_tokens_per_sec"],
        "power_w": run["avg_power_watts"],
    }
    builder.add(reference, rows_by_statistic(common, outcomes))


def _split(run: dict[str, Any]) -> Row:
    """Return the parallelism; experts in parallel without data parallelism leave attention in tensor parallelism."""
    parallel = run["parallelization"]
    n, dp, ep = run["num_gpus"], parallel["data_parallel"], parallel["expert_parallel"]
    split: Row = {"n_accelerator": n, "tp": n // dp, "pp": 1, "dp": dp}
    return split | ({"ep": ep} if ep > 1 else {})


def _output_lengths(histogram: dict[str, list[float]]) -> Row:
    """Return number and variation of the output lengths, from the middles of the histogram's bins."""
    edges, counts = np.array(histogram["bins"]), np.array(histogram["counts"])
    middles = (edges[:-1] + edges[1:]) / 2.0
    mean = np.average(middles, weights=counts)
    deviation = np.sqrt(np.average((middles - mean) ** 2, weights=counts))
    return {"n_request": float(counts.sum()), "length_variation": float(deviation / mean)}
