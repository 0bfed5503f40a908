"""Runs for tests: one row of the training schema with valid defaults."""

from typing import Any

import pandas as pd

from roofcast.data.job_campaigns import job_catalog
from roofcast.features.jobs.plan_enumeration import Jobs, choose_plans
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.run_table import build_jobs

ROW: dict[str, Any] = {
    "model": "meta-llama/Llama-2-7b-hf", "accelerator": "nvidia-a100-sxm-80gb", "n_accelerator": 8,
    "framework": "megatron-lm", "method": "pretrain", "compute_precision": "bf16", "tp": 1, "pp": 1, "cp": 1,
    "sharding": "zero1", "recomputation": "none", "n_micro_batch_sequence": 1, "n_global_batch_sequence": 64,
    "n_token_per_sequence": 4096,
}  # fmt: skip


def table_of(*changes: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, **change} for change in changes])


def jobs_of(*changes: dict[str, Any], has_offload: bool = False) -> Jobs:
    catalog = job_catalog()
    return build_jobs(table_of(*changes), catalog.models, catalog.accelerators, has_offload=has_offload)


def runs_of(*changes: dict[str, Any]) -> JobRuns:
    return choose_plans(jobs_of(*changes)).runs
