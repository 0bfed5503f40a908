"""Ratios of measured training jobs to the estimate, and the columns of `ALIKE` by which limits group them.

The framework stands in the column of the engine, the method in that of the kind of load.
"""

from typing import Final

import pandas as pd

from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.training.jobs.job_predictor import MEMORY, RATE, log_errors
from roofcast.training.jobs.job_table import JobTable, build_job_table, framework_families

METRICS: Final = {RATE: "throughput_token_per_s", MEMORY: "memory_byte_per_accelerator"}
"""Column of each metric, which reasons name."""


def run_ratios(rows: JobTable) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the columns of `ALIKE`, stack and campaign of runs, and log(measurement / estimate) by metric."""
    runs, errors = rows.measurements, log_errors(rows)
    alike = runs[["accelerator", "stack", "campaign"]].assign(engine=framework_families(runs), load=runs["method"])
    return alike, pd.DataFrame({METRICS[name]: values for name, values in errors.items()})


def load_shipped_run_ratios() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return `run_ratios` of the shipped training campaigns, computed in some seconds."""
    return run_ratios(build_job_table(load_job_campaigns(), job_catalog()))
