"""Builders of measurements with valid defaults."""

import multiprocessing
import random
from pathlib import Path
from typing import Any

import pandas as pd

from roofcast.data.measurements.validation import validate_measurements

SAMPLES = Path(__file__).parent / "samples"
LLM_PILOT_SAMPLES = SAMPLES / "llm_pilot"

PROCESSES = multiprocessing.get_context("forkserver")
"""Context whose processes have imported the store already, which saves seconds each."""
PROCESSES.set_forkserver_preload(["roofcast.data.store.measurement_store", __name__])


def a_row(**changes: Any) -> dict[str, Any]:
    """Return the cells of one measurement."""
    return {
        "model": "meta-llama/Llama-2-7b-hf",
        "accelerator": "nvidia-a10-24gb",
        "n_accelerator": 1,
        "n_input_token": 128,
        "n_output_token": 32,
        "concurrency": 4,
        "statistic": "p50",
        "ttft_s": 0.25,
        "campaign": "ours",
    } | changes


def a_training_row(**changes: Any) -> dict[str, Any]:
    """Return the cells of one measured training job."""
    return {
        "model": "meta-llama/Llama-3.1-8B",
        "accelerator": "nvidia-h100-sxm-80gb",
        "n_accelerator": 8,
        "framework": "torchtitan",
        "method": "pretrain",
        "n_token_per_sequence": 4096,
        "n_global_batch_sequence": 128,
        "throughput_token_per_s": 60_000,
        "campaign": "ours",
    } | changes


def a_table(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return a table of the given rows, or of one."""
    return pd.DataFrame(list(rows) or [a_row()], dtype=object)


def many_rows(n_row: int, campaign: str = "ours") -> pd.DataFrame:
    """Return distinct measurements, validated."""
    rng = random.Random(0)  # noqa: S311
    rows = [
        a_row(concurrency=1 + i % 128, itl_s=rng.random(), note=f"row {i}", campaign=campaign) for i in range(n_row)
    ]
    return validate_measurements(pd.DataFrame(rows))
