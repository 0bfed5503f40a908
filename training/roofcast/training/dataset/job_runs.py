"""Measured training runs with what protocol P6 holds out and judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.job_campaigns import FIRST_TRAINING_CAMPAIGNS, job_catalog, load_job_campaigns, load_job_judges
from roofcast.features.jobs.plan_enumeration import Jobs, PlanChoice, choose_plans
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.flops import model_flop
from roofcast.features.queries import take_rows
from roofcast.training.dataset.stacks import name_stacks, stack_owners

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

OUT_OF_MEMORY: Final = "out_of_memory"


@dataclass(frozen=True)
class JobRunRows:
    """Training runs, the jobs of their configurations, and their groups; every series has the rows' order.

    Parameters
    ----------
    measurements
        Columns of the training schema.
    jobs
        Their configurations, joined with the catalogue.
    choice
        The fastest plan that fits of each, by the priors of the core.
    groups
        Lineage of the model, the fold group of its spec.
    owners
        Owner of the stack.
    is_decoder
        Whether every layer sees earlier tokens alone; encoders are not judged.
    """

    measurements: pd.DataFrame
    jobs: Jobs
    choice: PlanChoice
    groups: pd.Series
    owners: pd.Series
    is_decoder: BoolArray

    def take(self, rows: IndexArray) -> Self:
        """Return a subset of the rows."""
        return type(self)(
            self.measurements.iloc[rows].reset_index(drop=True),
            take_rows(self.jobs, rows),
            take_rows(self.choice, rows),
            self.groups.iloc[rows].reset_index(drop=True),
            self.owners.iloc[rows].reset_index(drop=True),
            self.is_decoder[rows],
        )

    @property
    def rate(self) -> FloatArray:
        """Tokens per second and accelerator; NaN where no rate is judged.

        A rate counts if the length of the sequences is known and samples are not padded: else its work is unknown.
        """
        m = self.measurements
        is_sound = self.is_decoder & m["n_token_per_sequence"].notna() & (m["packing"] != "padded")
        rate = m["throughput_token_per_s"] / m["n_accelerator"]
        return np.where(is_sound, rate.to_numpy(dtype=np.float64), np.nan)

    @property
    def memory(self) -> FloatArray:
        """Peak memory of an accelerator in bytes; NaN where none is judged, or the length is unknown."""
        m = self.measurements
        is_sound = self.is_decoder & m["n_token_per_sequence"].notna() & (m["status"] == "ok")
        return np.where(is_sound, m["memory_byte_per_accelerator"].to_numpy(dtype=np.float64), np.nan)

    @property
    def is_out_of_memory(self) -> FloatArray:
        """1 for runs that did not fit, 0 for those that ran; NaN without micro batch or length."""
        m = self.measurements
        is_known = self.is_decoder & m["n_token_per_sequence"].notna() & m["n_micro_batch_sequence"].notna()
        return np.where(is_known & (m["status"] != "failed"), (m["status"] == OUT_OF_MEMORY).astype(float), np.nan)

    @property
    def is_first(self) -> BoolArray:
        """Whether the campaign is one of those that the headline figures judge."""
        return np.asarray(self.measurements["campaign"].isin(FIRST_TRAINING_CAMPAIGNS), dtype=bool)

    @property
    def peak_token_per_s(self) -> FloatArray:
        """Tokens per second and accelerator at which the model's operations take the whole peak."""
        flop = model_flop(self.jobs.model, self.jobs.job)
        return np.asarray(self.jobs.hardware.flop_per_s / flop * np.ones(len(self.measurements)), dtype=np.float64)


def build_job_rows(measurements: pd.DataFrame, catalog: Catalog | None = None) -> JobRunRows:
    """Return the rows of a validated training table whose models and accelerators `catalog` holds.

    Without a catalogue it is that of the training campaigns.
    """
    catalog = catalog or job_catalog()
    rows = measurements.reset_index(drop=True)
    models = rows["model"].map(lambda name: catalog.models[name])
    jobs = build_jobs(rows, catalog.models, catalog.accelerators)
    is_decoder = np.broadcast_to(jobs.model.is_causal > 0, len(rows)).copy()
    return JobRunRows(
        rows,
        jobs,
        choose_plans(jobs),
        models.map(lambda spec: spec.fold_group).rename("group"),
        stack_owners(name_stacks(rows)).rename("owner"),
        is_decoder & models.map(lambda spec: spec.n_encoder_layer == 0).to_numpy(dtype=bool),
    )


def load_job_rows() -> JobRunRows:
    """Return the rows of all shipped training campaigns, without the judges."""
    return build_job_rows(load_job_campaigns())


def load_job_judge_rows() -> JobRunRows:
    """Return the published runs that judge alone."""
    return build_job_rows(load_job_judges())
