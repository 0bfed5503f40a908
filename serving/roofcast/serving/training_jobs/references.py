"""Own runs in a request, which condition the predictor of training jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.training_schema import TRAINING_OUTCOME_COLUMNS, TRAINING_SCHEMA
from roofcast.serving.training_jobs.rows import JOB_COLUMNS, job_table, parse_jobs
from roofcast.training.training_jobs import TrainingJobPredictor

OUTCOMES: Final = ("throughput_token_per_s", "step_time_s", "memory_byte_per_accelerator")
REFERENCE_COLUMNS: Final = {
    **JOB_COLUMNS,
    **{name: TRAINING_OUTCOME_COLUMNS[name] for name in OUTCOMES},
    "memory_kind": TRAINING_SCHEMA["memory_kind"],
}
"""Columns of a reference: those of a job, and what was measured; a step time needs length and global batch."""


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


def condition_on(
    predictor: TrainingJobPredictor, rows: Sequence[Mapping[str, Any]], catalog: Catalog
) -> TrainingJobPredictor:
    """Return the predictor that also knows own runs; itself if there are none.

    Raises
    ------
    InputError
        If a row is no job, lacks its length, or has no outcome; names the row.
    """
    if not rows:
        return predictor
    jobs, problems = parse_jobs(rows, catalog, REFERENCE_COLUMNS)
    for i, (job, problem) in enumerate(zip(jobs, problems, strict=True)):
        if problem is not None:
            raise InputError(f"references.{i}.{problem.field}".removesuffix("."), problem.message)
        _check_outcome(f"references.{i}", job)
    table = job_table(jobs, REFERENCE_COLUMNS)
    rate = table["n_global_batch_sequence"] * table["n_token_per_sequence"] / table["step_time_s"]
    known = table["throughput_token_per_s"].fillna(rate)
    return predictor.with_references(table.assign(throughput_token_per_s=known, **CONTEXT), catalog=catalog)


def _check_outcome(field: str, job: Mapping[str, Any]) -> None:
    if "n_token_per_sequence" not in job:
        raise InputError(f"{field}.n_token_per_sequence", "must be given")
    if not any(name in job for name in OUTCOMES):
        raise InputError(field, f"needs what was measured: {', '.join(OUTCOMES)}")
    if "step_time_s" in job and "throughput_token_per_s" not in job and "n_global_batch_sequence" not in job:
        raise InputError(f"{field}.n_global_batch_sequence", "must be given with step_time_s")
