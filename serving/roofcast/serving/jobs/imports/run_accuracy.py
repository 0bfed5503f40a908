"""Accuracy of the predictor on imported training jobs: predicted against actual, by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from roofcast.data.catalog import Catalog
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.imports.measurement_import import compare_if_possible
from roofcast.training.drift.drift_report import GroupErrors, score_groups
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_table import JobTable, build_job_table, framework_families

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added, MeasurementStore

MAX_COMPARED: Final = 200
"""Runs of an import that are predicted: those with the least ids, which are hashes of their content."""

LEVEL: Final = 0.9


class JobImportErrors(BaseModel):
    """Predicted against actual of the runs of an import that the predictor has not learnt.

    `groups`: errors of rates and peak memory, by accelerator, framework (`engine_version`), lineage and stack.
    """

    predictor_version: str
    level: float
    n_row: Annotated[int, Field(description="Runs that were compared, 200 at most.")]
    n_learnt: Annotated[int, Field(description="Runs of the import that the predictor has learnt.")]
    groups: list[GroupErrors]


def compare_runs(
    store: MeasurementStore, catalog: Catalog, champion: Callable[[], LoadedModel[JobBundle]], added: Added
) -> JobImportErrors | None:
    """Return the errors of the champion on an import: see `compare_if_possible`."""

    def compare(import_id: str) -> JobImportErrors:
        runs = store.training.imported.load_import(import_id, MAX_COMPARED)
        return score_runs(champion(), catalog, runs)

    return compare_if_possible(added, compare)


def score_runs(active: LoadedModel[JobBundle], catalog: Catalog, runs: pd.DataFrame) -> JobImportErrors:
    """Return the errors of the champion on stored runs, whose plans are as they were stated."""
    new = runs[~runs["id"].isin(active.bundle.row_ids)]
    level = min(LEVEL, active.bundle.predictor.highest_coverage)
    return JobImportErrors(
        predictor_version=active.champion.version,
        level=level,
        n_row=len(new),
        n_learnt=len(runs) - len(new),
        groups=score_groups(_scores(active, build_job_table(new, catalog), level, catalog)) if len(new) else [],
    )


def _scores(active: LoadedModel[JobBundle], rows: JobTable, level: float, catalog: Catalog) -> pd.DataFrame:
    p = active.bundle.predictor.predict(rows.measurements, coverage=level, catalog=catalog)
    groups = pd.DataFrame({
        "row": range(len(rows)), "configuration": range(len(rows)), "accelerator": rows.text("accelerator"),
        "engine_version": framework_families(rows.measurements), "lineage": rows.groups, "stack": rows.text("stack"),
    })  # fmt: skip
    rate = rows.measured_rate, p.token_per_s_per_accelerator, p.token_per_s_per_accelerator_low
    memory = rows.measured_memory, p.peak_memory_byte, p.peak_memory_byte_low
    parts = [
        groups.assign(metric=metric, measured=measured, predicted=predicted, width=np.log(predicted / low))
        for metric, (measured, predicted, low) in (
            ("throughput_token_per_s", rate), ("memory_byte_per_accelerator", memory),
        )
    ]  # fmt: skip
    scored = pd.concat(parts, ignore_index=True).dropna(subset="measured")
    return scored.assign(log_error=np.log(scored["measured"] / scored["predicted"]))
