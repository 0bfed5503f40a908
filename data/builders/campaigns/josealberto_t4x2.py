"""vLLM on two T4 of a Kaggle machine: Qwen2.5-7B over concurrency, one table of requests a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of, rows_by_statistic
from roofcast.data.importers.runs import statistics_of, variation_of

RAW: Final = Path("campaigns_2026_11") / "raw" / "josealberto_t4x2" / "results" / "exp03_batching_7b"

N_PROMPT_TOKEN: Final = 12
"""Mean of words and marks of the client's five prompts (bench/benchmark.py)."""


def build_josealberto_t4x2(root: Path) -> BuildResult:
    """Build the campaign from its tables under `root`.

    Raises
    ------
    SchemaError
        If a file is missing.
    """
    builder = CampaignBuilder("josealberto_t4x2", stack="josealbertosantana7")
    for _, cells in records_of(root / RAW / "summary.csv"):
        name = f"{cells['label']}_c{cells['concurrency']}.csv"
        requests = [row for _, row in records_of(root / RAW / name) if row["ok"] == "True"]
        builder.add(name, _rows(cells, requests))
    return builder.build()


def _rows(run: dict[str, str], requests: list[dict[str, str]]) -> list[Row]:
    """Return the rows of a run. TTFT and E2E latency include a tunnel through the internet and are left out."""
    lengths = np.array([number_of(cells["output_tokens"]) for cells in requests])
    gaps_s = np.array([number_of(cells["tpot_s"]) for cells in requests])
    n_failed = number_of(run["failed"])
    common: Row = {
        "model": "Qwen/Qwen2.5-7B-Instruct", "accelerator": "nvidia-t4-16gb", "n_accelerator": 2, "n_node": 1,
        "tp": 2, "pp": 1, "dp": 1, "engine": "vllm", "weight_precision": "fp16", "max_context_token": 8192,
        "n_input_token": N_PROMPT_TOKEN, "n_output_token": float(lengths.mean()),
        "length_variation": variation_of(lengths),
        "load": "closed_loop", "concurrency": number_of(run["concurrency"]),
        "n_request": number_of(run["num_prompts"]), "n_failed": n_failed, "duration_s": number_of(run["wall_s"]),
        "date": "2026-06-18",
    }  # fmt: skip
    outcomes: dict[str, Row] = {name: dict(cells) for name, cells in statistics_of({"tpot_s": gaps_s}).items()}
    outcomes["mean"]["output_throughput_token_per_s"] = number_of(run["throughput_tok_s"])
    return rows_by_statistic(common, outcomes)
