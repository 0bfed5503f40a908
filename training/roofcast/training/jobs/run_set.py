"""Training set of the predictor of training jobs: shipped runs and those of the store."""

import dataclasses
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.job_validation import training_row_ids
from roofcast.training.dataset.stacks import is_uploaded, name_by_uploader
from roofcast.training.jobs.job_predictor import MetricErrors, metric_errors
from roofcast.training.jobs.job_table import JobTable, build_job_table

UNKNOWN_NAME: Final = "unknown_name"
NO_METRIC: Final = "no_metric"
"""Rules by which runs are set aside: the catalogue lacks the model or accelerator; or there is nothing to learn, that
is, no rate and no peak memory of a decoder with a known sequence length."""


@dataclass(frozen=True)
class RunSet:
    """Runs with their plans.

    `rows`: own runs come first, because random effects are conditioned on the first runs of each configuration. The
    owner of an own run is blank if the operator stored it, and else the API key.
    """

    rows: JobTable
    ids: pd.Series
    set_aside: dict[str, int] = field(default_factory=dict)

    @property
    def measurements(self) -> pd.DataFrame:
        """Columns of the training schema."""
        return self.rows.measurements

    @property
    def groups(self) -> pd.Series:
        """Lineage of each run's model."""
        return self.rows.groups

    @property
    def stacks(self) -> pd.Series:
        """Owner of each run's stack."""
        return self.rows.owners

    @cached_property
    def errors(self) -> dict[str, MetricErrors]:
        """Log errors of the estimate by metric."""
        return metric_errors(self.rows)

    @property
    def digest(self) -> str:
        """Digest of the runs, independent of their order."""
        return hashlib.blake2b("".join(sorted(self.ids)).encode(), digest_size=16).hexdigest()


def build_run_set(shipped: pd.DataFrame, own: pd.DataFrame, uploaders: pd.Series, catalog: Catalog) -> RunSet:
    """Return the runs of the package and the distinct ones of the store.

    `uploaders`: shape (n_own,): API key that stored each own run, blank for the operator's. The key prefixes the
    names of its stacks and campaigns, and its out-of-memory runs count as failed. Raises `InputError` if no run can
    be used.
    """
    shipped_ids = training_row_ids(shipped)
    own_ids = pd.Series(training_row_ids(own), dtype=object)
    is_new = (~own_ids.isin(shipped_ids)).to_numpy(dtype=bool)
    own, keys = own[is_new].reset_index(drop=True), uploaders[is_new].reset_index(drop=True)
    status = own["status"].mask((keys != "") & (own["status"] == "out_of_memory"), "failed")
    named = name_by_uploader(own, keys).assign(status=status)
    table = pd.concat([named, shipped], ignore_index=True) if len(own) else shipped
    ids = pd.Series([*own_ids[is_new], *shipped_ids], dtype=object)
    is_own = np.arange(len(table)) < len(own)
    is_known = _is_known(table, catalog)
    rows = build_job_table(table[is_known], catalog)
    owners = rows.owners.mask(is_own[is_known] & ~is_uploaded(rows.owners).to_numpy(dtype=bool), "")
    rows = dataclasses.replace(rows, owners=owners)
    outcomes = np.array([rows.measured_rate, rows.measured_memory, rows.is_out_of_memory])
    has_metric = np.isfinite(outcomes).any(axis=0)
    if not has_metric.any():
        raise InputError("measurements", "none can be used for training; import measurements of training jobs first")
    set_aside = {UNKNOWN_NAME: int((~is_known).sum()), NO_METRIC: int((~has_metric).sum())}
    return RunSet(
        rows.take(np.flatnonzero(has_metric)),
        ids[is_known][has_metric].reset_index(drop=True),
        {rule: n for rule, n in set_aside.items() if n},
    )


def _is_known(table: pd.DataFrame, catalog: Catalog) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    known = table["model"].isin(list(catalog.models)) & table["accelerator"].isin(list(catalog.accelerators))
    return known.to_numpy(dtype=bool)
