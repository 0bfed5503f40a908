"""Accuracy of the predictor on imported training jobs: predicted against actual, by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, Field

from roofcast.data.catalog import Catalog
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.imports.measurement_import import compare_if_possible
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_table import JobTable, build_job_table, framework_families

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added, MeasurementStore

MAX_COMPARED: Final = 200
"""Runs of an import that are predicted: those with the least ids, which are hashes of their content."""

LEVEL: Final = 0.9
ALL: Final = "all"


class RunErrors(BaseModel):
    """Errors of the predictor on measured training jobs of one group."""

    kind: Annotated[str, Field(description="`all`, `framework`, `accelerator` or `lineage`.")]
    name: str
    metric: Annotated[str, Field(description="`throughput_token_per_s` or `memory_byte_per_accelerator`.")]
    n_row: int
    median_ape: Annotated[float, Field(description="Median of |predicted - measured| / measured.")]
    bias_ratio: Annotated[float, Field(description="Geometric mean of measured / predicted.")]
    within_interval: Annotated[float, Field(description="Share of the runs inside their intervals.")]


class JobImportErrors(BaseModel):
    """Predicted against actual of the runs of an import that the predictor has not learnt."""

    predictor_version: str
    level: float
    n_row: Annotated[int, Field(description="Runs that were compared, 200 at most.")]
    n_learnt: Annotated[int, Field(description="Runs of the import that the predictor has learnt.")]
    groups: list[RunErrors]


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
    is_learnt = runs["id"].isin(active.bundle.row_ids)
    rows = build_job_table(runs[~is_learnt], catalog) if (~is_learnt).any() else None
    level = min(LEVEL, active.bundle.predictor.highest_coverage)
    groups = _groups(active, rows, level, catalog) if rows is not None else []
    return JobImportErrors(
        predictor_version=active.champion.version,
        level=level,
        n_row=int((~is_learnt).sum()),
        n_learnt=int(is_learnt.sum()),
        groups=groups,
    )


def _groups(active: LoadedModel[JobBundle], rows: JobTable, level: float, catalog: Catalog) -> list[RunErrors]:
    p = active.bundle.predictor.predict(rows.measurements, coverage=level, catalog=catalog)
    values = {
        "throughput_token_per_s": (
            rows.measured_rate,
            p.token_per_s_per_accelerator,
            p.token_per_s_per_accelerator_low,
            p.token_per_s_per_accelerator_high,
        ),
        "memory_byte_per_accelerator": (
            rows.measured_memory,
            p.peak_memory_byte,
            p.peak_memory_byte_low,
            p.peak_memory_byte_high,
        ),
    }
    kinds: dict[str, npt.NDArray[np.object_]] = {
        ALL: np.full(len(rows.groups), "", dtype=object),
        "framework": framework_families(rows.measurements).to_numpy(dtype=object),
        "accelerator": rows.measurements["accelerator"].to_numpy(dtype=object),
        "lineage": rows.groups.to_numpy(dtype=object),
    }
    result = []
    for metric, (measured, predicted, low, high) in values.items():
        known = np.isfinite(measured)
        for kind, names in kinds.items():
            for name in sorted(set(names[known])):
                i = known & (names == name)
                ratio = measured[i] / predicted[i]
                result.append(
                    RunErrors(
                        kind=kind,
                        name=str(name),
                        metric=metric,
                        n_row=int(i.sum()),
                        median_ape=float(np.median(np.abs(1.0 / ratio - 1.0))),
                        bias_ratio=float(np.exp(np.log(ratio).mean())),
                        within_interval=float(((measured[i] >= low[i]) & (measured[i] <= high[i])).mean()),
                    )
                )
    return result
