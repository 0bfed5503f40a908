"""Predictor of training jobs: tokens per second, peak memory and P(fits), each with an interval."""

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.job_campaigns import job_catalog
from roofcast.features.jobs.plan_enumeration import USABLE_RATIO, host_ratio
from roofcast.features.jobs.step.step import mfu_ratio
from roofcast.features.queries import BoolArray, FloatArray, RowIndex
from roofcast.training.dataset.stacks import is_uploaded, name_stacks
from roofcast.training.jobs.chip_order import chip_peers
from roofcast.training.jobs.held_out import ErrorRows, HeldOutErrors, LogErrorModel
from roofcast.training.jobs.job_effects import KeyArray, group_keys
from roofcast.training.jobs.job_features import is_plain, memory_columns, outside_range, rate_columns
from roofcast.training.jobs.job_table import JobTable, build_job_table
from roofcast.training.learner.ratio_model import Progress

RATE: Final = "rate"
MEMORY: Final = "memory"
COLUMNS: Final = {RATE: rate_columns, MEMORY: memory_columns}
LEARNS_UPLOADS: Final = {RATE: True, MEMORY: False}
"""Whether rows of API keys teach others: few stacks publish memory."""

CLASSED: Final = {RATE: True, MEMORY: False}
"""Whether ordinary trainers are a class of their own: errors of memory are of one size."""

HOST_LOG_SD: Final = 0.1
"""Deviation of the logarithm of the memory in use on the host, judgement: states follow from the plan, pinned buffers
and other processes do not."""

OWN: Final = ""
"""Owner of own runs, and of jobs whose owner nobody measured."""


@dataclass(frozen=True)
class JobPrediction:
    """Prediction of training jobs: arrays of shape (n_job,).

    - `token_per_s_per_accelerator`: Tokens per second of one accelerator, the geometric middle of the interval of the
      asked coverage, whose upper end is at most that of the peak: an MFU of 1.
    - `peak_memory_byte`: Peak memory of an accelerator; of the kind that the job's `memory_kind` names, else reserved
      by the allocator.
    - `p_fits`: Probability that the job runs without exhausting the memory of an accelerator, or of the host.
    - `outside`: Whether the job is far from everything that was measured.
    """

    token_per_s_per_accelerator: FloatArray
    token_per_s_per_accelerator_low: FloatArray
    token_per_s_per_accelerator_high: FloatArray
    peak_memory_byte: FloatArray
    peak_memory_byte_low: FloatArray
    peak_memory_byte_high: FloatArray
    p_fits: FloatArray
    outside: BoolArray


@dataclass(frozen=True)
class _LogError:
    mean: FloatArray
    sd: FloatArray
    half: FloatArray


