"""Own runs in a request, which condition the predictor of training jobs."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, join_errors
from roofcast.data.measurements.job_schema import TRAINING_OUTCOME_COLUMNS, TRAINING_SCHEMA
from roofcast.features.jobs.plan_enumeration import choose_plans
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.step import mfu_ratio, throughput_token_per_s
from roofcast.features.queries import FloatArray
from roofcast.serving.jobs.rows import JOB_COLUMNS, job_table, parse_jobs
from roofcast.training.jobs.job_predictor import JobPredictor

OUTCOMES: Final = ("throughput_token_per_s", "step_time_s", "memory_byte_per_accelerator")
REFERENCE_COLUMNS: Final = {
    **JOB_COLUMNS,
    **{name: TRAINING_OUTCOME_COLUMNS[name] for name in OUTCOMES},
    "memory_kind": TRAINING_SCHEMA["memory_kind"],
}
"""Columns of a reference: those of a job, and what was measured; a step time needs length and global batch."""

MAX_RATIO: Final = 10.0
"""Ratio of a reference's rate to the estimate, or inverse, above which its unit counts as wrong: judgement."""

CONTEXT: Final = {
    "status": "ok",
    "campaign": "own",
    "stack": "",
    "date": "",
    "software": "",
    "derived": "",
    "note": "",
}
"""Context columns of own runs, which are of one stack that nobody else measured."""


def condition_on(predictor: JobPredictor, rows: Sequence[Mapping[str, Any]], catalog: Catalog) -> JobPredictor:
    """Return the predictor conditioned on own runs; itself if there are none.

    Raises `InputError` if a row is not a job, lacks its sequence length or an outcome, or has an impossible rate;
    names the row.
    """
    if not rows:
        return predictor
    jobs, problems = parse_jobs(rows, catalog, REFERENCE_COLUMNS, is_measured=True)
    errors = [
        InputError(f"references.{i}.{one.field}".removesuffix("."), one.message)
        for i, problem in enumerate(problems)
        if problem is not None
        for one in (problem, *problem.further)
    ]
    if errors:
        raise join_errors(errors)
    for i, job in enumerate(jobs):
        _check_outcome(f"references.{i}", job)
    table = job_table(jobs, REFERENCE_COLUMNS)
    rate = table["n_global_batch_sequence"] * table["n_token_per_sequence"] / table["step_time_s"]
    known = table["throughput_token_per_s"].fillna(rate)
    _check_rates(table, known.to_numpy(dtype=float), catalog)
    return predictor.with_references(table.assign(throughput_token_per_s=known, **CONTEXT), catalog=catalog)


def _check_rates(table: pd.DataFrame, rate: FloatArray, catalog: Catalog) -> None:
    choice = choose_plans(build_jobs(table, catalog.models, catalog.accelerators))
    ratio = rate / throughput_token_per_s(choice.runs, choice.time)
    mfu = ratio * mfu_ratio(choice.runs, choice.time)
    for i in np.flatnonzero((mfu > 1.0) | (ratio > MAX_RATIO) | (ratio < 1.0 / MAX_RATIO)).tolist():
        name = "step_time_s" if np.isnan(table["throughput_token_per_s"].iloc[i]) else "throughput_token_per_s"
        text = f"{rate[i]:.4g} tokens/s of all accelerators together are {ratio[i]:.3g} times the estimate"
        raise InputError(f"references.{i}.{name}", f"{text}, at {mfu[i]:.3g} of the peak; check the unit")


def _check_outcome(field: str, job: Mapping[str, Any]) -> None:
    if "n_token_per_sequence" not in job:
        raise InputError(f"{field}.n_token_per_sequence", "must be given")
    if not any(name in job for name in OUTCOMES):
        raise InputError(field, f"must state what was measured, one of {', '.join(OUTCOMES)}")
    if "step_time_s" in job and "throughput_token_per_s" not in job and "n_global_batch_sequence" not in job:
        raise InputError(f"{field}.n_global_batch_sequence", "must be given with step_time_s")
