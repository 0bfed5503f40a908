"""Quarantine of imported runs: those whose ratio to the estimate lies outside what others measured on alike stacks.

The limits are those of `roofcast.training.lifecycle.quarantine`, with the framework in place of the engine and the
method in place of the kind of load.
"""

from __future__ import annotations

import functools
from typing import Final

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.training.dataset.job_runs import JobRunRows, build_job_rows
from roofcast.training.jobs.job_table import framework_families, table_of_runs
from roofcast.training.jobs.predictor import MEMORY, RATE, log_errors
from roofcast.training.lifecycle.quarantine import RatioLimits

METRICS: Final = {RATE: "throughput_token_per_s", MEMORY: "memory_byte_per_accelerator"}
"""Column of each metric, which reasons name."""


def run_ratios(rows: JobRunRows) -> pd.DataFrame:
    """Return log(measurement / estimate) by column; NaN where nothing was measured: shape (n_run, n_metric)."""
    errors = log_errors(table_of_runs(rows), rows)
    return pd.DataFrame({METRICS[name]: values for name, values in errors.items()})


def _alike(rows: JobRunRows) -> pd.DataFrame:
    runs = rows.measurements
    return runs[["accelerator", "stack", "campaign"]].assign(engine=framework_families(runs), load=runs["method"])


@functools.cache
def shipped_run_limits() -> RatioLimits:
    """Return the limits by the shipped training campaigns; the first call takes seconds."""
    rows = build_job_rows(load_job_campaigns(), job_catalog())
    return RatioLimits.fit(_alike(rows), run_ratios(rows))


def run_quarantine_reasons(runs: pd.DataFrame, catalog: Catalog) -> pd.Series:
    """Return why each run needs a confirmation before training uses it, blank if it does not: index of `runs`."""
    if runs.empty:
        return pd.Series("", index=runs.index, dtype=object)
    rows = build_job_rows(runs, catalog)
    return pd.Series(shipped_run_limits().reasons(_alike(rows), run_ratios(rows)).to_numpy(), index=runs.index)
