"""Predictor of training jobs: tokens per second, peak memory and P(fits), each with an interval."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.training_campaigns import training_catalog
from roofcast.features.arrays import FloatArray
from roofcast.features.training.plans import USABLE_RATIO
from roofcast.training.learner.error_distribution import GroupedConformal
from roofcast.training.training_jobs.job_table import (
    JobTable,
    build_job_table,
    memory_of_kind,
    rate_per_accelerator,
)

BoolArray = npt.NDArray[np.bool_]

METRICS: Final = ("rate", "memory")


@dataclass(frozen=True)
class TrainingJobPrediction:
    """Prediction of training jobs: arrays of shape (n_job,).

    Parameters
    ----------
    token_per_s_per_accelerator
        Tokens per second of one accelerator, the geometric middle of the interval of the asked coverage.
    peak_memory_byte
        Peak memory of an accelerator; of the kind that the job's `memory_kind` names, else reserved by the allocator.
    p_fits
        Probability that the job runs without exhausting the memory of an accelerator.
    outside
        Whether the job is far from everything that was measured.
    """

    token_per_s_per_accelerator: FloatArray
    token_per_s_per_accelerator_low: FloatArray
    token_per_s_per_accelerator_high: FloatArray
    peak_memory_byte: FloatArray
    peak_memory_byte_low: FloatArray
    peak_memory_byte_high: FloatArray
    p_fits: FloatArray
    outside: BoolArray


@dataclass
class TrainingJobPredictor:
    """Analytic core with intervals from its errors on shipped training runs.

    Attributes
    ----------
    conformal_
        Distribution of absolute log errors by metric.
    references_
        Own runs.
    """

    conformal_: dict[str, GroupedConformal] = field(default_factory=dict)
    references_: pd.DataFrame | None = None

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Fit to rows of `roofcast.data.training_campaigns.load_training_campaigns`; return the predictor."""
        table = build_job_table(measurements.reset_index(drop=True), training_catalog())
        owners = pd.Series(table.owner)
        for metric, error in log_errors(table).items():
            self.conformal_[metric] = GroupedConformal(np.abs(error), owners)
        return self

    def predict(
        self, jobs: pd.DataFrame, *, coverage: float = 0.9, catalog: Catalog | None = None
    ) -> TrainingJobPrediction:
        """Return the prediction of jobs; blanks of the plan are the fastest that fits.

        Parameters
        ----------
        jobs
            Columns of `roofcast.data.measurements.training_schema.TRAINING_CONFIG_COLUMNS`; absent ones are blank.
        coverage
            Probability that a measurement lies inside the interval.
        catalog
            Holds the models and accelerators of the jobs; None for the training catalogue.
        """
        table = build_job_table(jobs, catalog or training_catalog())
        rate = rate_per_accelerator(table.runs, table.time)
        memory = memory_of_kind(table.memory, table.memory_kind)
        room = np.log(USABLE_RATIO * table.runs.hardware.memory_byte / table.memory.device)
        width = {metric: np.exp(self.conformal_[metric].quantile(coverage)) for metric in METRICS}
        return TrainingJobPrediction(
            rate, rate / width["rate"], rate * width["rate"],
            memory, memory / width["memory"], memory * width["memory"],
            self.conformal_["memory"].p_below(room), np.zeros(len(table), dtype=bool),
        )  # fmt: skip

    def with_references(self, measurements: pd.DataFrame) -> Self:
        """Return the predictor that also knows own runs, without a new fit; the original is unchanged."""
        return replace(self, references_=measurements)


def log_errors(table: JobTable) -> dict[str, FloatArray]:
    """Return log(measured / estimated) of rates and peak memory: shapes (n_row,), NaN where nothing was measured."""
    rate = table.number("throughput_token_per_s") / table.runs.job.n_accelerator
    memory = table.number("memory_byte_per_accelerator")
    return {
        "rate": np.log(rate / rate_per_accelerator(table.runs, table.time)),
        "memory": np.log(memory / memory_of_kind(table.memory, table.memory_kind)),
    }
