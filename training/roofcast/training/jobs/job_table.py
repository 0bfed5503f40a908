"""Training jobs with their plans, estimates and groups: what the predictor reads of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.features.jobs.frameworks import framework_family
from roofcast.features.jobs.plan_enumeration import PlanChoice, choose_plans
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.job_memory import MEMORY_KINDS, JobMemory
from roofcast.features.jobs.step.step import JobTime, throughput_token_per_s
from roofcast.features.queries import FloatArray, RowIndex, take_rows
from roofcast.training.dataset.job_runs import JobRunRows
from roofcast.training.dataset.stacks import stack_owners

DEFAULT_KIND: Final = "reserved"
"""Kind of memory of a source that states none."""


@dataclass(frozen=True)
class JobTable:
    """Jobs with the fastest plans that fit, by the priors of the core; arrays have shape (n_job,).

    Parameters
    ----------
    jobs
        Columns of the training schema; absent ones are blank.
    choice
        Plans, and what the priors of the core estimate of them.
    lineage, owner
        Fold group of the model, and owner of the stack; an empty owner is nobody who was measured.
    """

    jobs: pd.DataFrame
    choice: PlanChoice
    lineage: npt.NDArray[np.object_]
    owner: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.jobs)

    def take(self, rows: RowIndex) -> Self:
        """Return a subset of the jobs."""
        choice = take_rows(self.choice, rows)
        return type(self)(self.jobs.iloc[rows], choice, self.lineage[rows], self.owner[rows])

    @property
    def runs(self) -> JobRuns:
        """Jobs with their plans."""
        return self.choice.runs

    @property
    def time(self) -> JobTime:
        """Estimated time of the step."""
        return self.choice.time

    @property
    def memory(self) -> JobMemory:
        """Estimated memory."""
        return self.choice.memory

    def text(self, name: str) -> npt.NDArray[np.object_]:
        """Return a column of text; empty where it is blank."""
        if name not in self.jobs:
            return np.full(len(self), "", dtype=object)
        return self.jobs[name].fillna("").to_numpy(dtype=object)

    def number(self, name: str) -> FloatArray:
        """Return a column of numbers; NaN where it is blank."""
        if name not in self.jobs:
            return np.full(len(self), np.nan)
        return self.jobs[name].to_numpy(dtype=np.float64)

    @property
    def memory_kind(self) -> npt.NDArray[np.object_]:
        """Kind of memory of each row."""
        kind = self.text("memory_kind")
        return np.where(kind == "", DEFAULT_KIND, kind)


def build_job_table(jobs: pd.DataFrame, catalog: Catalog) -> JobTable:
    """Return the table of jobs whose models and accelerators `catalog` holds."""
    choice = choose_plans(build_jobs(jobs, catalog.models, catalog.accelerators))
    lineage = jobs["model"].map({name: spec.fold_group for name, spec in catalog.models.items()})
    blank = pd.Series("", index=jobs.index)
    stack, campaign = (jobs[name].fillna("") if name in jobs else blank for name in ("stack", "campaign"))
    owner = stack_owners(stack.mask(stack == "", campaign))
    return JobTable(jobs, choice, lineage.to_numpy(dtype=object), owner.to_numpy(dtype=object))


def table_of_runs(rows: JobRunRows) -> JobTable:
    """Return the table of measured runs."""
    lineage, owner = rows.groups.to_numpy(dtype=object), rows.owners.to_numpy(dtype=object)
    return JobTable(rows.measurements, rows.choice, lineage, owner)


def framework_families(runs: pd.DataFrame) -> pd.Series:
    """Return the family of each run's framework."""
    return runs["framework"].map({name: framework_family(str(name)) for name in runs["framework"].unique()})


def rate_per_accelerator(runs: JobRuns, time: JobTime) -> FloatArray:
    """Return tokens per second and accelerator."""
    return throughput_token_per_s(runs, time) / runs.job.n_accelerator


def memory_of_kind(memory: JobMemory, kind: npt.NDArray[np.object_]) -> FloatArray:
    """Return the memory of the kind that each row names: shape (n_job,)."""
    return np.select([kind == name for name in MEMORY_KINDS], [getattr(memory, name) for name in MEMORY_KINDS])
