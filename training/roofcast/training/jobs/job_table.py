"""Training jobs and measured runs with their plans, estimates, groups and outcomes."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.job_campaigns import (
    FIRST_TRAINING_CAMPAIGNS,
    job_catalog,
    load_job_campaigns,
    load_job_judges,
)
from roofcast.features.jobs.frameworks import framework_family
from roofcast.features.jobs.plan_enumeration import Jobs, PlanChoice, choose_plans
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.flops import model_flop
from roofcast.features.jobs.step.job_memory import MEMORY_KINDS, JobMemory
from roofcast.features.jobs.step.step import JobTime, throughput_token_per_s
from roofcast.features.queries import FloatArray, RowIndex, take_rows
from roofcast.training.dataset.stacks import stack_owners

BoolArray = npt.NDArray[np.bool_]

DEFAULT_KIND: Final = "reserved"
"""Kind of memory of a source that states none."""

OUT_OF_MEMORY: Final = "out_of_memory"


@dataclass(frozen=True)
class JobTable:
    """Jobs with the fastest plans that fit, by the priors of the core; arrays and series have shape (n_job,).

    - `measurements`: Columns of the training schema; absent ones are blank.
    - `jobs`: Their configurations, joined with the catalogue.
    - `choice`: Plans, and what the priors of the core estimate of them.
    - `groups`, `owners`: Lineage of the model, the fold group of its spec, and owner of the stack; a blank owner is
      nobody who was measured.
    - `is_decoder`: Whether every layer sees earlier tokens alone; encoders are not judged.
    """

    measurements: pd.DataFrame
    jobs: Jobs
    choice: PlanChoice
    groups: pd.Series
    owners: pd.Series
    is_decoder: BoolArray

    def __len__(self) -> int:
        return len(self.measurements)

    def take(self, rows: RowIndex) -> Self:
        """Return a subset of the jobs."""
        return type(self)(
            self.measurements.iloc[rows].reset_index(drop=True),
            take_rows(self.jobs, rows),
            take_rows(self.choice, rows),
            self.groups.iloc[rows].reset_index(drop=True),
            self.owners.iloc[rows].reset_index(drop=True),
            self.is_decoder[rows],
        )

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

    @property
    def estimated_rate(self) -> FloatArray:
        """Estimated tokens per second and accelerator."""
        return throughput_token_per_s(self.runs, self.time) / self.runs.job.n_accelerator

    @property
    def estimated_memory(self) -> FloatArray:
        """Estimated memory of an accelerator in bytes, of the kind that each row names."""
        kind = self.memory_kind
        return np.select([kind == n for n in MEMORY_KINDS], [getattr(self.memory, n) for n in MEMORY_KINDS])

    def text(self, name: str) -> npt.NDArray[np.object_]:
        """Return a column of text; empty where it is blank."""
        if name not in self.measurements:
            return np.full(len(self), "", dtype=object)
        return self.measurements[name].fillna("").to_numpy(dtype=object)

    def number(self, name: str) -> FloatArray:
        """Return a column of numbers; NaN where it is blank."""
        if name not in self.measurements:
            return np.full(len(self), np.nan)
        return self.measurements[name].to_numpy(dtype=np.float64)

    @property
    def memory_kind(self) -> npt.NDArray[np.object_]:
        """Kind of memory of each row."""
        kind = self.text("memory_kind")
        return np.where(kind == "", DEFAULT_KIND, kind)

    @property
    def measured_rate(self) -> FloatArray:
        """Tokens per second and accelerator; NaN where no rate is judged.

        A rate counts if the length of the sequences is known and samples are not padded: else its work is unknown.
        """
        is_sound = self._is_known & (self.text("packing") != "padded")
        return np.where(is_sound, self.number("throughput_token_per_s") / self.number("n_accelerator"), np.nan)

    @property
    def measured_memory(self) -> FloatArray:
        """Peak memory of an accelerator in bytes; NaN where none is judged, or the length is unknown."""
        is_sound = self._is_known & (self.text("status") == "ok")
        return np.where(is_sound, self.number("memory_byte_per_accelerator"), np.nan)

    @property
    def is_out_of_memory(self) -> FloatArray:
        """1 for runs that did not fit, 0 for those that ran; NaN without micro batch or length."""
        status, is_known = self.text("status"), self._is_known & np.isfinite(self.number("n_micro_batch_sequence"))
        return np.where(is_known & (status != "failed"), (status == OUT_OF_MEMORY).astype(float), np.nan)

    @property
    def _is_known(self) -> BoolArray:
        return np.asarray(self.is_decoder & ~np.isnan(self.number("n_token_per_sequence")))

    @property
    def is_first(self) -> BoolArray:
        """Whether the campaign is one of those that the headline figures judge."""
        return np.asarray(self.measurements["campaign"].isin(FIRST_TRAINING_CAMPAIGNS), dtype=bool)

    @property
    def peak_token_per_s(self) -> FloatArray:
        """Tokens per second and accelerator at which the model's operations take the whole peak."""
        flop = model_flop(self.jobs.model, self.jobs.job)
        return np.asarray(self.jobs.hardware.flop_per_s / flop * np.ones(len(self)), dtype=np.float64)


def build_job_table(rows: pd.DataFrame, catalog: Catalog | None = None) -> JobTable:
    """Return the table of jobs or validated runs whose models and accelerators `catalog` holds.

    Without a catalogue it is that of the training campaigns.
    """
    catalog = catalog or job_catalog()
    rows = rows.reset_index(drop=True)
    jobs = build_jobs(rows, catalog.models, catalog.accelerators)
    names = {name: catalog.models[name] for name in rows["model"].unique()}
    blank = pd.Series("", index=rows.index)
    stack, campaign = (rows[name].fillna("") if name in rows else blank for name in ("stack", "campaign"))
    is_decoder = rows["model"].map({name: spec.n_encoder_layer == 0 for name, spec in names.items()})
    return JobTable(
        rows,
        jobs.of_table,
        choose_plans(jobs),
        rows["model"].map({name: spec.fold_group for name, spec in names.items()}).rename("group"),
        stack_owners(stack.mask(stack == "", campaign)).rename("owner"),
        is_decoder.to_numpy(dtype=bool) & (np.broadcast_to(jobs.of_table.model.is_causal, len(rows)) > 0),
    )


def load_job_rows() -> JobTable:
    """Return the rows of all shipped training campaigns, without the judges."""
    return build_job_table(load_job_campaigns())


def load_job_judge_rows() -> JobTable:
    """Return the published runs that judge alone."""
    return build_job_table(load_job_judges())


def framework_families(runs: pd.DataFrame) -> pd.Series:
    """Return the family of each run's framework."""
    return runs["framework"].map({name: framework_family(str(name)) for name in runs["framework"].unique()})
