"""Published step times of Megatron-LM, which no fit reads. Decision 24 compares variants of the learner on them.

``python -m research.megatron_tables`` prints published and estimated times. The times are those of the judge campaign
``megatron_papers``; memory is that of V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
Models", 2022, figure 1, as it stands in calculon's ``validation.py``.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from roofcast.data.job_campaigns import job_catalog, load_job_judges
from roofcast.data.specs import ModelSpec
from roofcast.features.jobs.plan_enumeration import PlanChoice, choose_plans
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.job_coefficients import DEFAULT_TRAINING_COEFFICIENTS, StepCoefficients
from roofcast.features.jobs.step.job_memory import estimate_memory
from roofcast.features.queries import FloatArray

ACTIVATION_GIB = (
    # GiB of activations without recomputation, and selective with sequence parallelism, on the first stage
    (59.25, 9.5625), (66.84375, 12.3515625), (114.0234375, 23.076171875), (131.25, 26.5625),
)  # fmt: skip
STATE_GIB = (45.5625, 45.5625, 31.640625, 32.958984375)
"""Korthikanti, figure 1: 22, 175, 530 and 1,008 billion weights."""


def korthikanti_rows() -> tuple[pd.DataFrame, Mapping[str, ModelSpec]]:
    """Return table 5 as rows of the training schema, with its models: full and selective recomputation by turns."""
    return _rows("Korthikanti")


def narayanan_rows() -> tuple[pd.DataFrame, Mapping[str, ModelSpec]]:
    """Return table 1 as rows of the training schema, with its models."""
    return _rows("Narayanan")


def _rows(author: str) -> tuple[pd.DataFrame, Mapping[str, ModelSpec]]:
    rows = load_job_judges()
    rows = rows[rows["note"].str.startswith(author)]
    return rows.sort_values(["n_accelerator", "recomputation"], ignore_index=True), job_catalog().models


def estimate(
    rows: pd.DataFrame, models: Mapping[str, ModelSpec], c: StepCoefficients = DEFAULT_TRAINING_COEFFICIENTS
) -> PlanChoice:
    """Return the estimate of the rows; micro-batches that are not stated are the fastest that fit."""
    jobs = build_jobs(rows, models, job_catalog().accelerators)
    return choose_plans(jobs, c)


def time_errors(
    rows: pd.DataFrame, models: Mapping[str, ModelSpec], c: StepCoefficients = DEFAULT_TRAINING_COEFFICIENTS
) -> FloatArray:
    """Return estimated over published step time, less 1."""
    choice = estimate(rows, models, c)
    return np.asarray(choice.time.total_s / rows["step_time_s"].to_numpy(float) - 1.0)


def main() -> None:
    """Print published and estimated values."""
    for name, (rows, models) in (("Korthikanti", korthikanti_rows()), ("Narayanan", narayanan_rows())):
        choice = estimate(rows, models)
        error = choice.time.total_s / rows["step_time_s"].to_numpy(float) - 1.0
        shown = rows[["model", "n_accelerator", "recomputation", "step_time_s"]].assign(
            estimated_s=choice.time.total_s.round(2), error=error.round(3),
            micro_batch=choice.runs.plan.micro_batch, vp=choice.runs.plan.vp,
            memory_gib=(estimate_memory(choice.runs).allocated / 2**30).round(1),
        )  # fmt: skip
        print(name, shown.to_string(), f"mean |error| {np.abs(error).mean():.3f}", sep="\n")


if __name__ == "__main__":
    main()
