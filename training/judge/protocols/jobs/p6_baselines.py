"""Baselines of P6: constant MFU, the nearest run, trees without the estimate, the estimate without a fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from roofcast.features.jobs.plan_enumeration import StatedPlan
from roofcast.training.jobs.job_table import JobTable
from roofcast.training.learner.boosted_trees import ResidualRegressor

FloatArray = npt.NDArray[np.float64]

CONVENTIONAL_MFU: Final = 0.4
"""Model FLOP utilisation that rules of thumb assume."""

_MODEL: Final = (
    "n_layer", "hidden_size", "n_expert", "n_expert_per_token", "vocab_size", "n_param", "n_param_expert",
)  # fmt: skip
_JOB: Final = (
    "n_accelerator", "n_token", "n_global_batch", "is_frozen", "is_quantised", "is_flash", "is_eight_bit",
)  # fmt: skip
_HARDWARE: Final = ("flop_per_s", "bandwidth_byte_per_s", "memory_byte", "link_byte_per_s", "network_byte_per_s")


@dataclass(frozen=True)
class RunPrediction:
    """Prediction of runs, each of shape (n_row,), NaN without an answer.

    - `rate`: Tokens per second and accelerator.
    - `memory`: Peak memory of an accelerator, in bytes.
    - `p_out_of_memory`: Probability that the run does not fit, or 0 and 1.
    - `low`, `high`: Limits of the 90 % interval of ``throughput`` and ``memory``; empty for methods without
      intervals.
    """

    rate: FloatArray
    memory: FloatArray
    p_out_of_memory: FloatArray
    low: Mapping[str, FloatArray] = field(default_factory=dict)
    high: Mapping[str, FloatArray] = field(default_factory=dict)


RunMethod = Callable[[JobTable, JobTable], RunPrediction]
"""Predicts the second rows from the first, without reading the outcomes of the second."""


def constant_mfu(train: JobTable, queries: JobTable) -> RunPrediction:
    """Predict the median MFU of the training rows; every run fits."""
    return _of_mfu(queries, float(np.nanmedian(train.measured_rate / train.peak_token_per_s)))


def conventional_mfu(_train: JobTable, queries: JobTable) -> RunPrediction:
    """Predict an MFU of `CONVENTIONAL_MFU`; every run fits."""
    return _of_mfu(queries, CONVENTIONAL_MFU)


def _of_mfu(queries: JobTable, mfu: float) -> RunPrediction:
    blank = np.full(len(queries.measurements), np.nan)
    return RunPrediction(mfu * queries.peak_token_per_s, blank, np.zeros(len(blank)))


def nearest_measured(train: JobTable, queries: JobTable) -> RunPrediction:
    """Predict MFU, memory and fit of the nearest run that has them, by standardised logarithms of descriptors."""
    x, q = np.arcsinh(describe(train)), np.arcsinh(describe(queries))

    def carry(values: FloatArray) -> FloatArray:
        known = np.isfinite(values)
        if not known.any():
            return np.full(len(q), np.nan)
        neighbour = make_pipeline(StandardScaler(), KNeighborsRegressor(n_neighbors=1))
        return np.asarray(neighbour.fit(x[known], values[known]).predict(q), dtype=np.float64)

    mfu = carry(train.measured_rate / train.peak_token_per_s)
    return RunPrediction(mfu * queries.peak_token_per_s, carry(train.measured_memory), carry(train.is_out_of_memory))


def raw_trees(train: JobTable, queries: JobTable) -> RunPrediction:
    """Predict by gradient boosting on raw descriptors of model, hardware and plan."""
    x, q = describe(train), describe(queries)

    def boost(values: FloatArray) -> FloatArray:
        known = np.isfinite(values)
        if not known.any():
            return np.full(len(q), np.nan)
        return np.asarray(ResidualRegressor().fit(x[known], values[known]).predict(q), dtype=np.float64)

    with np.errstate(divide="ignore"):
        rate, memory = np.exp(boost(np.log(train.measured_rate))), np.exp(boost(np.log(train.measured_memory)))
    return RunPrediction(rate, memory, np.clip(boost(train.is_out_of_memory), 0.0, 1.0))


def analytic_priors(_train: JobTable, queries: JobTable) -> RunPrediction:
    """Predict by the analytic core with its shipped coefficients; an unknown plan is the fastest that fits."""
    return RunPrediction(queries.estimated_rate, queries.estimated_memory, (~queries.choice.fits).astype(np.float64))


def states_alone(_train: JobTable, queries: JobTable) -> RunPrediction:
    """Predict that a run fits where weights, gradients and optimizer states do; nothing else."""
    choice = queries.choice
    first = choice.memory.first
    states = first.weights + first.gradients + first.optimizer
    blank = np.full(len(queries.measurements), np.nan)
    return RunPrediction(blank, states + 0.0 * blank, (states > choice.runs.hardware.memory_byte).astype(float))


METHODS: Final[Mapping[str, RunMethod]] = {
    "analytic_priors": analytic_priors,
    "raw_trees": raw_trees,
    "nearest_measured": nearest_measured,
    "constant_mfu": constant_mfu,
    "conventional_mfu": conventional_mfu,
    "states_alone": states_alone,
}
"""Baselines by name."""


def describe(rows: JobTable) -> FloatArray:
    """Return descriptors of model, hardware, job and stated plan: shape (n_row, n_descriptor), 0 where unknown."""
    n_row = len(rows.measurements)
    parts = [(rows.jobs.model, _MODEL), (rows.jobs.hardware, _HARDWARE), (rows.jobs.job, _JOB)]
    parts.append((rows.jobs.stated, tuple(f.name for f in fields(StatedPlan))))
    columns = [np.broadcast_to(getattr(part, name), n_row) for part, names in parts for name in names]
    table = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    return np.nan_to_num(np.column_stack([table, rows.peak_token_per_s]), posinf=0.0, neginf=0.0)