class JobPredictor:
    """Analytic core times a learned correction, with intervals.

    - `models_`: Distribution of log errors, by metric.
    - `held_out_`: Held-out errors of the training rows, by metric; not stored.
    - `owners_`: Owners of the stacks of the training rows that no API key stored.
    - `limits_`: Least and greatest value of the columns of rates in these rows: shape (2, n_column).
    - `n_run_`: Measured rates in these rows, by accelerator.
    """

    models_: dict[str, LogErrorModel]
    held_out_: dict[str, HeldOutErrors]
    owners_: tuple[str, ...]
    limits_: FloatArray
    n_run_: dict[str, int]

    def fit(self, measurements: pd.DataFrame, *, catalog: Catalog | None = None) -> Self:
        """Fit to rows of `roofcast.data.job_campaigns.load_job_campaigns`; return the predictor.

        Rates of encoders, of padded samples, and of sequences of unknown length are not learnt from.
        """
        return self.fit_rows(build_job_table(measurements, catalog))

    def fit_rows(self, rows: JobTable, progress: Progress | None = None) -> Self:
        """Fit to rows with their plans; return the predictor."""
        self.held_out_, self.models_ = {}, {}
        for name, errors in metric_errors(rows).items():
            label = f"candidate, {name}, held-out lineages and stacks"
            learns = LEARNS_UPLOADS[name]
            held_out = HeldOutErrors.fit(errors.rows, learns_uploads=learns, progress=progress, label=label)
            self.held_out_[name], self.models_[name] = held_out, held_out.model
            if name == RATE:
                x = errors.rows.x[errors.rows.is_public]
                self.limits_ = np.array([x.min(axis=0), x.max(axis=0)])
                measured = rows.measurements["accelerator"].iloc[errors.index[errors.rows.is_public]]
                self.n_run_ = {str(one): int(n) for one, n in measured.value_counts().items()}
        self.owners_ = tuple(sorted(set(rows.owners[~is_uploaded(rows.owners)])))
        return self

    @property
    def highest_coverage(self) -> float:
        """Highest coverage that the number of measured stacks and lineages supports."""
        return min(model.highest_level for model in self.models_.values())

    def predict(self, jobs: pd.DataFrame, *, coverage: float = 0.9, catalog: Catalog | None = None) -> JobPrediction:
        """Return the prediction of jobs; blanks of the plan are the fastest that fits.

        Raises `OutOfRangeError` if `coverage` exceeds `highest_coverage`.

        - `jobs`: Columns of `roofcast.data.measurements.job_schema.TRAINING_CONFIG_COLUMNS`; absent ones are blank. A
          column `stack` may name a stack whose owner was measured; other jobs are of a stack that nobody measured, or
          of the references'.
        - `coverage`: Probability that a measurement lies inside the interval.
        - `catalog`: Holds the models and accelerators of the jobs; None for the training catalogue.
        """
        catalog = catalog or job_catalog()
        return self.predict_table(build_job_table(jobs, catalog), coverage=coverage, catalog=catalog)

    def predict_table(
        self, table: JobTable, *, coverage: float = 0.9, catalog: Catalog | None = None
    ) -> JobPrediction:
        """Return the prediction of jobs with their plans."""
        table = self._with_known_owners(table)
        keys = group_keys(table)
        rate, memory = (self._log_error(name, table, keys, coverage) for name in (RATE, MEMORY))
        roof = table.estimated_rate / mfu_ratio(table.runs, table.time)
        rate_value = np.minimum(self._in_chip_order(table, keys, rate.mean, catalog or job_catalog()), roof)
        memory_value = table.estimated_memory * np.exp(memory.mean)
        outside = outside_range(np.column_stack(list(rate_columns(table).values())), self.limits_)
        return JobPrediction(
            rate_value, rate_value * np.exp(-rate.half), np.minimum(rate_value * np.exp(rate.half), roof),
            memory_value, memory_value * np.exp(-memory.half), memory_value * np.exp(memory.half),
            self._p_fits(table, keys, memory), outside,
        )  # fmt: skip

    def with_references(self, measurements: pd.DataFrame, *, catalog: Catalog | None = None) -> Self:
        """Return the predictor that also knows own runs, without a new fit; the original is unchanged.

        Runs of an owner that nobody measured count as those of the stack that jobs ask about.
        """
        return self.with_reference_rows(build_job_table(measurements, catalog))

    def with_reference_rows(self, rows: JobTable) -> Self:
        """Return the predictor that also knows own runs with their plans."""
        table = self._with_known_owners(rows)
        keys, errors = group_keys(table), log_errors(rows)
        other = type(self)()
        other.__dict__.update(self.__dict__)
        other.models_ = dict(self.models_)
        for name, model in self.models_.items():
            known = np.isfinite(errors[name])
            if known.any():
                x = _matrix(name, table)[known]
                other.models_[name] = model.condition_on(x, keys[known], errors[name][known])
        return other

    def _with_known_owners(self, table: JobTable) -> JobTable:
        return replace(table, owners=table.owners.where(table.owners.isin(self.owners_), OWN))

    def _log_error(self, name: str, table: JobTable, keys: KeyArray, coverage: float) -> _LogError:
        model = self.models_[name]
        plain = is_plain(table)
        mean, sd = model.predict(_matrix(name, table), keys, plain)
        half = np.empty(len(table))
        for rows, conformal in model.distribution(keys, plain):
            half[rows] = conformal.quantile(coverage) * sd[rows]
        return _LogError(mean, sd, half)

    def _in_chip_order(self, table: JobTable, keys: KeyArray, mean: FloatArray, catalog: Catalog) -> FloatArray:
        model, rate = self.models_[RATE], table.estimated_rate * np.exp(mean)
        peers = chip_peers(table, catalog, self.n_run_, ~model.effects.knows_accelerator(keys))
        if peers is None:
            return rate
        mean, _ = model.predict(_matrix(RATE, peers.table), group_keys(peers.table), is_plain(peers.table))
        limit, own = peers.table.estimated_rate * np.exp(mean), rate[peers.rows]
        ordered = rate.copy()
        ordered[peers.rows] = np.where(peers.is_least, np.maximum(own, limit), np.minimum(own, limit))
        return ordered

    def _p_fits(self, table: JobTable, keys: KeyArray, memory: _LogError) -> FloatArray:
        with np.errstate(divide="ignore"):  # nothing on the host
            on_host = np.log(USABLE_RATIO / host_ratio(table.runs, table.memory))
        z = np.minimum((_room(table) - memory.mean) / memory.sd, on_host / HOST_LOG_SD)
        p = np.empty(len(table))
        for rows, conformal in self.models_[MEMORY].distribution(keys, is_plain(table)):
            p[rows] = conformal.p_below(z[rows])
        return p


def _matrix(name: str, table: JobTable) -> FloatArray:
    return np.column_stack(list(COLUMNS[name](table).values()))


@dataclass(frozen=True)
class MetricErrors:
    """Rows of a metric with a known log error, and their indices among all: shape (n_row,)."""

    rows: ErrorRows
    index: RowIndex


def metric_errors(rows: JobTable) -> dict[str, MetricErrors]:
    """Return the log errors of the estimate by metric; of memory also bounds, which are not measured."""
    keys, measured = group_keys(rows), log_errors(rows)
    is_upload = is_uploaded(rows.owners).to_numpy(dtype=bool)
    bound = {MEMORY: np.where(is_upload, np.nan, _memory_bound(rows))}
    return {name: _metric_errors(name, rows, keys, measured[name], bound.get(name)) for name in (RATE, MEMORY)}


def _metric_errors(
    name: str, table: JobTable, keys: KeyArray, measured: FloatArray, bound: FloatArray | None
) -> MetricErrors:
    error = measured if bound is None else np.where(np.isfinite(measured), measured, bound)
    known = np.flatnonzero(np.isfinite(error))
    part = table.take(known)
    columns = COLUMNS[name](part)
    stack = name_stacks(part.measurements).to_numpy(dtype=object)
    rows = ErrorRows(
        tuple(columns), np.column_stack(list(columns.values())), keys[known], error[known],
        part.groups.to_numpy(dtype=object), part.owners.to_numpy(dtype=object), stack, np.isfinite(measured[known]),
        is_plain(part) & CLASSED[name],
    )  # fmt: skip
    return MetricErrors(rows, known)


def log_errors(rows: JobTable) -> dict[str, FloatArray]:
    """Return log(measured / estimated) of rates and peak memory: shapes (n_row,), NaN where nothing was measured."""
    return {
        RATE: np.log(rows.measured_rate / rows.estimated_rate),
        MEMORY: np.log(rows.measured_memory / rows.estimated_memory),
    }


def _room(table: JobTable) -> FloatArray:
    return np.log(USABLE_RATIO * table.runs.hardware.memory_byte / table.memory.device)


def _memory_bound(rows: JobTable) -> FloatArray:
    # a run is a one-sided label of its memory: NaN where the estimate agrees with it
    room, failed = _room(rows), rows.is_out_of_memory
    return np.where(((failed == 0.0) & (room < 0.0)) | ((failed == 1.0) & (room > 0.0)), room, np.nan)
